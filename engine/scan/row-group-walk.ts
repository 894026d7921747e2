import { assert } from '../core/errors.js';
import {
  rangeOfRun,
  shareOf,
  type RowGroupShare,
  type ScanPlan,
  type ScanUnit,
  type Walk,
  indexOfRuns,
} from './plan.js';
import type { RowGroup } from '../store/reading/snapshot.js';

/**
 * Walks the row groups of a plan, giving each once with all of its ranges. For callers to whom the order of the rows does not matter: a row
 * group whose runs alternate with those of others is then filtered once instead of once per unit.
 */
export class RowGroupWalk implements Walk {
  readonly #plan: ScanPlan;
  readonly #gone = new Set<RowGroup>();
  /** Index of the first run of the next row group. */
  #at: number;

  constructor(plan: ScanPlan) {
    assert(plan.direction === 'forward', 'row groups without an order are gone through forward');
    this.#plan = plan;
    this.#at = plan.first;
  }

  get rowGroup(): RowGroup | undefined {
    return this.#at === this.#plan.end ? undefined : this.#plan.runs.at(this.#at)!.rowGroup;
  }

  skip(): void {
    const { runs, end } = this.#plan;
    this.#gone.add(this.rowGroup!);
    while (this.#at < end && this.#gone.has(runs.at(this.#at)!.rowGroup)) this.#at++;
  }

  take(): ScanUnit | null {
    const rowGroup = this.rowGroup!;
    const { runs, first, end } = this.#plan;
    const own = indexOfRuns(runs).runsOf(rowGroup, first, end);
    const ranges = Array.from(own, (run) => rangeOfRun(this.#plan, run)).filter((range) => range !== null);
    this.skip();
    return ranges.length === 0 ? null : { rowGroup, ranges };
  }

  shareOf(rowGroup: RowGroup): RowGroupShare {
    return { ...shareOf(this.#plan, rowGroup), units: 1 };
  }
}
