import { formatCursor, type Position } from '../core/cursor.js';
import { LogstrataError } from '../core/errors.js';
import type { Query } from './query.js';
import type { RowGroup, SnapshotRun, SnapshotRuns } from '../store/reading/snapshot.js';

/** Consecutive rows of one row group whose positions are consecutive too, clipped to the cursor bounds. */
export interface RowRange {
  readonly firstRow: number;
  readonly rows: number;
  readonly partition: number;
  /** The ordinal of the row `firstRow`. */
  readonly firstOrdinal: number;
}

/** Ranges of one row group that follow one another in the order of positions, without rows of another row group between them. Ascending. */
export interface ScanUnit {
  readonly rowGroup: RowGroup;
  readonly ranges: readonly RowRange[];
}

/** The part of a row group that lies within the cursor bounds: the span of its rows, and the number of units that they are split into. */
export interface RowGroupShare {
  readonly firstRow: number;
  readonly endRow: number;
  readonly units: number;
}

/** The runs that a query has to look at, and the direction. Making a plan reads no files. */
export interface ScanPlan {
  readonly runs: SnapshotRuns;
  /** The runs [first, end) overlap the cursor bounds. */
  readonly first: number;
  readonly end: number;
  /** The cursor bounds, both exclusive. They clip the first and the last of these runs. */
  readonly after: Position | undefined;
  readonly before: Position | undefined;
  /** Number of rows within the cursor bounds, with those that are not answered. */
  readonly rows: number;
  /** Number of row groups that overlap the bounds. */
  readonly rowGroups: number;
  /**
   * Forward: matches are written in the order in which they are found. Backward: the newest matches are found first, and are written in
   * ascending order once the limit is reached or no run is left.
   */
  readonly direction: 'forward' | 'backward';
}

/**
 * Clips the runs to the open interval of the cursors, by binary search. Without `after`, or with `last`, the newest matches are wanted, and
 * a walk backward finds them. Where the limit is no less than the number of rows, a walk forward has the same result and need not keep the
 * matches until the end. Once the runs are indexed, planning takes hardly longer for more runs. For a query with an empty group, which no
 * record matches, nothing is looked at.
 */
export function planScan(runs: SnapshotRuns, query: Query): ScanPlan {
  const { after, before } = query;
  const index = indexOfRuns(runs);
  const first = after === undefined ? 0 : countWhile(runs, (run) => endsAtOrBefore(run, after));
  const isNever = query.predicates.some((each) => each.kind === 'any' && each.members.length === 0);
  const bound = before === undefined ? runs.length : countWhile(runs, (run) => startsBefore(run, before));
  const end = isNever ? first : Math.max(first, bound);
  let rows = 0;
  if (first < end) {
    const skipped = rowsUpTo(runs.at(first)!, after);
    const last = runs.at(end - 1)!;
    rows = Math.max(0, index.rows(first, end) - skipped - (last.rows - rowsBefore(last, before)));
  }
  // Both cursors can lie within one run with no row between them.
  const rowGroups = rows === 0 ? 0 : index.rowGroups(first, end);
  const isLast = after === undefined || query.last === true;
  const direction = isLast && query.limit < rows ? 'backward' : 'forward';
  return { runs, first, end, after, before, rows, rowGroups, direction };
}

/**
 * Throws `gone` where the record at a cursor has left its table, and others of the same hour have come after it: they may be the same records,
 * so it can't be told which of them the client has seen.
 */
export function assertStanding(runs: SnapshotRuns, cursors: readonly (Position | undefined)[]): void {
  for (const cursor of cursors) {
    if (cursor === undefined || cursor.ordinal === 0) continue;
    const before = { ...cursor, ordinal: cursor.ordinal - 1 };
    const next = runs.at(countWhile(runs, (run) => endsAtOrBefore(run, before)));
    const isGone = next?.partition === cursor.partition && next.firstOrdinal > cursor.ordinal;
    if (!isGone || next.rowGroup.table === undefined) continue;
    const message = `the record at cursor ${formatCursor(cursor)} has left the table: its file was removed or rewritten. Begin the walk again`;
    throw new LogstrataError('gone', message);
  }
}

/** The part of a row group that lies within the bounds of a plan, and the number of units that it has there. */
export function shareOf(plan: ScanPlan, rowGroup: RowGroup): RowGroupShare {
  const { runs, first, end } = plan;
  let firstRow = Infinity;
  let endRow = 0;
  let units = 0;
  let previous = -2;
  for (const i of indexOfRuns(runs).runsOf(rowGroup, first, end)) {
    const run = runs.at(i)!;
    const skip = i === first ? rowsUpTo(run, plan.after) : 0;
    const keep = i === end - 1 ? rowsBefore(run, plan.before) : run.rows;
    if (keep <= skip) continue;
    if (i !== previous + 1) units++;
    previous = i;
    firstRow = Math.min(firstRow, run.firstRow + skip);
    endRow = Math.max(endRow, run.firstRow + keep);
  }
  return { firstRow, endRow, units };
}

