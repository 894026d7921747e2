import type { Position } from '../../terms/cursor.js';
import { farKeptRowsMax } from '../../terms/far-limits.js';
import { heldBytesMax } from '../../terms/limits.js';
import { MatchFinder } from '../filter/match-finder.js';
import type { RowGroupFilter, ScanWork } from '../filter/row-group-filter.js';
import type { Matches } from '../job/selection.js';
import { planScan, rangeOfRun, type ScanPlan, type Walk } from '../plan/plan.js';
import { indexOfRuns } from '../plan/run-index.js';
import { partsOf } from '../job/line-parts.js';
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
  matches(limit: number): AsyncGenerator<Matches, void>;
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
    async *matches(limit) {
      for (const { first, end, isFar } of stretchesOf(plan)) {
        if (isFar) continue;
        const near = new MatchFinder({ ...plan, first, end }, filter, work, Units);
        for await (const matches of near.matches(limit)) yield matches;
      }
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

  async *matches(limit: number): AsyncGenerator<Matches, void> {
    let plan = this.#plan;
    if (plan.direction === 'backward') {
      let start: Position;
      if (areFiltered(this.#wish.predicates)) {
        const kept = await this.#last(limit);
        for (let next = kept.matches?.pop(); next !== undefined; next = kept.matches?.pop()) yield next;
        if (kept.matches !== null) return;
        start = kept.start;
      } else start = startOfLast(plan, limit);
      plan = this.#from(start);
    }
    const reader = new FarReader(plan, this.#filter, this.#work, this.#wish);
    let left = limit;
    try {
      for (const stretch of stretchesOf(plan)) {
        if (left === 0) return;
        for await (const matches of this.#matchesOf(stretch, plan, reader, () => left)) {
          const take = Math.min(left, matches.take);
          left -= take;
          if (take > 0) yield take === matches.take ? matches : { ...matches, take };
        }
      }
    } finally {
      reader.close();
    }
  }

  #matchesOf(
    { first, end, isFar }: Stretch,
    plan: ScanPlan,
    reader: FarReader,
    left: () => number,
  ): AsyncGenerator<Matches, void> {
    if (isFar) return reader.matches(first, end, left);
    return this.#near({ ...plan, first, end }).matches(left());
  }

  /** The plan for reading forward from a position on. */
  #from({ partition, ordinal }: Position): ScanPlan {
    const { runs, before } = this.#plan;
    const after = { partition, ordinal: ordinal - 1 };
    return planScan(runs, { after, before, limit: 0, predicates: [] });
  }

  #near(plan: ScanPlan): MatchFinder {
    return new MatchFinder(plan, this.#filter, this.#work, this.#Units);
  }

  /** The last matches, newest first; null where they are too many to keep. `start` is the position of the first of them. */
  async #last(limit: number): Promise<{ readonly matches: Matches[] | null; readonly start: Position }> {
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
      if (bytes > heldBytesMax) isKept = false;
      if (isKept) kept.push(oldest);
      else {
        kept.length = 0;
        pages.clear();
      }
    };
    try {
      for (const { first, end, isFar } of stretchesOf(plan)) {
        if (left === 0) break;
        if (isFar) for await (const matches of reader.matches(first, end, () => left)) take(matches);
        else for (const matches of await this.#near({ ...plan, first, end }).newest(left)) take(matches);
      }
    } finally {
      reader.close();
    }
    if (oldest === null) return { matches: [], start: { partition: 0, ordinal: 0 } };
    return { matches: isKept ? kept : null, start: positionOfFirst(oldest) };
  }
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
