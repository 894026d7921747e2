import { assert } from '../core/errors.js';
import { searchGrowth, probesAheadMax, rowGroupRowsMax, rowGroupsAheadMax } from '../core/limits.js';
import { throwIfAborted } from '../store/reading/pace.js';
import { UnitWalk, type RowGroupShare, type ScanPlan, type ScanUnit, type Walk } from './plan.js';
import type { RowGroupFilter, ScanWork } from './row-group-filter.js';
import { compactSelection, countSelected, type Matches, type Selection } from './selection.js';
import type { RowGroup } from '../store/reading/snapshot.js';

/** A row group of units that were taken. */
interface BegunRowGroup {
  readonly share: RowGroupShare;
  unitsLeft: number;
  /** Its matching rows, once they are looked for. They are kept because a row group may have several units. */
  selection: Promise<Selection> | undefined;
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
 * are skipped. Threads look at units ahead: at one more after each unit that is done. So a scan that ends early has looked at at most twice
 * as many units as it needed.
 */
export class MatchFinder {
  /** Row groups of the units that were taken, while they have units left. */
  readonly #begunRowGroups = new Map<RowGroup, BegunRowGroup>();
  /** Units that were taken, the next one first. */
  readonly #begun: ScanUnit[] = [];
  readonly #units: Walk;
  /** A second walk, which is `#considered` units ahead of `#units`. */
  readonly #unitsAhead: Walk;
  #considered = 0;
  /** Settles when the filters of the considered units have been asked; null when nothing is pending. */
  #asking: Promise<unknown> | null = null;
  /** Number of units that were taken or skipped, and of those that were taken. */
  #gone = 0;
  #taken = 0;

  /** @param Units the class that walks the plan */
  constructor(
    private readonly plan: ScanPlan,
    private readonly filter: RowGroupFilter,
    private readonly work: ScanWork,
    Units: new (plan: ScanPlan) => Walk = UnitWalk,
  ) {
    this.#units = new Units(plan);
    this.#unitsAhead = new Units(plan);
  }

  /** Yields the matches of an answer of `limit` rows, in the order of the answer. */
  async *matches(limit: number): AsyncGenerator<Matches, void> {
    const isForward = this.plan.direction === 'forward';
    const newest: Matches[] = [];
    for await (const matches of this.found(limit)) {
      if (isForward) yield matches;
      else newest.push(matches);
    }
    // Each is removed from the list before it is yielded, so that a long answer frees memory as it proceeds.
    for (let matches = newest.pop(); matches !== undefined; matches = newest.pop()) yield matches;
  }

  /** Yields the first `limit` matches in the direction of the plan: backward, those are the last, newest unit first. */
  async *found(limit: number): AsyncGenerator<Matches, void> {
    const isForward = this.plan.direction === 'forward';
    for (let left = limit; left > 0;) {
      const next = await this.#next();
      if (next === undefined) return;
      const { unit, selection } = next;
      const count = countSelected(selection, unit.ranges);
      if (count === 0) continue;
      const take = Math.min(left, count);
      left -= take;
      if (isForward) yield { unit, selection, skip: 0, take };
      else
        yield { unit, selection: compactSelection(selection, unit.ranges, count), skip: count - take, take };
    }
  }

  /** The next unit that the filters and bounds have not ruled out, with its matches; undefined at the end. */
  async #next(): Promise<SelectedUnit | undefined> {
    const { pace, stats } = this.work;
    await pace.pause();
    const startMs = performance.now();
    await this.#takeUnits();
    this.#lookAhead();
    const unit = this.#begun.shift();
    const selection = unit === undefined ? undefined : await this.#selectionOf(unit.rowGroup);
    stats.selectMs += performance.now() - startMs;
    if (unit === undefined || selection === undefined) return undefined;
    this.#gone++;
    return { unit, selection };
  }

  /** Takes the next unit, and some of those after it. */
  async #takeUnits(): Promise<void> {
    const { pruning } = this.filter;
    const { pace, threads } = this.work;
    const aheadMax = threads === null ? 1 : rowGroupsAheadMax;
    while (this.#begun.length <= Math.min(this.#gone, aheadMax - 1)) {
      const isNew = this.#considered === 0;
      if (isNew) await this.#considerNext();
      // If a unit has been taken, let it be given before waiting for filters, and before considering further row groups whose filters are
      // in memory.
      if (this.#begun.length > 0 && (this.#asking !== null || (isNew && pruning.asks))) return;
      if (this.#asking !== null) await this.#asking;
      const { rowGroup } = this.#units;
      if (rowGroup === undefined) return;
      this.#considered--;
      if (pruning.isRuledOut(rowGroup)) {
        this.#units.skip();
        this.#gone++;
        if (this.#gone % unitsBetweenPauses === 0) await pace.pause();
        continue;
      }
      // The query may have been aborted during the last wait.
      throwIfAborted(pace.signal);
      const unit = this.#units.take();
      if (unit !== null) this.#begin(unit);
    }
  }

  /**
   * Asks the filters of the next units. The number of units grows as the scan goes on, so that a scan whose filters rule out nearly
   * everything waits a few times instead of once per unit. If the first unit does not have a whole value, all are asked at once: such a value
   * is mostly in one unit or in none.
   */
  async #considerNext(): Promise<void> {
    const { pruning } = this.filter;
    const { threads, pace } = this.work;
    const isAlone = threads === null || !pruning.asks;
    const isDenied = this.#gone > 0 && this.#taken === 0 && pruning.asksWholeValues;
    const growth = isDenied ? probesAheadMax : searchGrowth;
    const count = isAlone ? 1 : Math.min(probesAheadMax, Math.max(1, growth * this.#gone));
    for (; this.#considered < count; this.#considered++) {
      const { rowGroup } = this.#unitsAhead;
      if (rowGroup === undefined) break;
      if (this.#considered % unitsBetweenPauses === 0) await pace.pause();
      throwIfAborted(pace.signal);
      pruning.consider(rowGroup);
      this.#unitsAhead.skip();
    }
    this.#asking = pruning.ask();
    void this.#asking?.then(() => (this.#asking = null));
  }

  #begin(unit: ScanUnit): void {
    const { rowGroup } = unit;
    this.#begun.push(unit);
    this.#taken++;
    if (this.#begunRowGroups.has(rowGroup)) return;
    assert(rowGroup.rows <= rowGroupRowsMax, `${rowGroup.file} has a row group of ${rowGroup.rows} rows`);
    const share = this.#units.shareOf(rowGroup);
    this.#begunRowGroups.set(rowGroup, { share, unitsLeft: share.units, selection: undefined });
  }

  /** Has threads look at row groups before their rows are needed, in their order. */
  #lookAhead(): void {
    for (const { rowGroup } of this.#begun) {
      const begun = this.#begunRowGroups.get(rowGroup)!;
      if (begun.selection !== undefined) continue;
      if (!this.filter.isForThreads(rowGroup)) return;
      begun.selection = this.filter.look(rowGroup, begun.share);
      this.work.threads!.track(begun.selection);
    }
  }

  #selectionOf(rowGroup: RowGroup): Promise<Selection> {
    const begun = this.#begunRowGroups.get(rowGroup);
    assert(begun !== undefined, 'a unit is given after it was taken');
    begun.unitsLeft--;
    if (begun.unitsLeft === 0) this.#begunRowGroups.delete(rowGroup);
    return (begun.selection ??= this.filter.look(rowGroup, begun.share));
  }
}
