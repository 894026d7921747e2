import type { PartitionStart } from '../manifest/committer.js';
import { addRun, type Run } from '../manifest/manifest.js';

/** Rows of one partition that stand one behind another in a segment. */
export type PartitionRows = readonly [partition: number, rows: number];

/** The positions of the rows of some segments: for each segment its runs, in the order of its rows. */
export interface SegmentRuns {
  readonly inTime: Run[][];
  readonly late: Run[][];
}

/**
 * Rows that came too late to be written where they belong are written into segments of their own. Their positions are
 * where they belong: between those of the rows around them, whose runs they cut in two. This gives every row its ordinal,
 * those that came in time and the late ones together in order of time.
 *
 * @param inTime for each segment the partitions of its rows; all rows ascend by time
 * @param late the same for the segments of the late rows, which ascend among themselves
 * @param after for each late row how many of the rows that came in time stand before it
 */
export function placeRuns(
  inTime: readonly (readonly PartitionRows[])[],
  late: readonly (readonly PartitionRows[])[],
  after: readonly number[],
  starts: readonly PartitionStart[],
): SegmentRuns {
  const next = new Map(starts);
  const take = (partition: number, rows: number): number => {
    const ordinal = next.get(partition)!;
    next.set(partition, ordinal + rows);
    return ordinal;
  };
  const latePartitions = late.flat().flatMap(([partition, rows]) => Array<number>(rows).fill(partition));
  const lateOrdinals: number[] = [];
  const takeLateUpTo = (row: number): void => {
    while (lateOrdinals.length < after.length && after[lateOrdinals.length]! <= row) {
      lateOrdinals.push(take(latePartitions[lateOrdinals.length]!, 1));
    }
  };
  let row = 0;
  const inTimeRuns = inTime.map((segment) => {
    const runs: Run[] = [];
    let firstRow = 0;
    for (const [partition, rows] of segment) {
      for (const end = row + rows; row < end;) {
        takeLateUpTo(row);
        const count = Math.min(end, after[lateOrdinals.length] ?? end) - row;
        addRun(runs, { partition, firstOrdinal: take(partition, count), firstRow, rows: count });
        firstRow += count;
        row += count;
      }
    }
    return runs;
  });
  takeLateUpTo(row);
  let taken = 0;
  const lateRuns = late.map((segment) => {
    const runs: Run[] = [];
    let firstRow = 0;
    for (const [partition, rows] of segment) {
      for (let i = 0; i < rows; i++) {
        addRun(runs, { partition, firstOrdinal: lateOrdinals[taken++]!, firstRow: firstRow++, rows: 1 });
      }
    }
    return runs;
  });
  return { inTime: inTimeRuns, late: lateRuns };
}
