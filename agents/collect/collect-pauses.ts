import { isLogstrataError } from '../../engine/index.js';
import { systemCode } from '../sources/byte-source.js';
import type { CollectLog } from './logs/collect-log.js';

/** Logs when collection of an agent pauses and when it goes on; repeats of the same reason are not logged. */
export class CollectPauses {
  /** Why collection is paused; null while it is not. */
  reason: string | null = null;

  constructor(
    private readonly agent: string,
    private readonly log: CollectLog,
  ) {}

  /** Records a failed commit. */
  pause(error: unknown): void {
    const message = error instanceof Error ? error.message : String(error);
    if (isLogstrataError(error) && error.code === 'conflict' && this.reason === null) {
      this.log.info({ agent: this.agent }, `${message}; reading continues after it`);
      return;
    }
    const before = this.reason;
    this.reason = message;
    if (before !== null && withoutNumbers(before) === withoutNumbers(message)) return;
    const code = isLogstrataError(error) ? error.code : (systemCode(error) ?? 'unexpected');
    this.log.error(
      { agent: this.agent, code },
      `collection is paused: ${message}. It continues by itself once that is resolved`,
    );
  }

  /** Records that a commit succeeded. */
  resume(): void {
    if (this.reason === null) return;
    this.log.info({ agent: this.agent, reason: this.reason }, 'collection continues');
    this.reason = null;
  }
}

/** Removes what varies between messages of the same reason: hex names of temporary files, counts and offsets. */
function withoutNumbers(message: string): string {
  return message.replace(/\b[0-9a-f]{6,}\b|\d+/g, '');
}
