import { hourMs, partitionOfTime } from '../../terms/cursor.js';
import { loadRunsMax, loadSourceRuns } from '../../terms/limits.js';
import type { PartitionCount, PartitionStart } from './committer.js';
import type { LoadEntry, LoadedRun } from './manifest.js';

interface PartitionRows {
  rows: number;
  timesSum: number;
}

/** Counts the rows of a load by partition, and sums up when in their hours they are placed. */
export class LoadedRows {
  private readonly partitions = new Map<number, PartitionRows>();

  /** Takes rows by their placement times (ms). */
  add(timesMs: Float64Array): void {
    for (let row = 0; row < timesMs.length;) {
      const partition = partitionOfTime(timesMs[row]!);
      const startMs = partition * hourMs;
      const known = this.partitions.get(partition) ?? { rows: 0, timesSum: 0 };
      const from = row;
      let sum = known.timesSum;
      let inHourMs = timesMs[row]! - startMs;
      // The first and the last partition have times beyond their hour too.
      do {
        sum = (sum + Math.imul(inHourMs, inHourMs)) >>> 0;
        inHourMs = timesMs[++row]! - startMs;
      } while (inHourMs >= 0 && inHourMs < hourMs);
      this.partitions.set(partition, { rows: known.rows + row - from, timesSum: sum });
    }
  }

  /** Rows of each partition, ascending. */
  counts(): PartitionCount[] {
    return [...this.partitions].map(([partition, { rows }]) => [partition, rows] as const).sort(ascending);
  }

  /** What each partition was given, ascending: its rows follow one another from its start on. */
  runs(starts: readonly PartitionStart[]): LoadedRun[] {
    return [...starts].sort(ascending).map(([partition, firstOrdinal]) => {
      return { partition, firstOrdinal, ...this.partitions.get(partition)! };
    });
  }

  /** Rows of a partition. */
  rowsOf(partition: number): number {
    return this.partitions.get(partition)?.rows ?? 0;
  }

  /** Whether a partition was given the same rows, as far as their number and times tell. */
  isSame({ partition, rows, timesSum }: LoadedRun): boolean {
    const found = this.partitions.get(partition);
    return found?.rows === rows && found.timesSum === timesSum;
  }
}

function ascending(a: readonly [number, number], b: readonly [number, number]): number {
  return a[0] - b[0];
}

/** The newest loads, as many as a manifest has room for: what older ones gave can't be loaded again by itself. */
export function newestLoads(loads: readonly LoadEntry[]): readonly LoadEntry[] {
  let size = 0;
  const tooOld = loads.findLastIndex(({ parts, runs, removed = [] }) => {
    size += runs.length + removed.length + parts.length * loadSourceRuns;
    return size > loadRunsMax;
  });
  return loads.slice(tooOld + 1);
}
