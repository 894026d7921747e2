import type { CollectStatus } from './logs/collect-counts.js';
import type { CollectLog } from './logs/collect-log.js';

/** Interval of progress messages. A backlog that is read within this time is not reported. */
const everyMsDefault = 10_000;

/** Reports progress while a backlog is read: lines that came faster than they could be stored, or while nobody followed. */
export class BacklogReport {
  /** When reading without a pause began, and the counts at that time; null while there is no backlog. */
  private since: { readonly atMs: number; readonly records: number; readonly bytes: number } | null = null;
  private toldMs = 0;
  private hasTold = false;

  constructor(
    private readonly collector: { readonly name: string; status(): CollectStatus },
    private readonly log: CollectLog,
    private readonly everyMs = everyMsDefault,
  ) {}

  /** Records the end of a round; `more` says that it left lines unread. */
  round(more: boolean): void {
    const nowMs = performance.now();
    if (this.since === null) {
      if (!more) return;
      const { records, bytes } = this.collector.status();
      this.since = { atMs: nowMs, records, bytes };
      this.toldMs = nowMs;
      return;
    }
    if (more && nowMs - this.toldMs >= this.everyMs) this.tell(nowMs, 'reading a backlog');
    if (more) return;
    if (this.hasTold) this.tell(nowMs, 'all existing lines are read');
    this.since = null;
    this.hasTold = false;
  }

  private tell(nowMs: number, message: string): void {
    const { atMs, records, bytes } = this.since!;
    const status = this.collector.status();
    const seconds = (nowMs - atMs) / 1000;
    this.toldMs = nowMs;
    this.hasTold = true;
    this.log.info(
      {
        agent: this.collector.name,
        lag: status.lagBytes,
        records: status.records - records,
        seconds: Math.round(seconds),
        bytesPerSecond: Math.round((status.bytes - bytes) / Math.max(seconds, 0.001)),
      },
      message,
    );
  }
}
