import type { OrdinalRun, Run } from './manifest.js';

interface Range {
  readonly first: number;
  readonly end: number;
}

/** The ranges of one partition: `joined` ascend and do not touch; `added` are not merged into them yet. */
interface Ranges {
  joined: readonly Range[];
  added: Range[];
}

/** A set of positions, as ranges of ordinals [first, end) of each partition. */
export class Coverage {
  private readonly partitions = new Map<number, Ranges>();

  /** Adds the positions of a run. */
  add({ partition, firstOrdinal, rows }: OrdinalRun): void {
    const range = { first: firstOrdinal, end: firstOrdinal + rows };
    const known = this.partitions.get(partition);
    if (known === undefined) this.partitions.set(partition, { joined: [], added: [range] });
    else known.added.push(range);
  }

  /** The parts of a run whose positions are not in the set, in order. */
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

  /** The parts of a run whose positions are in the set, in order. */
  covered(run: OrdinalRun): OrdinalRun[] {
    const { partition } = run;
    const first = run.firstOrdinal;
    const end = first + run.rows;
    const ranges = this.rangesOf(partition);
    const parts: OrdinalRun[] = [];
    for (let i = firstEndingBehind(ranges, first); i < ranges.length && ranges[i]!.first < end; i++) {
      const from = Math.max(first, ranges[i]!.first);
      parts.push({ partition, firstOrdinal: from, rows: Math.min(end, ranges[i]!.end) - from });
    }
    return parts;
  }

  /** Whether any position of the run is in the set. */
  touches({ partition, firstOrdinal, rows }: OrdinalRun): boolean {
    const ranges = this.rangesOf(partition);
    const range = ranges[firstEndingBehind(ranges, firstOrdinal)];
    return range !== undefined && range.first < firstOrdinal + rows;
  }

  /** The ranges of a partition, after merging the added ones. */
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

/** Index of the first range that ends after an ordinal. */
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
