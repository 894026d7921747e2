import { assert, LogstrataError } from '../core/errors.js';
import { hourMs } from '../core/cursor.js';
import { countInlineBytesMax, countTextBytesMax, countTopMax, rowGroupsAheadMax } from '../core/limits.js';
import type { Schema, FieldType } from '../core/schema.js';
import { functionsOf, percentOf, type NumberFunction } from '../numbers/number-functions.js';
import { NumberTally } from '../numbers/number-tally.js';
import { queueOf, type WorkerPool } from '../workers/worker-pool.js';
import { Pace } from '../store/reading/pace.js';
import type { Snapshot } from '../store/reading/snapshot.js';
import { newScanStats, canResume } from './answer.js';
import { finderOf, type FinderWork, type RemoteCount, type RemoteSource } from './tiered-finder.js';
import { onlyMember, preparePredicates, type PreparedPredicates } from './predicate.js';
import { RowGroupFilter } from './row-group-filter.js';
import {
  CountBoundError,
  type CountQuery,
  type Counts,
  type NumberAnswers,
  type TimeBucket,
} from './count-query.js';
import { planScan, type ScanPlan, indexOfRuns } from './plan.js';
import { RowGroupWalk } from './row-group-walk.js';
import { CountMemory, ValueTable } from './value-table.js';
import { countRowGroup, rowGroupCount } from './row-group-count.js';
import { cellOfKey, keyOfCell, Tally } from './tally.js';
import { countedValue, compareValues } from './value-bytes.js';

/** The options of a count. */
export interface CountSettings {
  readonly signal?: AbortSignal | undefined;
  /** Threads that read, search and count. Without them the calling thread does everything. */
  readonly workers?: WorkerPool | undefined;
  /** Reads and counts rows on other machines. */
  readonly remote?: RemoteSource | undefined;
  /** Bytes of columns in memory that are counted without threads. The default was measured to be fastest. */
  readonly inlineBytesMax?: number | undefined;
}

/**
 * Counts the matching records of an agent's newest state. If another process removes a segment meanwhile, it counts again in the state that
 * is then the newest.
 *
 * Throws `invalid` for a query that does not fit the schema; `CountBoundError`; `cancelled`, or the signal's own reason where that is a
 * `LogstrataError`; `limit` where other counts use all the memory; and whatever reading the row groups throws.
 */
export async function countRecords(
  takeSnapshot: () => Promise<Snapshot>,
  query: CountQuery,
  settings: CountSettings = {},
): Promise<Counts> {
  for (let attempt = 1; ; attempt++) {
    const snapshot = await takeSnapshot();
    try {
      return await countSnapshot(snapshot, query, settings);
    } catch (error) {
      if (!canResume(error, attempt)) throw error;
    }
  }
}

/**
 * Counts the matching records of a snapshot. Releases the snapshot in any case, once no thread uses its files. Throws the errors of
 * `countRecords`.
 */
export async function countSnapshot(
  snapshot: Snapshot,
  query: CountQuery,
  { signal, workers, remote, inlineBytesMax = countInlineBytesMax }: CountSettings,
): Promise<Counts> {
  const threads = queueOf(workers, signal);
  const memory = new CountMemory();
  try {
    const work = { stats: newScanStats(), pace: new Pace(signal), threads, remote, inlineBytesMax };
    return await new Count(snapshot, query, work, memory).run();
  } finally {
    memory.release();
    threads?.end();
    await threads?.underWay();
    snapshot.release();
  }
}

/** What a count works with. */
interface CountWork extends FinderWork {
  /** Bytes of columns that the answering thread counts itself, where they are in memory. Threads count the rest. */
  readonly inlineBytesMax: number;
}

/** One count on one snapshot. */
class Count {
  readonly #schema: Schema;
  readonly #query: CountQuery;
  readonly #work: CountWork;
  readonly #memory: CountMemory;
  readonly #predicates: PreparedPredicates;
  readonly #plan: ScanPlan;
  readonly #tally: Tally;
  #remote: Promise<readonly RemoteCount[] | null> | undefined;

  constructor({ schema, runs }: Snapshot, query: CountQuery, work: CountWork, memory: CountMemory) {
    // Without a limit, all matches are counted.
    const whole = { ...query, limit: Number.MAX_SAFE_INTEGER };
    checkFields(query, schema);
    this.#schema = schema;
    this.#query = query;
    this.#work = work;
    this.#memory = memory;
    this.#predicates = preparePredicates(whole, schema);
    this.#plan = planScan(runs, { ...whole, after: query.after });
    const { values } = query;
    const span = spanMs(this.#plan, this.#predicates, query);
    this.#tally = new Tally(
      this.#newTable(),
      query.time === undefined ? 0 : (values?.top ?? 0),
      span,
      this.#newNumbers(),
    );
    work.stats.runs = this.#plan.end - this.#plan.first;
    work.stats.rowGroups = this.#plan.rowGroups;
  }

