import type { RecordEnds } from '../decode/line-framing.js';
import type { FollowedFile } from './logs/followed-file.js';
import { restSinceMs } from './logs/log-state.js';

/** Decides when the last record of a file is taken as complete, although no following line shows that it is. */
export class Silence {
  constructor(
    private readonly files: () => Iterable<FollowedFile>,
    private readonly ends: RecordEnds,
    /** Time without growth after which a line without a line end is taken, of a file that is no longer written to. */
    private readonly tailTimeoutMs: number,
  ) {}

  /** Whether the unfinished record at the end of a file may be taken, because the file has not grown for long enough. */
  mayEndHere(file: FollowedFile, nowMs: number): boolean {
    const silentMs = silenceOf(file, nowMs);
    if (silentMs === null) return false;
    if (this.recordDueInMs(file, nowMs) <= 0) return true;
    return silentMs >= this.tailTimeoutMs && this.isPutAside(file);
  }

  /** Milliseconds until the last lines of some file are taken as a complete record; Infinity where no file has such lines. */
  dueInMs(nowMs: number): number {
    let dueMs = Infinity;
    if (this.ends.timeoutMs === null) return dueMs;
    for (const file of this.files()) dueMs = Math.min(dueMs, this.recordDueInMs(file, nowMs));
    return dueMs;
  }

  private recordDueInMs(file: FollowedFile, nowMs: number): number {
    const { timeoutMs } = this.ends;
    const silentMs = silenceOf(file, nowMs);
    if (timeoutMs === null || silentMs === null || file.followed!.rest!.endsInLine) return Infinity;
    return timeoutMs - silentMs;
  }

  /** Whether the file's name shows that it is no longer written to: it has none, or the name of a rotated generation. */
  isPutAside(file: FollowedFile): boolean {
    if (file.isGone) return true;
    if (!file.rotated) return false;
    if (!file.name.direct) return true;
    for (const other of this.files()) if (!other.isGone && other.name.name === file.name.base) return true;
    return false;
  }
}

/**
 * For how long a file has ended inside a record; null where it does not. Infinity after the clock went back: that must not
 * delay the record.
 */
function silenceOf({ state }: FollowedFile, nowMs: number): number | null {
  const sinceMs = restSinceMs(state);
  if (sinceMs === null) return null;
  return nowMs < sinceMs ? Infinity : nowMs - sinceMs;
}
