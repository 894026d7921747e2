import type { Position } from '../../terms/cursor.js';
import { farKeptBytesMax, farKeptRowsMax } from '../../terms/far-limits.js';
import { MatchFinder } from '../filter/match-finder.js';
import type { RowGroupFilter, ScanWork } from '../filter/row-group-filter.js';
import type { Matches } from '../filter/selection.js';
import { planScan, rangeOfRun, type ScanPlan, type Walk } from '../plan/plan.js';
import { indexOfRuns } from '../plan/run-index.js';
import { eachMade, type Steps } from '../../store/reading/steps.js';
import { partsOf } from '../write/line-parts.js';
import { areFiltered, fieldsOf } from './far-condition.js';
import { FarPage } from './far-page.js';
import { FarReader, type FarWish } from './far-reader.js';

/** Runs [first, end) of a plan that are all in the far tier, or all in files or hot. */
interface Stretch {
  readonly first: number;
  readonly end: number;
  readonly isFar: boolean;
}

/** Finds the matches of an answer. */
export interface Finder {
  matches(limit: number): Steps<Matches>;
}

/** Chooses the finder for a plan. Plans without far runs are searched as if there were no far tier. */
export function finderOf(
  plan: ScanPlan,
  filter: RowGroupFilter,
  work: ScanWork,
  wish: FarWish,
  Units?: new (plan: ScanPlan) => Walk,
): Finder {
  return indexOfRuns(plan.runs).hasFar(plan.first, plan.end)
    ? new TieredFinder(plan, filter, work, wish, Units)
    : new MatchFinder(plan, filter, work, Units);
}

/** A finder that skips the far runs of a plan. */
export function nearFinder(
  plan: ScanPlan,
  filter: RowGroupFilter,
  work: ScanWork,
  Units: new (plan: ScanPlan) => Walk,
): Finder {
  return {
    *matches(limit) {
      for (const { first, end, isFar } of stretchesOf(plan))
        if (!isFar) yield* new MatchFinder({ ...plan, first, end }, filter, work, Units).matches(limit);
    },
  };
}

/**
 * Finds the matches of a plan that has far runs. It searches the stretches one after another, each for the rows that are still missing. For
 * the last rows it goes backward and keeps the matches. Where they would take too much memory, it only finds the position of the first one,
 * and then reads forward from there.
 */
class TieredFinder implements Finder {
  readonly #plan: ScanPlan;
  readonly #filter: RowGroupFilter;
  readonly #work: ScanWork;
  readonly #wish: FarWish;
  readonly #Units: (new (plan: ScanPlan) => Walk) | undefined;

  constructor(
    plan: ScanPlan,
    filter: RowGroupFilter,
    work: ScanWork,
    wish: FarWish,
    Units: (new (plan: ScanPlan) => Walk) | undefined,
  ) {
    this.#plan = plan;
    this.#filter = filter;
    this.#work = work;
    const asked = new Set([...wish.fields, ...fieldsOf(wish.predicates)]);
    this.#wish = { ...wish, fields: [...asked] };
    this.#Units = Units;
  }

