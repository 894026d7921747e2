import { hourMs, partitionOfTime } from '../../core/cursor.js';
import { loadRunsMax, loadSourceRuns } from '../../core/limits.js';
import { type PartitionCount, type PartitionStart, checkpointKey, type CommittedValues } from './commit.js';
import type { LoadEntry, LoadedRun, Checkpoint } from './manifest.js';
import { LogstrataError } from '../../core/errors.js';

interface PartitionRows {
  rows: number;
  timesSum: number;
}

/** Counts the rows of a load for each partition, and keeps a checksum of their placement times within the hour (`LoadedRun.timesSum`). */
export class LoadedRows {
  private readonly partitions = new Map<number, PartitionRows>();

  /** Adds rows by their placement times (ms). */
  add(timesMs: Float64Array): void {
    for (let row = 0; row < timesMs.length;) {
      const partition = partitionOfTime(timesMs[row]!);
      const startMs = partition * hourMs;
      const known = this.partitions.get(partition) ?? { rows: 0, timesSum: 0 };
      const from = row;
      let sum = known.timesSum;
      let inHourMs = timesMs[row]! - startMs;
      // The first and the last partition also have times outside their hour.
      do {
        sum = (sum + Math.imul(inHourMs, inHourMs)) >>> 0;
        inHourMs = timesMs[++row]! - startMs;
      } while (inHourMs >= 0 && inHourMs < hourMs);
      this.partitions.set(partition, { rows: known.rows + row - from, timesSum: sum });
    }
  }

  /** Rows of each partition, in ascending order of partitions. */
  counts(): PartitionCount[] {
    return [...this.partitions].map(([partition, { rows }]) => [partition, rows] as const).sort(ascending);
  }

  /** The positions of the rows of each partition, ascending. A partition's rows get consecutive ordinals from its start on. */
  runs(starts: readonly PartitionStart[]): LoadedRun[] {
    return [...starts].sort(ascending).map(([partition, firstOrdinal]) => {
      return { partition, firstOrdinal, ...this.partitions.get(partition)! };
    });
  }

  /** Rows of a partition. */
  rowsOf(partition: number): number {
    return this.partitions.get(partition)?.rows ?? 0;
  }

  /** Whether the partition of `run` has the same number of rows and the same checksum of times. */
  isSame({ partition, rows, timesSum }: LoadedRun): boolean {
    const found = this.partitions.get(partition);
    return found?.rows === rows && found.timesSum === timesSum;
  }
}

function ascending(a: readonly [number, number], b: readonly [number, number]): number {
  return a[0] - b[0];
}

/** The newest loads that fit into a manifest. Records of older loads cannot be restored. */
export function newestLoads(loads: readonly LoadEntry[]): readonly LoadEntry[] {
  let size = 0;
  const tooOld = loads.findLastIndex(({ parts, runs, removed = [] }) => {
    size += runs.length + removed.length + parts.length * loadSourceRuns;
    return size > loadRunsMax;
  });
  return loads.slice(tooOld + 1);
}

/**
 * Prevents two readers of the same source (a load and a collector, or two loads) from storing its lines twice. A commit says what its
 * reader knew of the source. It fails with `conflict` if another commit has stored more of the source since.
 */
export class SourceClaims {
  private commits = 0;
  /** For each checkpoint key, the number of the last unit's commit that brought it. Since this writer began. */
  private readonly keys = new Map<string, number>();
  /** For each inode, the number of the last commit, of a unit or an append, that read it. */
  private readonly inodes = new Map<string, number>();
  /** Number of the manifest with which a unit last stored a part of a file, by the file's inode and by its beginning. */
  private readonly loaded = new Map<string, number>();

  /** @param firstManifest number of the newest manifest when the writer began; commits before it are unknown here */
  constructor(private readonly firstManifest: number) {}

  /** Number of commits with checkpoints so far. A unit notes it when it begins. */
  get count(): number {
    return this.commits;
  }

  /** Throws `conflict` if another commit has stored a source of a unit since the unit began at count `since`. */
  checkUnit(since: number, checkpoints: readonly Checkpoint[], values: CommittedValues): void {
    for (const checkpoint of checkpoints) {
      const { continues, path } = checkpoint;
      const inode = inodeOf(checkpoint);
      const gone = continues !== undefined && values.checkpoint(continues) === undefined;
      const came = (this.keys.get(checkpointKey(checkpoint)) ?? 0) > since;
      const read = inode !== undefined && (this.inodes.get(inode) ?? 0) > since;
      if (gone || came || read) throw conflict(path);
    }
  }

  /** The same check for appended rows, whose reader took the checkpoints of its sources from manifest `asOf`. */
  checkAppend(asOf: number | undefined, checkpoints: readonly Checkpoint[], values: CommittedValues): void {
    for (const checkpoint of checkpoints) {
      const { continues, path, inode } = checkpoint;
      const gone = continues !== undefined && values.checkpoint(continues) === undefined;
      // A copy of the file may have been loaded.
      const begunAs = beginningOf(checkpoint);
      const loaded = Math.max(this.loaded.get(inode ?? '') ?? 0, this.loaded.get(begunAs) ?? 0);
      const known = Math.max(this.firstManifest, loaded);
      if (gone || (asOf !== undefined && asOf < known)) throw conflict(path);
    }
  }

  /** Notes the publication of a unit with manifest number `manifest`. */
  published(checkpoints: readonly Checkpoint[], manifest: number): void {
    this.appended(checkpoints);
    for (const checkpoint of checkpoints) {
      this.keys.set(checkpointKey(checkpoint), this.commits);
      const inode = inodeOf(checkpoint);
      if (inode !== undefined) this.loaded.set(inode, manifest);
      this.loaded.set(beginningOf(checkpoint), manifest);
    }
  }

  /** Notes an append. */
  appended(checkpoints: readonly Checkpoint[]): void {
    if (checkpoints.length === 0) return;
    this.commits++;
    for (const checkpoint of checkpoints) {
      const inode = inodeOf(checkpoint);
      if (inode !== undefined) this.inodes.set(inode, this.commits);
    }
  }
}

/** Inode of the file that was read, compressed or not. */
function inodeOf({ inode, packedInode }: Checkpoint): string | undefined {
  return inode ?? packedInode;
}

function beginningOf({ headHash, headBytes }: Checkpoint): string {
  return `${headHash}:${headBytes}`;
}

function conflict(path: string): LogstrataError {
  return new LogstrataError('conflict', `${path} was stored by another process in the meantime`, { path });
}
