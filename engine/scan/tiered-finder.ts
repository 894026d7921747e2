import type { Position } from '../core/cursor.js';
import { farKeptRowsMax, heldBytesMax } from '../core/limits.js';
import { MatchFinder } from './match-finder.js';
import type { RowGroupFilter, ScanWork } from './row-group-filter.js';
import type { Matches } from './selection.js';
import { planScan, rangeOfRun, type ScanPlan, type Walk, indexOfRuns } from './plan.js';
import { partsOf, positionIn } from './json-lines.js';
import { areFiltered, fieldsOf } from './far-condition.js';
import { FarPage } from './far-page.js';
import { FarReader, type FarWish } from './far-reader.js';

/** A part of a plan whose runs are all in the far tier, or all in files or hot. */
interface Stretch {
  readonly part: ScanPlan;
  readonly isFar: boolean;
}

/** Finds the matches of an answer. */
export interface Finder {
  matches(limit: number): AsyncGenerator<Matches, void>;
}

/**
 * Chooses the finder for a plan. Plans without far runs are searched as if there were no far tier.
 *
 * @param wish null to skip the far runs of a plan that goes forward
 */
export function finderOf(
  plan: ScanPlan,
  filter: RowGroupFilter,
  work: ScanWork,
  wish: FarWish | null,
  Units?: new (plan: ScanPlan) => Walk,
): Finder {
  return indexOfRuns(plan.runs).hasFar(plan.first, plan.end)
    ? new TieredFinder(plan, filter, work, wish, Units)
    : new MatchFinder(plan, filter, work, Units);
}

/** The last matches, newest first, or null where they are too many to keep, and the position of the first of them. */
interface LastMatches {
  readonly kept: Matches[] | null;
  readonly start: Position;
}

/**
 * Finds the matches of a plan that has far runs. It searches the stretches one after another, each for the rows that are still missing. For
 * the last rows it goes backward and keeps the matches. Where they would take too much memory, it only finds the position of the first one,
 * and then reads forward from there.
 */
class TieredFinder implements Finder {
  readonly #wish: FarWish | null;

  constructor(
    private readonly plan: ScanPlan,
    private readonly filter: RowGroupFilter,
    private readonly work: ScanWork,
    wish: FarWish | null,
    private readonly Units: (new (plan: ScanPlan) => Walk) | undefined,
  ) {
    this.#wish = wish && { ...wish, fields: [...new Set([...wish.fields, ...fieldsOf(wish.predicates)])] };
  }

  async *matches(limit: number): AsyncGenerator<Matches, void> {
    let plan = this.plan;
    if (plan.direction === 'backward') {
      const isFiltered = areFiltered(this.#wish!.predicates);
      const { kept, start } = isFiltered
        ? await this.#last(limit)
        : { kept: null, start: startOfLast(plan, limit) };
      for (let next = kept?.pop(); next !== undefined; next = kept?.pop()) yield next;
      if (kept !== null) return;
      plan = planScan(plan.runs, {
        after: { ...start, ordinal: start.ordinal - 1 },
        before: plan.before,
        limit: 0,
        predicates: [],
      });
    }
    for await (const matches of this.#found(plan, this.#wish, limit)) yield matches;
  }

  /** Yields the first `limit` matches in the direction of the plan. */
  async *#found(plan: ScanPlan, wish: FarWish | null, limit: number): AsyncGenerator<Matches, void> {
    const reader = wish && new FarReader(plan, this.filter, this.work, wish);
    let left = limit;
    try {
      for (const { part, isFar } of stretchesOf(plan)) {
        if (left === 0) return;
        if (isFar && reader === null) continue;
        const found = isFar
          ? reader!.matches(part.first, part.end, () => left)
          : new MatchFinder(part, this.filter, this.work, this.Units).found(left);
        for await (const matches of found) {
          const take = Math.min(left, matches.take);
          left -= take;
          const skipped = plan.direction === 'forward' ? 0 : matches.take - take;
          if (take > 0) yield { ...matches, skip: matches.skip + skipped, take };
        }
      }
    } finally {
      reader?.close();
    }
  }

  async #last(limit: number): Promise<LastMatches> {
    const isLong = limit > farKeptRowsMax;
    const whole = this.#wish!;
    const wish = isLong ? { ...whole, fields: fieldsOf(whole.predicates) } : whole;
    const pages = new Set<FarPage>();
    let kept: Matches[] | null = isLong ? null : [];
    let bytes = 0;
    let oldest: Matches | null = null;
    for await (const matches of this.#found(this.plan, wish, limit)) {
      oldest = matches;
      const { rowGroup } = matches.unit;
      if (kept === null) continue;
      if (rowGroup instanceof FarPage && !pages.has(rowGroup)) {
        pages.add(rowGroup);
        bytes += rowGroup.bytes;
      }
      kept.push(matches);
      if (bytes <= heldBytesMax) continue;
      kept = null;
      pages.clear();
    }
    if (oldest === null) return { kept: [], start: { partition: 0, ordinal: 0 } };
    return { kept, start: positionOfFirst(oldest) };
  }
}

/** The stretches of a plan, in its direction. */
function* stretchesOf(plan: ScanPlan): Generator<Stretch> {
  const isFarAt = (index: number): boolean => plan.runs.at(index)!.rowGroup.far !== undefined;
  for (let { first, end } = plan; first < end;) {
    const isForward = plan.direction === 'forward';
    const isFar = isFarAt(isForward ? first : end - 1);
    let from = isForward ? first : end - 1;
    let to = from + 1;
    if (isForward) while (to < end && isFarAt(to) === isFar) to++;
    else while (from > first && isFarAt(from - 1) === isFar) from--;
    yield { part: { ...plan, first: from, end: to }, isFar };
    if (isForward) first = to;
    else end = from;
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
  return positionIn(part!, part!.first);
}
