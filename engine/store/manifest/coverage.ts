import type { OrdinalRun, Run } from './manifest.js';

interface Range {
  readonly first: number;
  readonly end: number;
}

/** What is known of one partition: ranges that ascend and don't touch, and those that were added since. */
interface Ranges {
  joined: readonly Range[];
  added: Range[];
}

/** Positions that are accounted for, as ordinals [first, end) of each partition. */
export class Coverage {
  private readonly partitions = new Map<number, Ranges>();

  /** Covers the positions of a run. */
  add({ partition, firstOrdinal, rows }: OrdinalRun): void {
    const range = { first: firstOrdinal, end: firstOrdinal + rows };
    const known = this.partitions.get(partition);
    if (known === undefined) this.partitions.set(partition, { joined: [], added: [range] });
    else known.added.push(range);
  }

  /** The parts of a run whose positions are not covered, in its order. */
  missing(run: Run): Run[] {
    const parts: Run[] = [];
    const end = run.firstOrdinal + run.rows;
    let next = run.firstOrdinal;
    const take = (to: number): void => {
      if (to <= next) return;
      const firstRow = run.firstRow + next - run.firstOrdinal;
      parts.push({ partition: run.partition, firstOrdinal: next, firstRow, rows: to - next });
    };
    const ranges = this.rangesOf(run.partition);
    for (let i = firstEndingBehind(ranges, next); i < ranges.length && ranges[i]!.first < end; i++) {
      take(ranges[i]!.first);
      next = ranges[i]!.end;
    }
    take(end);
    return parts;
  }

  /** Whether any of the run's positions is covered. */
  touches({ partition, firstOrdinal, rows }: OrdinalRun): boolean {
    const ranges = this.rangesOf(partition);
    const range = ranges[firstEndingBehind(ranges, firstOrdinal)];
    return range !== undefined && range.first < firstOrdinal + rows;
  }

  /** Those of a partition, joined where they touch. */
  private rangesOf(partition: number): readonly Range[] {
    const ranges = this.partitions.get(partition);
    if (ranges === undefined) return [];
    if (ranges.added.length > 0) {
      ranges.joined = joined([...ranges.joined, ...ranges.added]);
      ranges.added = [];
    }
    return ranges.joined;
  }
}

function joined(ranges: Range[]): Range[] {
  const result: Range[] = [];
  for (const range of ranges.sort((a, b) => a.first - b.first)) {
    const last = result.at(-1);
    if (last === undefined || range.first > last.end) result.push(range);
    else if (range.end > last.end) result[result.length - 1] = { first: last.first, end: range.end };
  }
  return result;
}

/** Index of the first range that ends behind an ordinal. */
function firstEndingBehind(ranges: readonly Range[], ordinal: number): number {
  let low = 0;
  let high = ranges.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (ranges[middle]!.end > ordinal) high = middle;
    else low = middle + 1;
  }
  return low;
}
