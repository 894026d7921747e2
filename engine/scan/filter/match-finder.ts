import { assert } from '../../terms/assert.js';
import { probesAheadFactor, probesAheadMax, rowGroupRowsMax, rowGroupsAheadMax } from '../../terms/limits.js';
import { throwIfAborted } from '../../store/reading/pace.js';
import { UnitWalk } from '../plan/plan.js';
import type { ScanPlan, ScanUnit, Walk } from '../plan/plan.js';
import type { RowGroupFilter, ScanWork } from './row-group-filter.js';
import { compactSelection, countSelected, type Matches } from './selection.js';
import type { Selection } from './selection.js';
import type { RowGroup } from '../../store/reading/snapshot.js';
import { settled, type Steps } from '../../store/reading/steps.js';

interface BegunRowGroup {
  readonly looking: Steps<never, Selection>;
  /** The result of `looking`, once it is known. It is kept because a row group may have several units. */
  selection: Selection | undefined;
  unitsLeft: number;
}

/** Considering or skipping a unit takes a microsecond at most; calling `Pace.pause` takes as long as several units. */
const unitsBetweenPauses = 256;

/** A unit, and the matching rows of its row group. */
interface SelectedUnit {
  readonly unit: ScanUnit;
  readonly selection: Selection;
}

/**
 * Walks the units of a plan and finds their matches. The filters of many row groups are asked together, and row groups that they rule out
 * are skipped. With threads it also begins to filter units ahead: one more after each unit that is done. So a scan that ends early has
 * filtered at most twice as many units as it needed.
 */
export class MatchFinder {
  readonly #plan: ScanPlan;
  readonly #filter: RowGroupFilter;
  readonly #work: ScanWork;
  /** Row groups whose filtering has begun and that have units left. */
  readonly #begunRowGroups = new Map<RowGroup, BegunRowGroup>();
  /** Units whose filtering has begun, the next one first. */
  readonly #begun: ScanUnit[] = [];
  readonly #units: Walk;
  /** A second walk, which is `#considered` units ahead of `#units`. */
  readonly #unitsAhead: Walk;
  #considered = 0;
  /** Settles when the filters of the considered units have been asked; null when nothing is pending. */
  #asking: Promise<unknown> | null = null;
  /** Number of units that were taken or skipped. */
  #gone = 0;

  /** @param Units the class that walks the plan */
  constructor(
    plan: ScanPlan,
    filter: RowGroupFilter,
    work: ScanWork,
    Units: new (plan: ScanPlan) => Walk = UnitWalk,
  ) {
    this.#plan = plan;
    this.#filter = filter;
    this.#work = work;
    this.#units = new Units(plan);
    this.#unitsAhead = new Units(plan);
  }

  /** Yields the matches of an answer of `limit` rows, in the order of the answer. */
  *matches(limit: number): Steps<Matches> {
    if (this.#plan.direction === 'forward') {
      yield* this.#first(limit);
      return;
    }
    const newest = yield* this.newest(limit);
    // Each is removed from the list before it is yielded, so that a long answer frees memory as it proceeds.
    for (let matches = newest.pop(); matches !== undefined; matches = newest.pop()) yield matches;
  }