/** An iteration over the units of a plan. */
export interface Walk {
  /** The row group of the next unit; undefined at the end. */
  readonly rowGroup: RowGroup | undefined;
  /** Skips the next unit without building it. */
  skip(): void;
  /** The next unit; null where none of its rows is within the cursor bounds. */
  take(): ScanUnit | null;
  /** The part of a row group within the bounds, and its number of units on this walk. */
  shareOf(rowGroup: RowGroup): RowGroupShare;
}

/**
 * Walks the units of a plan in its direction. A unit is built only when it is taken, so a query that stops early or rules out most row
 * groups builds few.
 */
export class UnitWalk implements Walk {
  readonly #plan: ScanPlan;
  readonly #step: 1 | -1;
  /** Index of the next run, and the index at which the walk ends. */
  #at: number;
  readonly #end: number;

  constructor(plan: ScanPlan) {
    const isForward = plan.direction === 'forward';
    this.#plan = plan;
    this.#step = isForward ? 1 : -1;
    this.#at = isForward ? plan.first : plan.end - 1;
    this.#end = isForward ? plan.end : plan.first - 1;
  }

  get rowGroup(): RowGroup | undefined {
    return this.#at === this.#end ? undefined : this.#plan.runs.at(this.#at)!.rowGroup;
  }

  skip(): void {
    const { rowGroup } = this;
    while (rowGroup !== undefined && rowGroup === this.rowGroup) this.#at += this.#step;
  }