  async run(): Promise<Counts> {
    const { predicates, time, values } = this.#query;
    // Without predicates the plan knows the number of records.
    if (this.#isSum && predicates.length === 0) return { count: this.#plan.rows, stats: this.#work.stats };
    const count = await this.#pass(this.#tally);
    const top = this.#top();
    const isCrossed = time !== undefined && values !== undefined;
    const isAgain =
      (isCrossed && this.#tally.cells.isFull) ||
      (this.#tally.numbers === null && this.#query.numbers !== undefined);
    const cells = isAgain ? await this.#countAgain(top) : this.#tally;
    if (!isAgain && isCrossed) cells.cells.choose(top);
    return this.#counts(count, top, cells);
  }

  /** Whether only the number of records is asked for. */
  get #isSum(): boolean {
    const { time, values, numbers } = this.#query;
    return time === undefined && values === undefined && numbers === undefined;
  }

  /** Walks all matches and counts them into a tally. Returns the number of matches. */
  async #pass(tally: Tally): Promise<number> {
    const { time, values, numbers } = this.#query;
    const filter = new RowGroupFilter(this.#schema, this.#predicates, this.#work);
    const grouped = [time, values].flatMap((by) => (by === undefined ? [] : [by.field]));
    const fields = [...new Set([...grouped, ...(numbers?.fields ?? [])])];
    const wish = { schema: this.#schema, predicates: this.#predicates, fields };
    const remote = await this.#countRemote();
    const finder = finderOf(this.#plan, filter, this.#work, remote === null ? wish : null, RowGroupWalk);
    let count = 0;
    for (const add of remote ?? []) {
      count += add(tally);
      tally.assertCellsFit();
    }
    const { threads, stats, inlineBytesMax } = this.#work;
    /** Row groups that are being counted. */
    const running = new Set<Promise<void>>();
    const progress = { groups: 0, inlineBytes: 0 };
    /** Numbers are added in the order of the row groups, because sums of doubles depend on it. */
    let turn = Promise.resolve();
    try {
      for await (const { unit, selection, take } of finder.matches(Number.MAX_SAFE_INTEGER)) {
        count += take;
        if (this.#isSum) continue;
        const open = await unit.rowGroup.open(threads, stats);
        const group = rowGroupCount(
          this.#query,
          this.#schema,
          open,
          unit,
          selection,
          take,
          tally.numbers !== null,
        );
        const isInMemory = group.fields.every((field) => open.isInMemory(field));
        // What takes long uses up the budget of this thread. A second pass looks at the values here anyway.
        const isCheap = group.fields.length === 0 || tally.first !== null;
        const isInline =
          threads === null || (isInMemory && (isCheap || progress.inlineBytes < inlineBytesMax));
        const depth = isInline ? Infinity : depthOf(tally, progress.groups, isInMemory, threads.threadCount);
        for (const oldest of running) {
          if (running.size < depth) break;
          await oldest;
        }
        const counting = countRowGroup(this.#query, group, tally, this.#work, isInline, turn).then(
          (bytes) => {
            running.delete(counting);
            progress.groups++;
            if (isInline) progress.inlineBytes += bytes;
          },
        );
        running.add(counting);
        // Marked as handled: a failure is thrown below, or where the next row group waits for this one.
        counting.catch(() => undefined);
        if (numbers !== undefined) turn = counting;
        if (isInline) await counting;
        tally.assertCellsFit();
      }
      await Promise.all(running);
      tally.assertCellsFit();
    } finally {
      await Promise.allSettled(running);
    }
    return count;
  }

  /** The counts of other machines, which both passes share; null where all rows have to be read here. */
  #countRemote(): Promise<readonly RemoteCount[] | null> {
    const { runs, first, end } = this.#plan;
    const { remote } = this.#work;
    if (remote === undefined || !indexOfRuns(runs).hasRemote(first, end)) return Promise.resolve(null);
    const wish = { query: this.#query, schema: this.#schema, predicates: this.#predicates };
    this.#remote ??= remote.count(this.#plan, wish, this.#work);
    return this.#remote;
  }

  /** The numbers of the values that the answer names. */
  #top(): number[] {
    const { values } = this.#query;
    if (values === undefined) return [];
    return mostFrequent(this.#tally.values!, values.top, this.#schema.fields[values.field]!.type);
  }

  /**
   * Counts again where the first pass had too many cells or numbers. The cells of this tally are those of the answer: one column for each
   * value of `top`, in that order.
   */
  async #countAgain(top: readonly number[]): Promise<Tally> {
    const first = this.#tally;
    const table = this.#newTable()!;
    for (const value of top) {
      const bytes = first.values!.valueOf(value);
      table.add(bytes, 0, bytes.length);
    }
    const again = new Tally(table, 0, 0, this.#newNumbers(), first);
    await this.#pass(again);
    assert(!again.cells.isFull, 'the cells of an answer have room');
    return again;
  }

  #newTable(): ValueTable | null {
    const { values } = this.#query;
    return values === undefined
      ? null
      : new ValueTable(this.#memory, this.#schema.fields[values.field]!.name);
  }

  /** Null where no numbers are wanted. */
  #newNumbers(): NumberTally | null {
    const { numbers } = this.#query;
    if (numbers === undefined) return null;
    const types = numbers.fields.map((field) => this.#schema.fields[field]!.type);
    let taken = 0;
    return new NumberTally(types, numbers.functions, (bytes) => {
      taken += bytes;
      if (taken > countTextBytesMax)
        throw new CountBoundError(
          'numbers',
          `the numbers of these records take more than ${countTextBytesMax} bytes, the maximum`,
        );
      this.#memory.take(bytes);
    });
  }

  /** @param again the tally whose cells have a column for each value of `top` */
  #counts(count: number, top: readonly number[], again: Tally): Counts {
    const { buckets, bucketCounts, timeNulls, valueNulls, values: table } = this.#tally;
    const { time, values } = this.#query;
    const cells = ({ from }: TimeBucket, column: number) => again.cells.of(again.bucketFrom(from)!, column);
    const order = buckets.map((_, bucket) => bucket).sort((a, b) => buckets[a]!.from - buckets[b]!.from);
    const numbers =
      this.#query.numbers === undefined
        ? null
        : new NumbersOfGroups(again, again === this.#tally ? top : null);
    const bucketsCounted = order.map((bucket) => {
      const of = again.bucketFrom(buckets[bucket]!.from)!;
      return {
        ...buckets[bucket]!,
        count: bucketCounts[bucket]!,
        ...(values === undefined ? {} : { values: top.map((_, column) => cells(buckets[bucket]!, column)) }),
        ...(numbers !== null && { numbers: numbers.ofBucket(of) }),
        ...(numbers !== null &&
          values !== undefined && { numbersOfValues: top.map((_, column) => numbers.ofCell(of, column)) }),
      };
    });
    const type = values === undefined ? 'string' : this.#schema.fields[values.field]!.type;
    const topCounted = top.map((value, column) => ({
      value: countedValue(table!.valueOf(value), type),
      count: table!.counts[value]!,
      ...(numbers !== null && { numbers: numbers.ofValue(column) }),
    }));
    const other = topCounted.reduce((sum, each) => sum - each.count, count - valueNulls);
    const isTotal = numbers !== null && time === undefined && values === undefined;
    const total = isTotal ? { numbers: numbers.ofAll() } : {};
    return {
      count,
      ...total,
      ...(numbers !== null && { approximate: numbers.approximate() }),
      ...(time === undefined ? {} : { time: { buckets: bucketsCounted, nulls: timeNulls } }),
      ...(values === undefined
        ? {}
        : { values: { top: topCounted, other, nulls: valueNulls, distinct: table!.size } }),
      stats: this.#work.stats,
    };
  }
}

/** The numbers of the groups of an answer. A group may consist of many cells. */
class NumbersOfGroups {
  readonly #numbers: NumberTally;
  readonly #ofBuckets = new Map<number, number[]>();
  readonly #ofValues = new Map<number, number[]>();
  readonly #valueOf: (column: number) => number;

  /** @param top the values of the columns; null where they are numbered like the columns */
  constructor({ numbers }: Tally, top: readonly number[] | null) {
    this.#numbers = numbers!;
    this.#valueOf = (column) => top?.[column] ?? column;
    for (const key of numbers!.keys()) {
      const [bucket, value] = cellOfKey(key);
      listOf(this.#ofBuckets, bucket).push(key);
      listOf(this.#ofValues, value).push(key);
    }
  }

  ofAll(): NumberAnswers {
    return this.#numbers.answer([...this.#numbers.keys()]);
  }

  ofBucket(bucket: number): NumberAnswers {
    return this.#numbers.answer(this.#ofBuckets.get(bucket) ?? []);
  }

  ofValue(column: number): NumberAnswers {
    return this.#numbers.answer(this.#ofValues.get(this.#valueOf(column)) ?? []);
  }

  ofCell(bucket: number, column: number): NumberAnswers {
    return this.#numbers.answer([keyOfCell(bucket, this.#valueOf(column))]);
  }

  /** Called after the numbers were. */
  approximate(): readonly NumberFunction[] {
    const { functions, hasEstimates } = this.#numbers;
    return functions.filter((fn) => percentOf(fn) !== null || (fn === 'distinct' && hasEstimates));
  }
}

function listOf(lists: Map<number, number[]>, key: number): number[] {
  const list = lists.get(key) ?? [];
  lists.set(key, list);
  return list;
}

/**
 * How many row groups to have counted at a time. Many short jobs cost half as much as few, because they are sent together; but a count that
 * is refused should have begun few that it does not need. So there are as many as the bounds leave room for, if the following row groups
 * are like the `done` ones that have been counted.
 */
function depthOf(tally: Tally, done: number, isInMemory: boolean, threadCount: number): number {
  const few = 2 * threadCount;
  if (!isInMemory || done === 0) return few;
  return Math.max(few, Math.min(rowGroupsAheadMax, done / tally.fullness - done));
}

/**
 * The time span of a plan's records in milliseconds, from the hours of their partitions, restricted by filters on the counted time field.
 */
function spanMs(
  { runs, first, end }: ScanPlan,
  { clauses }: PreparedPredicates,
  { time }: CountQuery,
): number {
  if (first === end) return 0;
  let from = runs.at(first)!.partition * hourMs;
  let until = (runs.at(end - 1)!.partition + 1) * hourMs;
  for (const { field, anyOf } of clauses.flatMap((clause) => onlyMember(clause) ?? [])) {
    const [only] = anyOf;
    if (field !== time?.field || anyOf.length > 1 || only?.kind !== 'int' || only.outside) continue;
    from = Math.max(from, Number(only.low));
    until = Math.min(until, Number(only.high));
  }
  return Math.max(0, until - from);
}

function checkFields({ time, values, numbers }: CountQuery, { fields }: Schema): void {
  const asked = [time, values].flatMap((by) => by?.field ?? []).concat(numbers?.fields ?? []);
  for (const field of asked)
    if (fields[field] === undefined) throw new LogstrataError('invalid', `there is no field number ${field}`);
  if (time !== undefined && fields[time.field]!.type !== 'time')
    throw new LogstrataError(
      'invalid',
      `field "${fields[time.field]!.name}" is of type ${fields[time.field]!.type}, which has no time buckets`,
    );
  for (const field of numbers?.fields ?? [])
    for (const fn of numbers!.functions)
      if (!functionsOf(fields[field]!.type).includes(fn))
        throw new LogstrataError(
          'invalid',
          `field "${fields[field]!.name}" of type ${fields[field]!.type} has no ${fn}`,
        );
  if (values === undefined) return;
  if (!Number.isInteger(values.top) || values.top < 1 || values.top > countTopMax)
    throw new LogstrataError('invalid', `top ${values.top} is not a whole number from 1 to ${countTopMax}`);
}

/** The numbers of the `top` most frequent values, by descending count and then ascending value. */
export function mostFrequent(table: ValueTable, top: number, type: FieldType): number[] {
  const { counts } = table;
  const isBefore = (one: number, other: number): boolean => {
    const more = counts[one]! - counts[other]!;
    if (more !== 0) return more > 0;
    return compareValues(table.valueOf(one), table.valueOf(other), type) < 0;
  };
  const best: number[] = [];
  for (let value = 0; value < counts.length; value++) {
    if (best.length === top && (top === 0 || !isBefore(value, best[top - 1]!))) continue;
    if (best.length === top) best.pop();
    best.splice(placeOf(value, best, isBefore), 0, value);
  }
  return best;
}

/** The index at which a value has to be inserted to keep the order. */
function placeOf(
  value: number,
  ordered: readonly number[],
  isBefore: (one: number, other: number) => boolean,
): number {
  let low = 0;
  let high = ordered.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (isBefore(ordered[middle]!, value)) low = middle + 1;
    else high = middle;
  }
  return low;
}