  *matches(limit: number): Steps<Matches> {
    if (this.#plan.direction === 'forward') return yield* this.#first(this.#plan, limit);
    if (!areFiltered(this.#wish.predicates)) {
      return yield* this.#first(this.#from(startOfLast(this.#plan, limit)), limit);
    }
    const kept = yield* this.#last(limit);
    if (kept.matches === null) return yield* this.#first(this.#from(kept.start), limit);
    for (let next = kept.matches.pop(); next !== undefined; next = kept.matches.pop()) yield next;
  }

  /** The plan for reading forward from a position on. */
  #from({ partition, ordinal }: Position): ScanPlan {
    const { runs, before } = this.#plan;
    const after = { partition, ordinal: ordinal - 1 };
    return planScan(runs, { after, before, limit: 0, predicates: [] });
  }

  *#first(plan: ScanPlan, limit: number): Steps<Matches> {
    const reader = new FarReader(plan, this.#filter, this.#work, this.#wish);
    let left = limit;
    function* taken(matches: Matches): Steps<Matches> {
      const take = Math.min(left, matches.take);
      left -= take;
      if (take > 0) yield take === matches.take ? matches : { ...matches, take };
    }
    try {
      for (const stretch of stretchesOf(plan)) {
        if (left === 0) return;
        const { first, end, isFar } = stretch;
        const source = isFar
          ? reader.matches(first, end, () => left)
          : this.#near({ ...plan, first, end }).matches(left);
        yield* eachMade(source, taken);
      }
    } finally {
      reader.close();
    }
  }

  #near(plan: ScanPlan): MatchFinder {
    return new MatchFinder(plan, this.#filter, this.#work, this.#Units);
  }

  /** The last matches, newest first; null where they are too many to keep. `start` is the position of the first of them. */
  *#last(limit: number): Steps<never, { readonly matches: Matches[] | null; readonly start: Position }> {
    const plan = this.#plan;
    const isLong = limit > farKeptRowsMax;
    const fields = isLong ? fieldsOf(this.#wish.predicates) : this.#wish.fields;
    const reader = new FarReader(plan, this.#filter, this.#work, { ...this.#wish, fields });
    const kept: Matches[] = [];
    const pages = new Set<FarPage>();
    let left = limit;
    let bytes = 0;
    let isKept = !isLong;
    let oldest: Matches | null = null;
    const take = (matches: Matches): void => {
      const count = Math.min(left, matches.take);
      if (count === 0) return;
      left -= count;
      oldest = { ...matches, skip: matches.skip + matches.take - count, take: count };
      const { rowGroup } = matches.unit;
      if (rowGroup instanceof FarPage && !pages.has(rowGroup)) {
        pages.add(rowGroup);
        bytes += rowGroup.bytes;
      }
      if (bytes > farKeptBytesMax) isKept = false;
      if (isKept) kept.push(oldest);
      else {
        kept.length = 0;
        pages.clear();
      }
    };
    try {
      for (const { first, end, isFar } of stretchesOf(plan)) {
        if (left === 0) break;
        if (isFar)
          yield* eachTaken(
            reader.matches(first, end, () => left),
            take,
          );
        else for (const matches of yield* this.#near({ ...plan, first, end }).newest(left)) take(matches);
      }
    } finally {
      reader.close();
    }
    if (oldest === null) return { matches: [], start: { partition: 0, ordinal: 0 } };
    return { matches: isKept ? kept : null, start: positionOfFirst(oldest) };
  }
}

function* eachTaken(source: Steps<Matches>, take: (matches: Matches) => void): Steps<never> {
  yield* eachMade(source, function* (matches): Steps<never> {
    take(matches);
  });
}

/** The stretches of a plan, in its direction. */
function* stretchesOf({ runs, first, end, direction }: ScanPlan): Generator<Stretch> {
  const isFarAt = (index: number): boolean => runs.at(index)!.rowGroup.far !== undefined;
  if (direction === 'forward') {
    for (let from = first; from < end;) {
      const isFar = isFarAt(from);
      let to = from + 1;
      while (to < end && isFarAt(to) === isFar) to++;
      yield { first: from, end: to, isFar };
      from = to;
    }
    return;
  }
  for (let to = end; to > first;) {
    const isFar = isFarAt(to - 1);
    let from = to - 1;
    while (from > first && isFarAt(from - 1) === isFar) from--;
    yield { first: from, end: to, isFar };
    to = from;
  }
}

/** The position of the first of the last `limit` rows of a plan. */
function startOfLast(plan: ScanPlan, limit: number): Position {
  let left = limit;
  let start: Position = { partition: 0, ordinal: 1 };
  for (let i = plan.end - 1; i >= plan.first && left > 0; i--) {
    const range = rangeOfRun(plan, i);
    if (range === null) continue;
    const rows = Math.min(left, range.rows);
    left -= rows;
    start = { partition: range.partition, ordinal: range.firstOrdinal + range.rows - rows };
  }
  return start;
}

function positionOfFirst(matches: Matches): Position {
  const [part] = partsOf({ ...matches, take: 1 });
  const { rows, first, partition, ordinalOfRow0 } = part!;
  return { partition, ordinal: ordinalOfRow0 + (rows === null ? first : rows[first]!) };
}
