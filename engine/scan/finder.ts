import { assert } from '../assert.js';
import { rowGroupRowsMax, rowGroupsAheadMax } from '../limits.js';
import type { Matches } from './materialise.js';
import { throwIfAborted } from './pace.js';
import { scanUnits, shareOf } from './plan.js';
import type { ScanPlan, ScanUnit } from './plan.js';
import type { Looking, RowGroupFilter, ScanWork } from './row-group-filter.js';
import { compactSelection, countSelected } from './selection.js';
import type { Selection } from './selection.js';
import type { RowGroup } from './snapshot.js';

/**
 * Walks the units of a plan for their matches. With threads it looks at units ahead of the one whose matches it takes: one
 * more with each that it has taken, so that a scan which ends early has looked at no more than twice what it needed.
 */
export class Finder {
  readonly #plan: ScanPlan;
  readonly #filter: RowGroupFilter;
  readonly #work: ScanWork;
  /** Row groups that are being looked at, or have further units, and how many of these are left. */
  readonly #looking = new Map<RowGroup, { readonly looking: Looking; unitsLeft: number }>();

  constructor(plan: ScanPlan, filter: RowGroupFilter, work: ScanWork) {
    this.#plan = plan;
    this.#filter = filter;
    this.#work = work;
  }

  /** The matches of an answer of `limit` rows, in its order. */
  async *matches(limit: number): AsyncGenerator<Matches> {
    if (this.#plan.direction === 'forward') {
      yield* this.first(limit);
      return;
    }
    const newest = await this.last(limit);
    // Each is let go once it is written, so that a long answer gives memory back as it proceeds.
    for (let matches = newest.pop(); matches !== undefined; matches = newest.pop()) yield matches;
  }

  /** The first `limit` matches, as they are found. */
  async *first(limit: number): AsyncGenerator<Matches> {
    let left = limit;
    for await (const { unit, selection } of this.#selections()) {
      const take = Math.min(left, countSelected(selection, unit.ranges));
      if (take === 0) continue;
      yield { unit, selection, skip: 0, take };
      left -= take;
      if (left === 0) return;
    }
  }

  /** The last `limit` matches, newest unit first. */
  async last(limit: number): Promise<Matches[]> {
    const found: Matches[] = [];
    let left = limit;
    for await (const { unit, selection } of this.#selections()) {
      const count = countSelected(selection, unit.ranges);
      if (count === 0) continue;
      const take = Math.min(left, count);
      found.push({
        unit,
        selection: compactSelection(selection, unit.ranges, count),
        skip: count - take,
        take,
      });
      left -= take;
      if (left === 0) break;
    }
    return found;
  }

  async *#selections(): AsyncGenerator<{ unit: ScanUnit; selection: Selection }> {
    const units = scanUnits(this.#plan);
    const { threads, pace } = this.#work;
    const aheadMax = threads === null ? 1 : rowGroupsAheadMax;
    const begun: ScanUnit[] = [];
    for (let taken = 0; ; taken++) {
      while (begun.length <= Math.min(taken, aheadMax - 1)) {
        const next = units.next();
        if (next.done === true) break;
        // The caller may have left while the one before was waited for.
        throwIfAborted(pace.signal);
        this.#begin(next.value);
        begun.push(next.value);
      }
      const unit = begun.shift();
      if (unit === undefined) return;
      yield { unit, selection: await this.#take(unit) };
    }
  }

  #begin({ rowGroup }: ScanUnit): void {
    if (this.#looking.has(rowGroup)) return;
    assert(rowGroup.rows <= rowGroupRowsMax, `${rowGroup.file} has a row group of ${rowGroup.rows} rows`);
    const share = shareOf(this.#plan, rowGroup);
    this.#looking.set(rowGroup, {
      looking: this.#filter.look(rowGroup, share),
      unitsLeft: share.units,
    });
  }

  async #take({ rowGroup }: ScanUnit): Promise<Selection> {
    const { pace, stats } = this.#work;
    await pace.pause();
    const startMs = performance.now();
    const begun = this.#looking.get(rowGroup);
    assert(begun !== undefined, 'a unit is taken after it was begun');
    const selection = await begun.looking.selection();
    begun.unitsLeft--;
    if (begun.unitsLeft === 0) this.#looking.delete(rowGroup);
    stats.selectMs += performance.now() - startMs;
    return selection;
  }
}
