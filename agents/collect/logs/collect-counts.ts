/** What a collector counts since it began. */
export interface CollectCounts {
  readonly records: number;
  readonly bytes: number;
  readonly rejected: number;
  /** Rejected lines that are counted and not kept, because there was no room for them. */
  readonly notKept: number;
  /** Rejected lines by reason; numbers in a reason are left out. */
  readonly rejectedByReason: Readonly<Record<string, number>>;
  readonly commits: number;
  /** When the last of them was, in milliseconds since the epoch: how far the files are stored was noted then. Null before the first. */
  readonly lastCommitMs: number | null;
  /** Logs that were rotated by us. */
  readonly rotations: number;
  /** Times that a file's content was cut off, as by copy-truncate. */
  readonly truncations: number;
  /** Bytes, at the least, that were seen and not read when that happened, and that no copy has given since. */
  readonly truncatedBytes: number;
}

/** How far one file is behind. */
export interface FileLag {
  readonly path: string;
  readonly role: string;
  readonly offset: number;
  readonly lagBytes: number;
  readonly records: number;
  readonly rejected: number;
  /** Why it can't be read at present; null when it can. */
  readonly failure: string | null;
}

/** How the collection of one agent stands. */
export interface CollectStatus extends CollectCounts {
  readonly files: readonly FileLag[];
  readonly lagBytes: number;
  /** Why nothing is collected at present; null when it is. */
  readonly paused: string | null;
}

/** Different reasons that are counted one by one; what comes later counts as `other`. */
const reasonsMax = 50;

/** Counts up. */
export class CollectTally {
  records = 0;
  bytes = 0;
  rejected = 0;
  notKept = 0;
  commits = 0;
  rotations = 0;
  truncations = 0;
  truncatedBytes = 0;
  private lastCommitMs: number | null = null;
  private readonly reasons = new Map<string, number>();

  reject(reason: string): void {
    this.rejected++;
    const kind = reason.replace(/\d+/g, 'N');
    const known = this.reasons.has(kind) || this.reasons.size < reasonsMax ? kind : 'other';
    this.reasons.set(known, (this.reasons.get(known) ?? 0) + 1);
  }

  commit(nowMs: number): void {
    this.commits++;
    this.lastCommitMs = nowMs;
  }

  counts(): CollectCounts {
    const { records, bytes, rejected, notKept, commits, rotations, truncations, truncatedBytes } = this;
    const rejectedByReason = Object.fromEntries(this.reasons);
    const lines = { records, bytes, rejected, notKept, rejectedByReason };
    return { ...lines, commits, lastCommitMs: this.lastCommitMs, rotations, truncations, truncatedBytes };
  }
}
