import { hourMs, partitionOfTime } from '../../terms/cursor.js';
import { loadRunsMax, loadSourceRuns } from '../../terms/limits.js';
import type { PartitionCount, PartitionStart } from './committer.js';
import type { LoadEntry, LoadedRun } from './manifest.js';

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
