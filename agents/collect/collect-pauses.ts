import { isLogstrataError } from '../../engine/index.js';
import { systemCode } from '../sources/source-error.js';
import type { CollectLog } from './logs/collect-log.js';

/** Says that nothing can be collected of an agent, and that it can again: once for each reason. */
export class CollectPauses {
  /** Why nothing is collected at present; null when it is. */
  reason: string | null = null;

  constructor(
    private readonly agent: string,
    private readonly log: CollectLog,
  ) {}

  /** A commit failed. */
  pause(error: unknown): void {
    const message = error instanceof Error ? error.message : String(error);
    if (isLogstrataError(error) && error.code === 'conflict' && this.reason === null) {
      this.log.info({ agent: this.agent }, `${message}; reading goes on behind it`);
      return;
    }
    const before = this.reason;
    this.reason = message;
    if (before !== null && withoutNumbers(before) === withoutNumbers(message)) return;
    const code = isLogstrataError(error) ? error.code : (systemCode(error) ?? 'unexpected');
    this.log.error(
      { agent: this.agent, code },
      `collection pauses: ${message}. It goes on by itself when that is over`,
    );
  }

  /** Collection goes on. */
  resume(): void {
    if (this.reason === null) return;
    this.log.info({ agent: this.agent, reason: this.reason }, 'collection goes on');
    this.reason = null;
  }
}

/** A message without what differs from time to time: the names of temporary files, counts and offsets. */
function withoutNumbers(message: string): string {
  return message.replace(/\b[0-9a-f]{6,}\b|\d+/g, '');
}
