import { assert, LogstrataError } from '../core/errors.js';
import { hourMs } from '../core/cursor.js';
import { countInlineBytesMax, countTextBytesMax, countTopMax, rowGroupsAheadMax } from '../core/limits.js';
import type { Field, FieldPredicate, FieldType, Schema } from '../core/schema.js';
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
  lackedField,
  type CountQuery,
  type Counts,
  type NumberAnswers,
  type TimeBucket,
} from './count-query.js';
import { assertStanding, planScan, type ScanPlan, indexOfRuns } from './plan.js';
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
  /** Bytes of columns in memory that are counted without threads. The default was measured to be fastest. */
  readonly inlineBytesMax?: number | undefined;
}

/** The records of one agent that are counted. */
export interface CountPart {
  readonly snapshot: Snapshot;
  /** Parts of one count differ only in bounds, predicates and the indices of fields. Of a field that the agent lacks it is `lackedField`. */
  readonly query: CountQuery;
  /** Reads and counts rows on other machines. */
  readonly remote?: RemoteSource | undefined;
}

/**
 * Counts the matching records of the newest state of one agent, or of several together. If another process removes a segment meanwhile, it
 * counts again in the state that is then the newest.
 *
 * Throws `invalid` for a query that does not fit the schema; `CountBoundError`; `cancelled`, or the signal's own reason where that is a
 * `LogstrataError`; `limit` where other counts use all the memory; and whatever reading the row groups throws.
 */
export async function countRecords(
  takeParts: () => Promise<readonly CountPart[]>,
  settings: CountSettings = {},
): Promise<Counts> {
  for (let attempt = 1; ; attempt++) {
    const parts = await takeParts();
    try {
      return await countParts(parts, settings);
    } catch (error) {
      if (!canResume(error, attempt)) throw error;
    }
  }
}

/**
 * Counts the matching records of at least one snapshot. Releases the snapshots in any case, once no thread uses their files. Throws the errors
 * of `countRecords`.
 */
export async function countParts(
  parts: readonly CountPart[],
  { signal, workers, inlineBytesMax = countInlineBytesMax }: CountSettings,
): Promise<Counts> {
  const threads = queueOf(workers, signal);
  const memory = new CountMemory();
  try {
    const work = { stats: newScanStats(), pace: new Pace(signal), threads, inlineBytesMax };
    return await new Count(parts, work, memory).run();
  } finally {
    memory.release();
    threads?.end();
    await threads?.underWay();
    for (const { snapshot } of parts) snapshot.release();
  }
}

/** What a count works with. */
interface CountWork extends FinderWork {
  /** Bytes of columns that the answering thread counts itself, where they are in memory. Threads count the rest. */
  readonly inlineBytesMax: number;
}

/** How far a pass over the records has come. */
interface Progress {
  groups: number;
  inlineBytes: number;
  /** Numbers are added in the order of the row groups, because sums of doubles depend on it. */
  turn: Promise<void>;
}

/** One count. */
class Count {
  readonly #parts: readonly PartOfCount[];
  /** That of the first part, for what all have in common. */
  readonly #query: CountQuery;
  readonly #work: CountWork;
  readonly #memory: CountMemory;
  readonly #tally: Tally;

  constructor(parts: readonly CountPart[], work: CountWork, memory: CountMemory) {
    this.#parts = parts.map((part) => new PartOfCount(part, work));
    for (const { plan } of this.#parts) {
      work.stats.runs += plan.end - plan.first;
      work.stats.rowGroups += plan.rowGroups;
    }
    this.#query = parts[0]!.query;
    this.#work = work;
    this.#memory = memory;
    const { time, values } = this.#query;
    const spans = this.#parts.map((part) => part.span).filter((span) => span !== null);
    const until = Math.max(...spans.map((span) => span.until));
    const span = Math.max(0, until - Math.min(...spans.map(({ from }) => from)));
    const columns = time === undefined ? 0 : (values?.top ?? 0);
    this.#tally = new Tally(this.#newTable(), columns, span, this.#newNumbers());
  }