  /** Yields the first `limit` matches as they are found. */
  *#first(limit: number): Steps<Matches> {
    let left = limit;
    while (left > 0) {
      const next = yield* this.#next();
      if (next === undefined) return;
      const { unit, selection } = next;
      const take = Math.min(left, countSelected(selection, unit.ranges));
      if (take === 0) continue;
      yield { unit, selection, skip: 0, take };
      left -= take;
    }
  }

  /** Finds the last `limit` matches. Returns them newest unit first. */
  *newest(limit: number): Steps<never, Matches[]> {
    const found: Matches[] = [];
    let left = limit;
    while (left > 0) {
      const next = yield* this.#next();
      if (next === undefined) break;
      const { unit, selection } = next;
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

  /** The next unit that the filters and bounds have not ruled out, with its matches; undefined at the end. */
  *#next(): Steps<never, SelectedUnit | undefined> {
    const { pace, stats } = this.#work;
    yield* settled(pace.pause());
    const startMs = performance.now();
    yield* this.#beginAhead();
    const unit = this.#begun.shift();
    const selection = unit === undefined ? undefined : yield* this.#selectionOf(unit.rowGroup);
    stats.selectMs += performance.now() - startMs;
    if (unit === undefined || selection === undefined) return undefined;
    this.#gone++;
    return { unit, selection };
  }

  /** Begins to filter the next unit, and some of those after it. */
  *#beginAhead(): Steps<never> {
    const { pruning } = this.#filter;
    const aheadMax = this.#work.threads === null ? 1 : rowGroupsAheadMax;
    while (this.#begun.length <= Math.min(this.#gone, aheadMax - 1)) {
      const isNew = this.#considered === 0;
      if (isNew) yield* this.#considerNext();
      // If a unit has been begun, let it be taken before waiting for filters, and before considering further row groups whose filters are
      // in memory.
      if (this.#begun.length > 0 && (this.#asking !== null || (isNew && pruning.asks))) return;
      if (this.#asking !== null) yield* settled(this.#asking);
      const { rowGroup } = this.#units;
      if (rowGroup === undefined) return;
      this.#considered--;
      if (pruning.isRuledOut(rowGroup)) {
        this.#units.skip();
        yield* this.#countSkipped();
        continue;
      }
      // The query may have been aborted during the last wait.
      throwIfAborted(this.#work.pace.signal);
      const unit = this.#units.take();
      if (unit !== null) this.#begin(unit);
    }
  }

  /**
   * Asks the filters of the next units. The number of units grows as the scan goes on, so that a scan whose filters rule out nearly
   * everything waits a few times instead of once per unit.
   */
  *#considerNext(): Steps<never> {
    const { pruning } = this.#filter;
    const { threads, pace } = this.#work;
    const isAlone = threads === null || !pruning.asks;
    const count = isAlone ? 1 : Math.min(probesAheadMax, Math.max(1, probesAheadFactor * this.#gone));
    for (; this.#considered < count; this.#considered++) {
      const { rowGroup } = this.#unitsAhead;
      if (rowGroup === undefined) break;
      if (this.#considered % unitsBetweenPauses === 0) yield* settled(pace.pause());
      throwIfAborted(pace.signal);
      pruning.consider(rowGroup);
      this.#unitsAhead.skip();
    }
    this.#asking = pruning.ask();
    void this.#asking?.then(() => (this.#asking = null));
  }

  /** Counts a skipped unit. */
  *#countSkipped(): Steps<never> {
    this.#gone++;
    if (this.#gone % unitsBetweenPauses === 0) yield* settled(this.#work.pace.pause());
  }

  #begin(unit: ScanUnit): void {
    const { rowGroup } = unit;
    this.#begun.push(unit);
    if (this.#begunRowGroups.has(rowGroup)) return;
    assert(rowGroup.rows <= rowGroupRowsMax, `${rowGroup.file} has a row group of ${rowGroup.rows} rows`);
    const share = this.#units.shareOf(rowGroup);
    this.#begunRowGroups.set(rowGroup, {
      looking: this.#filter.look(rowGroup, share),
      selection: undefined,
      unitsLeft: share.units,
    });
  }

  *#selectionOf(rowGroup: RowGroup): Steps<never, Selection> {
    const begun = this.#begunRowGroups.get(rowGroup);
    assert(begun !== undefined, 'a unit is taken after it was begun');
    begun.selection ??= yield* begun.looking;
    begun.unitsLeft--;
    if (begun.unitsLeft === 0) this.#begunRowGroups.delete(rowGroup);
    return begun.selection;
  }
}
