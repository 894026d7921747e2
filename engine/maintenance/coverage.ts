import type { OrdinalRun } from '../storage/committed-values.js';
import type { Run } from '../storage/manifest.js';

/** Positions that are accounted for, as ordinals [first, end) of each partition; no two of a partition touch. */
export class Coverage {
  private readonly ranges = new Map<number, { first: number; end: number }[]>();

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
    for (const range of this.ranges.get(run.partition) ?? []) {
      if (range.end <= next) continue;
      if (range.first >= end) break;
      take(range.first);
      next = range.end;
    }
    take(end);
    return parts;
  }

  /** Whether any of the run's positions is covered. */
  touches(run: OrdinalRun): boolean {
    const end = run.firstOrdinal + run.rows;
    const ranges = this.ranges.get(run.partition) ?? [];
    return ranges.some((range) => range.first < end && range.end > run.firstOrdinal);
  }

  /** Covers the positions of a run. */
  add({ partition, firstOrdinal, rows }: OrdinalRun): void {
    let first = firstOrdinal;
    let end = firstOrdinal + rows;
    const kept = (this.ranges.get(partition) ?? []).filter((range) => {
      if (range.end < first || range.first > end) return true;
      first = Math.min(first, range.first);
      end = Math.max(end, range.end);
      return false;
    });
    kept.push({ first, end });
    this.ranges.set(
      partition,
      kept.sort((a, b) => a.first - b.first),
    );
  }
}