  take(): ScanUnit | null {
    const rowGroup = this.rowGroup!;
    const ranges: RowRange[] = [];
    for (; rowGroup === this.rowGroup; this.#at += this.#step) {
      const range = rangeOfRun(this.#plan, this.#at);
      if (range !== null) ranges.push(range);
    }
    if (this.#step < 0) ranges.reverse();
    return ranges.length === 0 ? null : { rowGroup, ranges };
  }

  shareOf(rowGroup: RowGroup): RowGroupShare {
    return shareOf(this.#plan, rowGroup);
  }
}

/** The rows of run `index` of a plan that lie within its bounds; null where there are none. */
export function rangeOfRun(plan: ScanPlan, index: number): RowRange | null {
  const run = plan.runs.at(index)!;
  const skip = index === plan.first ? rowsUpTo(run, plan.after) : 0;
  const keep = index === plan.end - 1 ? rowsBefore(run, plan.before) : run.rows;
  if (keep <= skip) return null;
  return {
    firstRow: run.firstRow + skip,
    rows: keep - skip,
    partition: run.partition,
    firstOrdinal: run.firstOrdinal + skip,
  };
}

/**
 * The number of leading runs for which `isLeft` holds, by binary search. `isLeft` must not hold for any run after one for which it does
 * not.
 */
function countWhile(runs: SnapshotRuns, isLeft: (run: SnapshotRun) => boolean): number {
  let low = 0;
  let high = runs.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (isLeft(runs.at(middle)!)) low = middle + 1;
    else high = middle;
  }
  return low;
}

function endsAtOrBefore(run: SnapshotRun, position: Position): boolean {
  if (run.partition !== position.partition) return run.partition < position.partition;
  return run.firstOrdinal + run.rows - 1 <= position.ordinal;
}

function startsBefore(run: SnapshotRun, position: Position): boolean {
  if (run.partition !== position.partition) return run.partition < position.partition;
  return run.firstOrdinal < position.ordinal;
}

/** How many of the run's first rows are at or before `after`. */
function rowsUpTo(run: SnapshotRun, after: Position | undefined): number {
  if (after === undefined || run.partition !== after.partition) return 0;
  return Math.min(run.rows, Math.max(0, after.ordinal - run.firstOrdinal + 1));
}

/** How many of the run's first rows are before `before`. */
function rowsBefore(run: SnapshotRun, before: Position | undefined): number {
  if (before === undefined || run.partition !== before.partition) return run.rows;
  return Math.min(run.rows, Math.max(0, before.ordinal - run.firstOrdinal));
}

const indexes = new WeakMap<SnapshotRuns, RunIndex>();

/** The index of a snapshot's runs. It is made once and shared by all queries on the same state. */
export function indexOfRuns(runs: SnapshotRuns): RunIndex {
  let index = indexes.get(runs);
  if (index === undefined) {
    index = new RunIndex(runs);
    indexes.set(runs, index);
  }
  return index;
}

/** Indices of runs. */
type RunNumbers = readonly number[] | Uint32Array;

const noRuns: RunNumbers = [];

/** Row groups with more runs than this keep the indices in a `Uint32Array`, at four bytes each. */
const numbersMax = 64;

/**
 * Prefix sums over the runs of a snapshot. With them the time to plan a query hardly depends on the number of runs. Each array has one
 * element more than there are runs; element `i` is about the runs before run `i`.
 */
export class RunIndex {
  /** Number of rows in the runs before each run. */
  readonly #rowsBefore: Float64Array;
  /** Number of row groups whose first run is before each run. */
  readonly #begunBefore: Uint32Array;
  /** Number of row groups whose last run is before each run. */
  readonly #endedBefore: Uint32Array;
  /** Number of runs on other machines before each run; null where no run is there. */
  readonly #remoteBefore: Uint32Array | null;
  readonly #hidingBefore: Uint32Array | null;
  /** Indices of the runs of each row group, ascending. */
  readonly #runsOf = new Map<RowGroup, RunNumbers>();

  constructor(runs: SnapshotRuns) {
    this.#rowsBefore = new Float64Array(runs.length + 1);
    this.#begunBefore = new Uint32Array(runs.length + 1);
    this.#endedBefore = new Uint32Array(runs.length + 1);
    const runsOf = new Map<RowGroup, number[]>();
    for (let i = 0; i < runs.length; i++) {
      const { rowGroup, rows } = runs.at(i)!;
      this.#rowsBefore[i + 1] = this.#rowsBefore[i]! + rows;
      const known = runsOf.get(rowGroup);
      this.#begunBefore[i + 1] = this.#begunBefore[i]! + (known === undefined ? 1 : 0);
      if (known === undefined) runsOf.set(rowGroup, [i]);
      else known.push(i);
    }
    this.#remoteBefore = countBefore(runs, ({ remote }) => remote !== undefined);
    this.#hidingBefore = countBefore(runs, ({ hides }) => hides === true);
    for (const [rowGroup, places] of runsOf) {
      this.#endedBefore[places.at(-1)! + 1]! += 1;
      this.#runsOf.set(rowGroup, places.length > numbersMax ? Uint32Array.from(places) : places);
    }
    for (let i = 0; i < runs.length; i++) this.#endedBefore[i + 1]! += this.#endedBefore[i]!;
  }

  /** Number of rows in the runs [first, end). */
  rows(first: number, end: number): number {
    return this.#rowsBefore[end]! - this.#rowsBefore[first]!;
  }

  /** Whether one of the runs [first, end) is on another machine. */
  hasRemote(first: number, end: number): boolean {
    return hasOne(this.#remoteBefore, first, end);
  }

  /** Whether one of the runs [first, end) is in a row group that hides rows: the runs may then have more rows than are answered. */
  hides(first: number, end: number): boolean {
    return hasOne(this.#hidingBefore, first, end);
  }

  /** Number of row groups with a run in [first, end), plus those that have runs on both sides of it and none inside. */
  rowGroups(first: number, end: number): number {
    return end <= first ? 0 : this.#begunBefore[end]! - this.#endedBefore[first]!;
  }

  /** Indices of the row group's runs within [first, end), ascending. */
  runsOf(rowGroup: RowGroup, first: number, end: number): RunNumbers {
    const runs = this.#runsOf.get(rowGroup) ?? noRuns;
    const from = lowerBound(runs, first);
    const to = lowerBound(runs, end);
    return from === 0 && to === runs.length ? runs : runs.slice(from, to);
  }
}

/** The number of runs before each run in row groups of a kind; null where there are none. */
function countBefore(runs: SnapshotRuns, isCounted: (rowGroup: RowGroup) => boolean): Uint32Array | null {
  let before: Uint32Array | null = null;
  for (let i = 0; i < runs.length; i++) {
    const isOne = isCounted(runs.at(i)!.rowGroup);
    if (isOne) before ??= new Uint32Array(runs.length + 1);
    if (before !== null) before[i + 1] = before[i]! + (isOne ? 1 : 0);
  }
  return before;
}

function hasOne(before: Uint32Array | null, first: number, end: number): boolean {
  return before !== null && first < end && before[end]! > before[first]!;
}

/** Index of the first of the ascending `values` that is not less than `value`; their length where there is none. */
export function lowerBound(values: readonly number[] | Uint16Array | Uint32Array, value: number): number {
  let low = 0;
  let high = values.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (values[middle]! < value) low = middle + 1;
    else high = middle;
  }
  return low;
}
