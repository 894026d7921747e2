import type { Position } from '../core/cursor.js';
import { LogstrataError } from '../core/errors.js';
import { farKeptRowsMax, heldBytesMax } from '../core/limits.js';
import { MatchFinder } from './match-finder.js';
import type { RowGroupFilter, ScanWork } from './row-group-filter.js';
import type { Matches } from './selection.js';
import { planScan, rangeOfRun, type ScanPlan, type Walk, indexOfRuns } from './plan.js';
import { partsOf, positionIn } from './json-lines.js';
import type { CountQuery } from './count-query.js';
import type { Tally } from './tally.js';
import type { Schema } from '../core/schema.js';
import type { RowGroup } from '../store/reading/snapshot.js';
import { fieldsOf, type PreparedPredicates } from './predicate.js';

/** What a scan reads of rows on other machines. */
export interface RemoteWish {
  readonly schema: Schema;
  readonly predicates: PreparedPredicates;
  /** The fields of matching rows that are read. */
  readonly fields: readonly number[];
}

/** Reads the remote rows of a plan, in its direction. */
export interface RemoteReader {
  /**
   * Yields the matches of the runs [first, end), which are all remote. They may be more than `limit`, which returns the number of rows that
   * are still wanted.
   */
  matches(first: number, end: number, limit: () => number): AsyncGenerator<Matches, void>;
  /** Cancels what is pending. */
  close(): void;
}

/** Adds what another machine has counted to a tally. Returns the number of rows that it is. */
export type RemoteCount = (tally: Tally) => number;

/** Where rows come from that are in no file of this machine. */
export interface RemoteSource {
  reader(plan: ScanPlan, filter: RowGroupFilter, work: ScanWork, wish: RemoteWish): RemoteReader;
  /** Has the remote matches of a plan counted where they are; null where the rows have to be read instead. */
  count(
    plan: ScanPlan,
    wish: Omit<RemoteWish, 'fields'> & { readonly query: CountQuery },
    work: ScanWork,
  ): Promise<readonly RemoteCount[] | null>;
}

/** What a finder works with. */
export interface FinderWork extends ScanWork {
  /** Undefined where none is configured: then plans may still have remote rows, which can't be read. */
  readonly remote?: RemoteSource | undefined;
}

/** A part of a plan whose runs are all remote, or all in files or hot. */
interface Stretch {
  readonly part: ScanPlan;
  readonly isRemote: boolean;
}

/** Finds the matches of an answer. */
export interface Finder {
  matches(limit: number): AsyncGenerator<Matches, void>;
}

/**
 * Chooses the finder for a plan. Plans without remote runs are searched as if there were none.
 *
 * @param wish null to skip the remote runs of a plan that goes forward
 */
export function finderOf(
  plan: ScanPlan,
  filter: RowGroupFilter,
  work: FinderWork,
  wish: RemoteWish | null,
  Units?: new (plan: ScanPlan) => Walk,
): Finder {
  return indexOfRuns(plan.runs).hasRemote(plan.first, plan.end)
    ? new TieredFinder(plan, filter, work, wish, Units)
    : new MatchFinder(plan, filter, work, Units);
}

/** The last matches, newest first, or null where they are too many to keep, and the position of the first of them. */
interface LastMatches {
  readonly kept: Matches[] | null;
  readonly start: Position;
}

/**
 * Finds the matches of a plan that has remote runs. It searches the stretches one after another, each for the rows that are still missing. For
 * the last rows it goes backward and keeps the matches. Where they would take too much memory, it only finds the position of the first one,
 * and then reads forward from there.
 */
class TieredFinder implements Finder {
  readonly #wish: RemoteWish | null;

  constructor(
    private readonly plan: ScanPlan,
    private readonly filter: RowGroupFilter,
    private readonly work: FinderWork,
    wish: RemoteWish | null,
    private readonly Units: (new (plan: ScanPlan) => Walk) | undefined,
  ) {
    this.#wish = wish && { ...wish, fields: [...new Set([...wish.fields, ...fieldsOf(wish.predicates)])] };
  }

  async *matches(limit: number): AsyncGenerator<Matches, void> {
    let plan = this.plan;
    if (plan.direction === 'backward') {
      const { runs, first, end } = plan;
      const isFiltered = this.#wish!.predicates.clauses.length > 0 || indexOfRuns(runs).hides(first, end);
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
  async *#found(plan: ScanPlan, wish: RemoteWish | null, limit: number): AsyncGenerator<Matches, void> {
    let reader: RemoteReader | undefined;
    let left = limit;
    try {
      for (const { part, isRemote } of stretchesOf(plan)) {
        if (left === 0) return;
        if (isRemote && wish === null) continue;
        if (isRemote) reader ??= this.#reader(plan, part.first, wish!);
        const found = isRemote
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

  /** @param run one of the remote runs */
  #reader(plan: ScanPlan, run: number, wish: RemoteWish): RemoteReader {
    const { remote } = this.work;
    if (remote !== undefined) return remote.reader(plan, this.filter, this.work, wish);
    throw notConfigured(plan.runs.at(run)!.rowGroup.remote!.agent);
  }

  async #last(limit: number): Promise<LastMatches> {
    const isLong = limit > farKeptRowsMax;
    const whole = this.#wish!;
    const wish = isLong ? { ...whole, fields: fieldsOf(whole.predicates) } : whole;
    const pages = new Set<RowGroup>();
    let kept: Matches[] | null = isLong ? null : [];
    let bytes = 0;
    let oldest: Matches | null = null;
    for await (const matches of this.#found(this.plan, wish, limit)) {
      oldest = matches;
      const { rowGroup } = matches.unit;
      if (kept === null) continue;
      if (rowGroup.bytes !== undefined && !pages.has(rowGroup)) {
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

/** The error for rows that are in a far tier while none is configured. */
export function notConfigured(agent: string): LogstrataError {
  return new LogstrataError(
    'unavailable',
    `records of agent ${agent} are in a far tier, but none is configured: set storage.far in config.yaml`,
  );
}

/** The stretches of a plan, in its direction. */
function* stretchesOf(plan: ScanPlan): Generator<Stretch> {
  const isRemoteAt = (index: number): boolean => plan.runs.at(index)!.rowGroup.remote !== undefined;
  for (let { first, end } = plan; first < end;) {
    const isForward = plan.direction === 'forward';
    const isRemote = isRemoteAt(isForward ? first : end - 1);
    let from = isForward ? first : end - 1;
    let to = from + 1;
    if (isForward) while (to < end && isRemoteAt(to) === isRemote) to++;
    else while (from > first && isRemoteAt(from - 1) === isRemote) from--;
    yield { part: { ...plan, first: from, end: to }, isRemote };
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