  async run(): Promise<Counts> {
    const { time, values } = this.#query;
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

  /** Counts all matches into a tally. Returns their number. */
  async #pass(tally: Tally, parts = this.#parts): Promise<number> {
    const progress = { groups: 0, inlineBytes: 0, turn: Promise.resolve() };
    let count = 0;
    for (const part of parts) count += await part.pass(tally, progress);
    return count;
  }

  /** A field of the query, in the first part that has it. */
  #fieldOf(fieldOf: (query: CountQuery) => number | undefined): Field {
    const fields = this.#parts.map(({ schema, query }) => schema.fields[fieldOf(query) ?? lackedField]);
    const [first, ...others] = fields.filter((field) => field !== undefined);
    if (first === undefined) throw new LogstrataError('invalid', 'no agent has a field of the count');
    if (others.some(({ type }) => type !== first.type))
      throw new LogstrataError('invalid', `field "${first.name}" has more than one type`);
    return first;
  }

  /** The numbers of the values that the answer names. */
  #top(): number[] {
    const { values } = this.#query;
    if (values === undefined) return [];
    return mostFrequent(this.#tally.values!, values.top, this.#fieldOf((query) => query.values?.field).type);
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
    // Without buckets only the records with these values matter. A search for few is faster than looking each value up here.
    const isSearched = this.#query.time === undefined && top.length <= searchedValuesMax;
    const values = isSearched ? top.map((value) => first.values!.valueOf(value).slice()) : null;
    await this.#pass(again, values === null ? this.#parts : this.#parts.map((part) => part.among(values)));
    assert(!again.cells.isFull, 'the cells of an answer have room');
    return again;
  }

  #newTable(): ValueTable | null {
    const { values } = this.#query;
    if (values === undefined) return null;
    return new ValueTable(this.#memory, this.#fieldOf((query) => query.values?.field).name);
  }

  /** Null where no numbers are wanted. */
  #newNumbers(): NumberTally | null {
    const { numbers } = this.#query;
    if (numbers === undefined) return null;
    const types = numbers.fields.map((_, i) => this.#fieldOf((query) => query.numbers?.fields[i]).type);
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
    const type = values === undefined ? 'string' : this.#fieldOf((query) => query.values?.field).type;
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

/** The counting of one part. */
class PartOfCount {
  readonly schema: Schema;
  readonly query: CountQuery;
  /** The time span of the records; null where there are none. */
  readonly span: TimeBucket | null;
  readonly #work: CountWork;
  readonly #predicates: PreparedPredicates;
  readonly plan: ScanPlan;
  readonly #part: CountPart;
  #remote: Promise<readonly RemoteCount[] | null> | undefined;

  constructor(part: CountPart, work: CountWork) {
    const { snapshot, query, remote } = part;
    this.#part = part;
    const { schema, runs } = snapshot;
    // Without a limit, all matches are counted.
    const whole = { ...query, limit: Number.MAX_SAFE_INTEGER };
    checkFields(query, schema);
    this.schema = schema;
    this.query = query;
    this.#work = { ...work, remote };
    this.#predicates = preparePredicates(whole, schema);
    assertStanding(runs, [query.after, query.before]);
    this.plan = planScan(runs, { ...whole, after: query.after });
    this.span = spanOf(this.plan, this.#predicates, query);
  }

  /** The part of these records that have one of the values of the counted field. */
  among(values: readonly Uint8Array[]): PartOfCount {
    const { field } = this.query.values!;
    const isLacked = field === lackedField;
    const members = isLacked
      ? []
      : values.map((value) => isValue(field, this.schema.fields[field]!.type, value));
    const only = { kind: 'any', members } as const;
    const query = { ...this.query, predicates: [...this.query.predicates, only] };
    return new PartOfCount({ ...this.#part, query }, this.#work);
  }

  /** Whether only the number of records is asked for. */
  get #isSum(): boolean {
    const { time, values, numbers } = this.query;
    return time === undefined && values === undefined && numbers === undefined;
  }

  /** Walks all matches and counts them into a tally. Returns the number of matches. */
  async pass(tally: Tally, progress: Progress): Promise<number> {
    const { predicates, time, values, numbers } = this.query;
    // Without predicates the plan knows the number of records, unless some rows are not answered.
    const { runs, first, end, rows } = this.plan;
    if (this.#isSum && predicates.length === 0 && !indexOfRuns(runs).hides(first, end)) return rows;
    const filter = new RowGroupFilter(this.schema, this.#predicates, this.#work);
    const asked = [time?.field ?? lackedField, values?.field ?? lackedField, ...(numbers?.fields ?? [])];
    const fields = [...new Set(asked.filter((field) => field !== lackedField))];
    const wish = { schema: this.schema, predicates: this.#predicates, fields };
    const remote = await this.#countRemote();
    const finder = finderOf(this.plan, filter, this.#work, remote === null ? wish : null, RowGroupWalk);
    let count = 0;
    for (const add of remote ?? []) {
      count += add(tally);
      tally.assertCellsFit();
    }
    const { threads, stats, inlineBytesMax } = this.#work;
    /** Row groups that are being counted. */
    const running = new Set<Promise<void>>();
    try {
      for await (const { unit, selection, take } of finder.matches(Number.MAX_SAFE_INTEGER)) {
        count += take;
        if (this.#isSum) continue;
        const open = await unit.rowGroup.open(threads, stats);
        const group = rowGroupCount(
          this.query,
          this.schema,
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
        const counting = countRowGroup(this.query, group, tally, this.#work, isInline, progress.turn).then(
          (bytes) => {
            running.delete(counting);
            progress.groups++;
            if (isInline) progress.inlineBytes += bytes;
          },
        );
        running.add(counting);
        // Marked as handled: a failure is thrown below, or where the next row group waits for this one.
        counting.catch(() => undefined);
        if (numbers !== undefined) progress.turn = counting;
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
    const { runs, first, end } = this.plan;
    const { remote } = this.#work;
    if (remote === undefined || !indexOfRuns(runs).hasRemote(first, end)) return Promise.resolve(null);
    const wish = { query: this.query, schema: this.schema, predicates: this.#predicates };
    this.#remote ??= remote.count(this.plan, wish, this.#work);
    return this.#remote;
  }
}

/** With as many values, a second pass searches for them. */
const searchedValuesMax = 20;

/** A predicate that holds for one value. */
function isValue(field: number, type: FieldType, bytes: Uint8Array): FieldPredicate {
  const value = countedValue(bytes, type);
  if (typeof value === 'string') return { kind: 'string', field, op: 'exact', value };
  if (typeof value === 'number') return { kind: 'float', field, op: 'eq', value };
  return { kind: 'int', field, op: 'eq', value: BigInt(value) };
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

/** The time span of a plan's records, from the hours of their partitions, restricted by filters on the counted time field; null for none. */
function spanOf(
  { runs, first, end }: ScanPlan,
  { clauses }: PreparedPredicates,
  { time }: CountQuery,
): TimeBucket | null {
  if (first === end) return null;
  let from = runs.at(first)!.partition * hourMs;
  let until = (runs.at(end - 1)!.partition + 1) * hourMs;
  for (const { field, anyOf } of clauses.flatMap((clause) => onlyMember(clause) ?? [])) {
    const [only] = anyOf;
    if (field !== time?.field || anyOf.length > 1 || only?.kind !== 'int' || only.outside) continue;
    from = Math.max(from, Number(only.low));
    until = Math.min(until, Number(only.high));
  }
  return { from, until };
}

function checkFields({ time, values, numbers }: CountQuery, { fields }: Schema): void {
  const asked = [time, values].flatMap((by) => by?.field ?? []).concat(numbers?.fields ?? []);
  for (const field of asked)
    if (fields[field] === undefined && field !== lackedField)
      throw new LogstrataError('invalid', `there is no field number ${field}`);
  const by = fields[time?.field ?? lackedField];
  if (by !== undefined && by.type !== 'time')
    throw new LogstrataError(
      'invalid',
      `field "${by.name}" is of type ${by.type}, which has no time buckets`,
    );
  for (const { name, type } of (numbers?.fields ?? []).flatMap((field) => fields[field] ?? []))
    for (const fn of numbers!.functions)
      if (!functionsOf(type).includes(fn))
        throw new LogstrataError('invalid', `field "${name}" of type ${type} has no ${fn}`);
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
