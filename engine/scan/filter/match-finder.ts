import { assert } from '../../terms/assert.js';
import { probesAheadFactor, probesAheadMax, rowGroupRowsMax, rowGroupsAheadMax } from '../../terms/limits.js';
import { throwIfAborted } from '../../store/reading/pace.js';
import { scanUnits, shareOf } from '../plan/plan.js';
import type { ScanPlan, ScanUnit } from '../plan/plan.js';
import type { RowGroupFilter, ScanWork } from './row-group-filter.js';
import { compactSelection, countSelected, type Matches } from './selection.js';
import type { Selection } from './selection.js';
import type { RowGroup } from '../../store/reading/snapshot.js';
import { settled, type Steps } from '../../store/reading/steps.js';

interface BegunRowGroup {
  readonly looking: Steps<never, Selection>;
  /** What that has given; a row group may have several units. */
  selection: Selection | undefined;
  unitsLeft: number;
}

/**
 * Walks the units of a plan for their matches. With threads it also begins to look at units ahead: at one more after each unit whose
 * matches have been taken. So a scan that ends early has looked at no more than twice as many as it needed.
 */
export class MatchFinder {
  readonly #plan: ScanPlan;
  readonly #filter: RowGroupFilter;
  readonly #work: ScanWork;
  /** Row groups that are being looked at, or have further units. */
  readonly #begunRowGroups = new Map<RowGroup, BegunRowGroup>();
  readonly #units: Iterator<ScanUnit, void>;
  /** Units that are being looked at, the next one first. */
  readonly #begun: ScanUnit[] = [];
  /** Units behind those, of which the filters are being asked. */
  readonly #probed: ScanUnit[] = [];
  #unitsTaken = 0;

  constructor(plan: ScanPlan, filter: RowGroupFilter, work: ScanWork) {
    this.#plan = plan;
    this.#filter = filter;
    this.#work = work;
    this.#units = scanUnits(plan);
  }

  /** The matches of an answer of `limit` rows, in its order. */
  *matches(limit: number): Steps<Matches> {
    if (this.#plan.direction === 'forward') {
      yield* this.#first(limit);
      return;
    }
    const newest = yield* this.#last(limit);
    // Each is removed from the list before it is written, so that a long answer gives memory back as it proceeds.
    for (let matches = newest.pop(); matches !== undefined; matches = newest.pop()) yield matches;
  }

  /** The first `limit` matches, as they are found. */
  *#first(limit: number): Steps<Matches> {
    let left = limit;
    while (left > 0) {
      const unit = this.#next();
      if (unit === undefined) return;
      const selection = yield* this.#take(unit);
      const take = Math.min(left, countSelected(selection, unit.ranges));
      if (take === 0) continue;
      yield { unit, selection, skip: 0, take };
      left -= take;
    }
  }

  /** The last `limit` matches, newest unit first. */
  *#last(limit: number): Steps<never, Matches[]> {
    const found: Matches[] = [];
    let left = limit;
    while (left > 0) {
      const unit = this.#next();
      if (unit === undefined) break;
      const selection = yield* this.#take(unit);
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
    }
    return found;
  }

  /** The unit to be taken next. It, and what may follow it, is being looked at. */
  #next(): ScanUnit | undefined {
    const { threads, pace } = this.#work;
    const aheadMax = threads === null ? 1 : rowGroupsAheadMax;
    while (this.#begun.length <= Math.min(this.#unitsTaken, aheadMax - 1)) {
      const unit = this.#nextProbed();
      if (unit === undefined) break;
      // The query may have been aborted during the last wait.
      throwIfAborted(pace.signal);
      this.#begin(unit);
      this.#begun.push(unit);
    }
    this.#unitsTaken++;
    return this.#begun.shift();
  }

  /**
   * The unit behind those that have been begun. The filters of many row groups are asked together, of ever more as the scan goes on:
   * where they rule out nearly all, it waits for them a few times and not for each.
   */
  #nextProbed(): ScanUnit | undefined {
    if (this.#probed.length > 0) return this.#probed.shift();
    const { threads, pace } = this.#work;
    const count =
      threads === null ? 1 : Math.min(probesAheadMax, Math.max(1, probesAheadFactor * this.#unitsTaken));
    for (let i = 0; i < count; i++) {
      const next = this.#units.next();
      if (next.done === true) break;
      if (threads !== null) {
        throwIfAborted(pace.signal);
        this.#filter.probeAhead(next.value.rowGroup);
      }
      this.#probed.push(next.value);
    }
    return this.#probed.shift();
  }

  #begin({ rowGroup }: ScanUnit): void {
    if (this.#begunRowGroups.has(rowGroup)) return;
    assert(rowGroup.rows <= rowGroupRowsMax, `${rowGroup.file} has a row group of ${rowGroup.rows} rows`);
    const share = shareOf(this.#plan, rowGroup);
    this.#begunRowGroups.set(rowGroup, {
      looking: this.#filter.look(rowGroup, share),
      selection: undefined,
      unitsLeft: share.units,
    });
  }

  *#take({ rowGroup }: ScanUnit): Steps<never, Selection> {
    const { pace, stats } = this.#work;
    yield* settled(pace.pause());
    const startMs = performance.now();
    const begun = this.#begunRowGroups.get(rowGroup);
    assert(begun !== undefined, 'a unit is taken after it was begun');
    begun.selection ??= yield* begun.looking;
    begun.unitsLeft--;
    if (begun.unitsLeft === 0) this.#begunRowGroups.delete(rowGroup);
    stats.selectMs += performance.now() - startMs;
    return begun.selection;
  }
}
