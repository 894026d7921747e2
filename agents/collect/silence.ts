import type { RecordEnds } from '../lines/record-ends.js';
import type { FollowedFile } from './logs/followed-file.js';
import { restSinceMs } from './logs/log-state.js';

/** Tells when the last record of a file is taken although nothing behind it shows that it is whole. */
export class Silence {
  constructor(
    private readonly files: () => Iterable<FollowedFile>,
    private readonly ends: RecordEnds,
    /** Silence after which a line without an end is taken, of a file that nobody writes to any more. */
    private readonly tailTimeoutMs: number,
  ) {}

  /** The file ends inside a record, and nobody has gone on with it for long. */
  mayEndHere(file: FollowedFile, nowMs: number): boolean {
    const silentMs = silenceOf(file, nowMs);
    if (silentMs === null) return false;
    if (this.recordDueInMs(file, nowMs) <= 0) return true;
    return silentMs >= this.tailTimeoutMs && this.isPutAside(file);
  }

  /** Time until the last lines of some file are taken for a whole record, in milliseconds; Infinity where no file has such lines. */
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

  /** Whether the names say that no program writes to the file any more: it has no name, or the name of a rotated generation. */
  isPutAside(file: FollowedFile): boolean {
    if (file.gone) return true;
    if (!file.rotated) return false;
    if (!file.name.direct) return true;
    for (const other of this.files()) if (!other.gone && other.name.name === file.name.base) return true;
    return false;
  }
}

/** How long a file has ended inside a record; null where it does not. A clock that went back must not hold a record for as long. */
function silenceOf({ state }: FollowedFile, nowMs: number): number | null {
  const sinceMs = restSinceMs(state);
  if (sinceMs === null) return null;
  return nowMs < sinceMs ? Infinity : nowMs - sinceMs;
}
