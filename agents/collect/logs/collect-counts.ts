/** Counts of a collector since its start. */
export interface CollectCounts {
  readonly records: number;
  readonly bytes: number;
  readonly rejected: number;
  /** Rejected lines that were counted but not kept, because there was no room for them. */
  readonly notKept: number;
  /** NULs before lines, which were left out. */
  readonly nulBytes: number;
  /** Lines that the agent skips, and texts that it masked. */
  readonly skippedLines: number;
  readonly maskedTexts: number;
  /** Rejected lines by reason; numbers in a reason are replaced by `N`. */
  readonly rejectedByReason: Readonly<Record<string, number>>;
  readonly commits: number;
  /** Time of the last commit, which also stored the positions of files, in milliseconds since the epoch. Null before the first. */
  readonly lastCommitMs: number | null;
  /** Number of logs that Logstrata rotated. */
  readonly rotations: number;
  /** Number of times that a file's content was truncated, as copytruncate does. */
  readonly truncations: number;
  /** Lower bound of the bytes that were seen but not read before truncations, and that no copy has given since. */
  readonly truncatedBytes: number;
}

/** How far the storage of one file lags behind. */
export interface FileLag {
  readonly path: string;
  readonly role: string;
  readonly offset: number;
  readonly lagBytes: number;
  readonly records: number;
  readonly rejected: number;
  /** Why the file can't be read at present; null when it can. */
  readonly failure: string | null;
}

/** State of the collection of one agent. */
export interface CollectStatus extends CollectCounts {
  readonly files: readonly FileLag[];
  readonly lagBytes: number;
  /** Why collection is paused; null while it is not. */
  readonly paused: string | null;
}

/** Limit on reasons that are counted separately; further ones count as `other`. */
const reasonsMax = 50;

/** The counters of a collector. */
export class CollectTally {
  records = 0;
  bytes = 0;
  rejected = 0;
  notKept = 0;
  nulBytes = 0;
  skippedLines = 0;
  maskedTexts = 0;
  commits = 0;
  rotations = 0;
  truncations = 0;
  truncatedBytes = 0;
  private lastCommitMs: number | null = null;
  private readonly reasons = new Map<string, number>();

  /** Counts a rejected line. */
  reject(reason: string): void {
    this.rejected++;
    const kind = reason.replace(/\d+/g, 'N');
    const known = this.reasons.has(kind) || this.reasons.size < reasonsMax ? kind : 'other';
    this.reasons.set(known, (this.reasons.get(known) ?? 0) + 1);
  }

  /** Records a commit. */
  commit(nowMs: number): void {
    this.commits++;
    this.lastCommitMs = nowMs;
  }

  /** A copy of the counts. */
  counts(): CollectCounts {
    const { records, bytes, rejected, notKept, nulBytes, commits, rotations, truncations, truncatedBytes } =
      this;
    const rejectedByReason = Object.fromEntries(this.reasons);
    const { skippedLines, maskedTexts } = this;
    const lines = {
      records,
      bytes,
      rejected,
      notKept,
      nulBytes,
      skippedLines,
      maskedTexts,
      rejectedByReason,
    };
    return { ...lines, commits, lastCommitMs: this.lastCommitMs, rotations, truncations, truncatedBytes };
  }
}
