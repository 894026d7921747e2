import { halvesOf, isValid, type Column } from '../columns/column.js';
import { plainColumn } from '../columns/take.js';
import { hourMs } from '../core/cursor.js';
import { heldBytesMax, rowGroupRowsMax } from '../core/limits.js';
import { placementField, type Schema } from '../core/schema.js';
import { planScan } from '../scan/plan.js';
import { preparePredicates } from '../scan/predicate.js';
import { RowGroupFilter } from '../scan/row-group-filter.js';
import { finderOf, type FinderWork } from '../scan/tiered-finder.js';
import type { RowGroup, SnapshotRun, SnapshotRuns } from '../store/reading/snapshot.js';

/** Times of the first rows of a row group, or of a stretch of one; those of nulls are -Infinity. */
class KnownTimes {
  /** Null once they had to make room for others. */
  values: Float64Array | null;
  /** Rows whose values have become the latest time of their run so far: by the first row of the run, the end of these rows. */
  readonly #ends = new Map<number, number>();

  constructor(values: Float64Array) {
    this.values = values;
  }

  /** Makes the values of a run the latest time so far. Returns null if this was done with other runs before. */
  latest(first: number, end: number): Float64Array | null {
    const values = this.values!;
    let from = this.#ends.get(first);
    if (from === undefined) {
      for (const [start, to] of this.#ends) if (start < end && to > first) return null;
      from = first;
    }
    for (let row = Math.max(from, first + 1); row < end; row++)
      if (values[row - 1]! > values[row]!) values[row] = values[row - 1]!;
    this.#ends.set(first, Math.max(from, end));
    return values;
  }
}

const bytesOfTime = 8;
/** The times that were used last, of all agents, up to `heldBytesMax`. They don't keep their row groups in memory. */
const recent = new Set<KnownTimes>();
let recentBytes = 0;
const timesOf = new WeakMap<RowGroup, Map<string, KnownTimes>>();
/** For the runs of a state: the clock at the end of each run, NaN where it is not known. */
const endsOf = new WeakMap<SnapshotRuns, Float64Array>();

function keepRecent(times: KnownTimes): void {
  if (!recent.delete(times)) recentBytes += times.values!.length * bytesOfTime;
  recent.add(times);
  for (const oldest of recent) {
    if (recentBytes <= heldBytesMax || oldest === times) return;
    recent.delete(oldest);
    recentBytes -= oldest.values!.length * bytesOfTime;
    oldest.values = null;
  }
}

/** The clocks of consecutive rows of a run. */
export class ClockSpan {
  /**
   * @param run index of the run
   * @param from number of rows of the run before the span
   * @param values null where the clock is `start` throughout
   * @param shift index in `values` of the first row of the run
   */
  constructor(
    readonly run: number,
    readonly from: number,
    readonly end: number,
    private readonly start: number,
    private readonly values: Float64Array | null,
    private readonly shift: number,
  ) {}

  /** The clock of the run's row with this index, which must be in the span. */
  clock(row: number): number {
    const own = this.values === null ? -Infinity : this.values[this.shift + row]!;
    return own > this.start ? own : this.start;
  }

  /** The first row from `row` on whose clock is later than `clock`; the end of the span if there is none. */
  firstLater(row: number, clock: number): number {
    const { values, shift, end } = this;
    if (this.start > clock) return row;
    if (values === null) return end;
    // Mostly few rows are passed at a time.
    let step = 1;
    let low = row;
    while (low + step <= end && values[shift + low + step - 1]! <= clock) {
      low += step;
      step *= 2;
    }
    let high = Math.min(end, low + step);
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (values[shift + middle]! > clock) high = middle;
      else low = middle + 1;
    }
    return low;
  }
}

/**
 * The clocks of an agent's records in one state. The clock of a record is the latest of the beginning of its hour and the times of the records
 * of that hour up to it. The earlier runs of the hour tell their latest time by their bounds, where these are of the run alone; of the other
 * runs the times are read.
 */
export class Clocks {
  readonly #ends: Float64Array;
  readonly #field: number;

  constructor(
    readonly runs: SnapshotRuns,
    private readonly schema: Schema,
    private readonly work: FinderWork,
  ) {
    let ends = endsOf.get(runs);
    if (ends === undefined) {
      ends = new Float64Array(runs.length).fill(NaN);
      endsOf.set(runs, ends);
    }
    this.#ends = ends;
    this.#field = placementField(schema);
  }

