import { groupBy } from '../core/arrays.js';
import { columnValue, isValid } from '../columns/column.js';
import { plainColumn } from '../columns/take.js';
import type { FarCounted, FarCountQuestion, FarCountUnit } from './far-sql.js';
import { lackingRows, type FarSource, type SourceOf } from './far-cluster.js';
import type { RemoteRows } from '../store/reading/snapshot.js';
import type { RemoteCount } from '../scan/tiered-finder.js';
import type { FarCopy, OrdinalRun } from '../store/manifest/manifest.js';
import { farPartsMax } from '../core/limits.js';
import type { Field, Schema } from '../core/schema.js';
import { addNumbers, numbersAsked, type FarNumbers, type NumbersAsked } from './far-numbers.js';
import { farCondition, isExactCondition, storedField } from './far-condition.js';
import type { PreparedPredicates } from '../scan/predicate.js';
import type { ScanWork } from '../scan/row-group-filter.js';
import { lackedField, type CountQuery, type TimeBucket } from '../scan/count-query.js';
import { rangeOfRun, type ScanPlan } from '../scan/plan.js';
import { keyOfCell, type Tally } from '../scan/tally.js';
import { bucketsBetween } from '../scan/time-ranges.js';
import { ValueBytes } from '../scan/value-bytes.js';

/** The query of a count, and what is needed to ask servers about it. */
export interface FarCountWish {
  readonly query: CountQuery;
  readonly schema: Schema;
  readonly predicates: PreparedPredicates;
}

/** The counts of one shard. */
interface FarGroupCount {
  readonly counted: FarCounted;
  /** The buckets of the counted ranges; null where the rows lack the time field, or none is counted by. */
  readonly buckets: readonly TimeBucket[] | null;
  /** Whether the rows have the field that is counted by value. */
  readonly hasValues: boolean;
  readonly numbers: readonly FarNumbers[];
}

/** The live rows of a copy that a plan has. */
interface PlannedUnit {
  readonly far: RemoteRows;
  readonly copy: FarCopy;
  readonly runs: { partition: number; firstOrdinal: number; rows: number }[];
  rows: number;
}

/** A question to one shard about rows that have the same fields. */
interface Asking {
  readonly question: Omit<FarCountQuestion, 'units' | 'time' | 'numbers'>;
  readonly numbers: readonly NumbersAsked[];
  readonly time: Field | null;
  readonly far: RemoteRows;
  readonly units: readonly FarCountUnit[];
  readonly rows: number;
}

/**
 * Lets the servers count the far rows of a plan. Null where their count would not be exact or would exceed what an answer has room for;
 * then the rows have to be read. Throws `unavailable` where a shard does not answer.
 */
export async function countFar(
  plan: ScanPlan,
  wish: FarCountWish,
  work: ScanWork,
  sourceOf: SourceOf,
): Promise<readonly RemoteCount[] | null> {
  const units = plannedUnits(plan);
  const askings = units === null ? null : askingsOf(units, wish);
  if (askings === null) return null;
  const ending = new AbortController();
  const signal = AbortSignal.any([ending.signal, work.pace.signal ?? ending.signal]);
  const counting = askings.map((asking) => countGroup(asking, wish, sourceOf(asking.far), signal));
  try {
    const counts = await Promise.all(counting);
    const known = counts.filter((count) => count !== null);
    for (const { counted, numbers } of known)
      for (const { bytes } of [counted, ...numbers.map((each) => each.counted)])
        work.stats.bytesRead += bytes;
    if (known.length < counts.length) return null;
    return known.map((group) => (tally: Tally) => tallyFar(tally, group));
  } finally {
    ending.abort(new Error('the count has ended'));
    await Promise.allSettled(counting);
  }
}

/** The units that have rows of a plan; null where some far rows are not in a cluster. */
function plannedUnits(plan: ScanPlan): readonly PlannedUnit[] | null {
  const units = new Map<string, PlannedUnit>();
  for (let i = plan.first; i < plan.end; i++) {
    const { remote: far } = plan.runs.at(i)!.rowGroup;
    const range = far === undefined ? null : rangeOfRun(plan, i);
    if (far === undefined || range === null) continue;
    const { copy } = far;
    if (copy === null) return null;
    let unit = units.get(copy.attempt);
    if (unit === undefined) {
      unit = { far, copy, runs: [], rows: 0 };
      units.set(copy.attempt, unit);
    }
    const { partition, firstOrdinal, rows } = range;
    const last = unit.runs.at(-1);
    if (last?.partition === partition && last.firstOrdinal + last.rows === firstOrdinal) last.rows += rows;
    else unit.runs.push({ partition, firstOrdinal, rows });
    unit.rows += rows;
  }
  return [...units.values()];
}

/** The questions to the shards; null where a server's count would not be exact. */
function askingsOf(units: readonly PlannedUnit[], wish: FarCountWish): readonly Asking[] | null {
  const askings: Asking[] = [];
  for (const all of groupBy(units, ({ far }) => far.group).values()) {
    const isPartial = ({ rows, copy }: PlannedUnit): boolean => rows !== copy.rows;
    const ranges = all.reduce((sum, unit) => sum + (isPartial(unit) ? unit.runs.length : 0), 0);
    if (ranges > farPartsMax) return null;
    for (let at = 0; at < all.length; at += farPartsMax) {
      const some = all.slice(at, at + farPartsMax);
      const asking = askingOf(some[0]!, wish);
      if (asking === null) return null;
      const asked = some.map((unit) => ({ copy: unit.copy, runs: isPartial(unit) ? unit.runs : null }));
      askings.push({ ...asking, units: asked, rows: some.reduce((sum, { rows }) => sum + rows, 0) });
    }
  }
  return askings;
}

