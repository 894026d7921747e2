import type { PartitionStart } from '../manifest/committer.js';
import { addRun, type Run } from '../manifest/manifest.js';

/** Number of consecutive rows of a segment that belong to one partition. */
export type PartitionRows = readonly [partition: number, rows: number];

/** The runs of each segment, in the order of its rows. */
export interface SegmentRuns {
  readonly inTime: Run[][];
  readonly late: Run[][];
}

/**
 * Assigns ordinals to all rows of a load. Late rows are written to segments of their own, but their positions are in order of time among
 * all rows. So a late row splits the run of the rows around it.
 *
 * @param inTime for each segment of rows that came in time, the partitions of its rows; all these rows ascend by time
 * @param late the same for the segments of late rows, which ascend among themselves
 * @param after for each late row, the number of rows in time that precede it
 * @param starts the first ordinal of each partition
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