  /** The clock before the first row of a run. */
  async startOf(index: number): Promise<number> {
    const { partition } = this.runs.at(index)!;
    const beginning = partition * hourMs;
    if (this.#field < 0) return beginning;
    let first = index;
    while (
      first > 0 &&
      this.runs.at(first - 1)!.partition === partition &&
      Number.isNaN(this.#ends[first - 1])
    )
      first--;
    const isHour = first === 0 || this.runs.at(first - 1)!.partition !== partition;
    let clock = isHour ? beginning : this.#ends[first - 1]!;
    for (let i = first; i < index; i++) clock = this.#ends[i] = await this.#after(i, clock);
    return clock;
  }

  /** The clock of the last row of a run. */
  async endOf(index: number): Promise<number> {
    const known = this.#ends[index]!;
    if (!Number.isNaN(known)) return known;
    const start = await this.startOf(index);
    return (this.#ends[index] = this.#field < 0 ? start : await this.#after(index, start));
  }

  /** The clocks of the run's row `row`, and of those around it. */
  async spanOf(index: number, row: number): Promise<ClockSpan> {
    const start = await this.startOf(index);
    const run = this.runs.at(index)!;
    if (this.#field < 0) return new ClockSpan(index, 0, run.rows, start, null, 0);
    if (run.rowGroup.remote === undefined) {
      const values = await this.#latest(run, 0, run.rows);
      return new ClockSpan(index, 0, run.rows, start, values, run.firstRow);
    }
    let clock = start;
    for (let from = 0; ; from += rowGroupRowsMax) {
      const end = Math.min(run.rows, from + rowGroupRowsMax);
      const values = await this.#latest(run, from, end);
      if (row < end) return new ClockSpan(index, from, end, clock, values, -from);
      clock = Math.max(clock, values[end - from - 1]!);
    }
  }

  /** The clock at the end of a run that begins at `start`. */
  async #after(index: number, start: number): Promise<number> {
    const run = this.runs.at(index)!;
    const { rowGroup, rows } = run;
    if (rowGroup.timeMaxMs !== null && rowGroup.timeMaxMs <= start) return start;
    await this.work.pace.pause();
    if (rowGroup.remote === undefined) {
      const { threads, stats } = this.work;
      const zone = (rowGroup.opened(threads) ?? (await rowGroup.open(threads, stats))).zone(this.#field);
      const latest = typeof zone?.max === 'bigint' ? Number(zone.max) : null;
      if (latest !== null && (latest <= start || rows === rowGroup.rows)) return Math.max(start, latest);
      if (zone !== null && zone.nullCount === zone.rows) return start;
      return Math.max(start, (await this.#latest(run, 0, rows))[run.firstRow + rows - 1]!);
    }
    let clock = start;
    for (let from = 0; from < rows; from += rowGroupRowsMax) {
      const end = Math.min(rows, from + rowGroupRowsMax);
      clock = Math.max(clock, (await this.#latest(run, from, end))[end - from - 1]!);
    }
    return clock;
  }

  /**
   * The latest times so far of the rows [from, end) of a run. They are of the rows of the row group where it is of this machine, else of just
   * these rows.
   */
  async #latest(run: SnapshotRun, from: number, end: number): Promise<Float64Array> {
    const { rowGroup, partition, firstOrdinal, firstRow } = run;
    const isHere = rowGroup.remote === undefined;
    const known = timesOf.get(rowGroup) ?? new Map<string, KnownTimes>();
    timesOf.set(rowGroup, known);
    // Rows on other machines have positions and no rows of a file.
    const key = isHere ? '' : `${partition} ${firstOrdinal + from}`;
    const first = isHere ? firstRow + from : 0;
    for (;;) {
      let times = known.get(key);
      if (times === undefined || times.values === null || times.values.length < first + end - from) {
        times = new KnownTimes(
          isHere ? await this.#timesHere(rowGroup) : await this.#timesThere(run, from, end),
        );
        known.set(key, times);
      }
      const latest = times.latest(first, first + end - from);
      keepRecent(times);
      if (latest !== null) return latest;
      known.delete(key);
    }
  }

  async #timesHere(rowGroup: RowGroup): Promise<Float64Array> {
    const { threads, stats, pace, onWait } = this.work;
    const open = await rowGroup.open(threads, stats);
    const { columns, release } = await open.columns([this.#field], stats, { signal: pace.signal, onWait });
    try {
      const values = new Float64Array(rowGroup.rows);
      copyTimes(columns[0]!, 0, values);
      return values;
    } finally {
      release();
    }
  }

  /** Reads the times of rows on another machine, whether or not they match. */
  async #timesThere(
    { partition, firstOrdinal }: SnapshotRun,
    from: number,
    end: number,
  ): Promise<Float64Array> {
    const values = new Float64Array(end - from);
    const first = firstOrdinal + from;
    const plan = planScan(this.runs, {
      ...everything,
      after: { partition, ordinal: first - 1 },
      before: { partition, ordinal: firstOrdinal + end },
    });
    const { schema, work } = this;
    const predicates = preparePredicates(everything, schema);
    const filter = new RowGroupFilter(schema, predicates, work);
    const finder = finderOf(plan, filter, work, { schema, predicates, fields: [this.#field] });
    for await (const { unit } of finder.matches(end - from)) {
      const open = await unit.rowGroup.open();
      const { columns, release } = await open.columns([this.#field], this.work.stats);
      for (const range of unit.ranges)
        copyTimes(
          columns[0]!,
          range.firstRow,
          values.subarray(range.firstOrdinal - first).subarray(0, range.rows),
        );
      release();
    }
    return values;
  }
}

const everything = { limit: Number.MAX_SAFE_INTEGER, predicates: [] };

/** Copies the times of rows from `first` on. */
function copyTimes(column: Column, first: number, target: Float64Array): void {
  const plain = plainColumn(column);
  if (plain.kind !== 'int64') return void target.fill(-Infinity);
  const halves = halvesOf(plain.values);
  const { validity } = plain;
  for (let i = 0; i < target.length; i++) {
    const row = first + i;
    const ms = halves[2 * row + 1]! * 2 ** 32 + (halves[2 * row]! >>> 0);
    target[i] = isValid(validity, row) ? ms : -Infinity;
  }
}