function askingOf(
  { far, copy }: PlannedUnit,
  { query, schema, predicates }: FarCountWish,
): Omit<Asking, 'units' | 'rows'> | null {
  const { stored, agent } = far;
  if (!isExactCondition(predicates, schema, stored)) return null;
  const time = keptField(query.time?.field, schema, stored);
  const value = keptField(query.values?.field, schema, stored);
  const fields = query.numbers?.fields.map((field) => keptField(field, schema, stored)) ?? [];
  const numbers = numbersAsked(fields, query.numbers?.functions ?? []);
  if (time === undefined || value === undefined || numbers === null) return null;
  const condition = farCondition(predicates, schema, stored);
  return { far, time, numbers, question: { agent, shard: copy.shard, condition, value } };
}

/**
 * The stored form of a field. Null where rows don't have it or `field` is undefined; undefined where its values would have to be converted.
 */
function keptField(field: number | undefined, schema: Schema, stored: Schema): Field | null | undefined {
  const isLacked = field === undefined || field === lackedField;
  const kept = isLacked ? null : storedField(field, schema, stored);
  return kept === null || kept.conversion === 'none' ? (kept?.field ?? null) : undefined;
}

async function countGroup(
  { question, time, units, rows, numbers }: Asking,
  { query, predicates }: FarCountWish,
  source: FarSource,
  signal: AbortSignal,
): Promise<FarGroupCount | null> {
  if (source.count === undefined || source.times === undefined) return null;
  // Sums of as many low halves could exceed 64 bits.
  if (numbers.length > 0 && rows >= 2 ** 31) return null;
  const whole = { ...question, units, time: null, numbers: null };
  let buckets: readonly TimeBucket[] | null = null;
  if (time !== null) {
    const times = await source.times(whole, time, signal);
    buckets = times === null ? [] : bucketsBetween(query.time!.buckets, ...times, farPartsMax);
    if (buckets === null) return null;
  }
  const starts = buckets?.map(({ from }) => BigInt(from)) ?? [];
  const asked = { ...whole, time: time === null ? null : { field: time, starts } };
  const counted = await source.count(asked, signal);
  if (counted === null) return null;
  const sum = counted.rows.reduce((all, count) => all + count, 0);
  // Without predicates the count must be the number of live rows. A difference is an error, so that a count is never silently short.
  if (predicates.clauses.length === 0 && sum !== rows) throw lackingRows(sum, { ...firstOf(units), rows });
  const told: FarNumbers[] = [];
  for (const each of numbers) {
    const found = await source.count({ ...asked, numbers: each.question }, signal);
    if (found === null) return null;
    const groups = (time === null ? 0 : 1) + (question.value === null ? 0 : 1);
    told.push({ ...each, counted: found, columns: found.batch.columns.slice(groups) });
  }
  return { counted, buckets, hasValues: question.value !== null, numbers: told };
}

function firstOf([first]: readonly FarCountUnit[]): OrdinalRun {
  return first?.runs?.[0] ?? { partition: 0, firstOrdinal: 1, rows: 0 };
}

/** Adds the counts of servers to a tally. Returns the number of rows that they are. */
function tallyFar(tally: Tally, group: FarGroupCount): number {
  const { rows } = group.counted;
  const [rangeOf, source, isPresent] = groupsOf(group, group.counted);
  let sum = 0;
  for (const [i, count] of rows.entries()) {
    if (count === 0) continue;
    sum += count;
    const range = rangeOf(i);
    const bucket = range === null ? -1 : tally.countBucket(range, count);
    const value = isPresent(i) ? tally.countValue(source!, i, count) : -1;
    if (bucket < 0) tally.timeNulls += count;
    if (value < 0) tally.valueNulls += count;
    if (bucket >= 0 && value >= 0) tally.cells.add(bucket, value, count);
  }
  // The buckets and values of the numbers have been counted above.
  for (const numbers of group.numbers) {
    const [ofNumbers, values, hasValue] = groupsOf(group, numbers.counted);
    addNumbers(tally, numbers, (i) => {
      const range = ofNumbers(i);
      const bucket = range === null ? -1 : tally.bucketFrom(range.from)!;
      return keyOfCell(bucket, hasValue(i) ? values!.find(tally.values!, i) : -1);
    });
  }
  return sum;
}

/** What the rows of an answer are grouped by: their bucket, or null; their value, and whether they have one. */
function groupsOf(
  { buckets, hasValues }: FarGroupCount,
  { batch }: FarCounted,
): [rangeOf: (i: number) => TimeBucket | null, values: ValueBytes | null, hasValue: (i: number) => boolean] {
  const ranges = buckets === null ? undefined : batch.columns[0]!;
  const values = hasValues ? batch.columns[buckets === null ? 0 : 1]! : null;
  const rangeOf = (i: number): TimeBucket | null => {
    const range = ranges === undefined ? null : columnValue(ranges, i);
    return range === null ? null : buckets![Number(range)]!;
  };
  const source = values === null ? null : new ValueBytes(plainColumn(values));
  return [rangeOf, source, (i) => values !== null && isValid(values.validity, i)];
}
