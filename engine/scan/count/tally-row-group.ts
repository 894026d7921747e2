import { assert } from '../../terms/assert.js';
import { isValid, type Column } from '../../columns/column.js';
import { plainColumn } from '../../columns/take.js';
import { listRange } from '../../kernels/bitmap.js';
import type { TimeBucket, TimeBuckets } from '../plan/count.js';
import type { RowCounts } from '../job/row-counts.js';
import type { RowGroupCount } from './row-group-count.js';
import type { Tally } from './tally.js';
import { bucketOfTime } from './time-ranges.js';
import { integerBytes, ValueBytes, valuesOfRows } from './value-bytes.js';

/** A row group whose columns are held. A column is null where nothing is counted by it, or where it need not be read. */
export interface HeldRowGroup {
  readonly group: RowGroupCount;
  readonly time: Column | null;
  readonly value: Column | null;
}

/** Adds the counts of kernels to a tally. `counts.valueCounts` must not be null; else use `tallyEachRow`. */
export function tallyCounts(tally: Tally, { group, value }: HeldRowGroup, counts: RowCounts): void {
  const { ranges, valueCounts, pairs } = counts;
  const buckets = bucketNumbers(tally, group, ranges);
  const values = valueNumbers(tally, group, value, counts);
  tally.timeNulls += group.time?.kind === 'null' ? group.count : counts.timeNulls;
  tally.valueNulls += group.value?.kind === 'null' ? group.count : counts.valueNulls;
  if (group.time === null || group.value === null || buckets === null || values === null) return;
  // With one bucket, the counts by value are the pairs; with one value, those by bucket are.
  const ofPairs = pairs ?? (ranges.length === 0 ? valueCounts! : values.length === 1 ? ranges : null);
  if (ofPairs === null) tally.cells.fill();
  else if (ranges.length === 0 && valueCounts!.length === 0)
    tally.cells.add(buckets[0]!, values[0]!, group.count);
  else addPairs(tally, buckets, values, ofPairs);
}

function addPairs(tally: Tally, buckets: Int32Array, values: Int32Array, pairs: Uint32Array): void {
  for (let range = 0, at = 0; range < buckets.length; range++) {
    for (let code = 0; code < values.length; code++, at++) {
      if (pairs[at] !== 0) tally.cells.add(buckets[range]!, values[code]!, pairs[at]!);
    }
  }
}

/**
 * Adds the counts by bucket. Returns the number of each bucket that has rows, in the order of the ranges; null where there are no times.
 */
function bucketNumbers(
  tally: Tally,
  { time, buckets, count }: RowGroupCount,
  ranges: Uint32Array,
): Int32Array | null {
  if (time === null || time.kind === 'null') return null;
  if (time.kind === 'one') {
    const bucket = tally.bucketOf(time.one);
    tally.countBucket(bucket, count);
    return Int32Array.of(bucket);
  }
  const numbers = new Int32Array(ranges.length);
  for (let range = 0; range < ranges.length; range++) {
    if (ranges[range] === 0) continue;
    numbers[range] = tally.bucketOf(buckets![range]!);
    tally.countBucket(numbers[range]!, ranges[range]!);
  }
  return numbers;
}

/** Adds the counts by value. Returns the number of each value that occurs, in the order of the counts; null where there are no values. */
function valueNumbers(
  { values: table }: Tally,
  { value, count }: RowGroupCount,
  column: Column | null,
  { valueCounts, firstRows }: RowCounts,
): Int32Array | null {
  if (value === null || value.kind === 'null') return null;
  if (value.kind === 'one') {
    const bytes = typeof value.one === 'bigint' ? integerBytes(value.one) : value.one;
    const number = table!.add(bytes, 0, bytes.length);
    table!.count(number, count);
    return Int32Array.of(number);
  }
  assert(column !== null && valueCounts !== null, 'values are numbered before they are counted');
  const source = new ValueBytes(column.kind === 'dictionary' ? column.values : column);
  const numbers = new Int32Array(valueCounts.length);
  for (let code = 0; code < valueCounts.length; code++) {
    if (valueCounts[code] === 0) continue;
    numbers[code] = source.add(table!, firstRows === null ? code : firstRows[code]!);
    table!.count(numbers[code]!, valueCounts[code]!);
  }
  return numbers;
}

/** Counts row by row, where there are too many buckets or values for kernels. */
export function tallyEachRow(tally: Tally, held: HeldRowGroup, buckets: TimeBuckets | null): void {
  const { group } = held;
  const rows = rowsOf(group);
  const ofRows = bucketsOfRows(tally, held, rows, buckets);
  const values = valueNumbersOfRows(tally, held, rows);
  for (let i = 0; i < rows.length; i++) {
    const bucket = ofRows?.[i] ?? -1;
    const value = values?.[i] ?? -1;
    if (bucket >= 0) tally.countBucket(bucket, 1);
    else if (ofRows !== null) tally.timeNulls++;
    if (value >= 0) tally.values!.count(value, 1);
    else if (values !== null) tally.valueNulls++;
    if (bucket >= 0 && value >= 0) tally.cells.add(bucket, value, 1);
  }
}

/**
 * Counts row by row, only by bucket and value.
 *
 * @param columnOf the column that each value is counted in, by its number; -1 for none
 */
export function tallyCells(
  tally: Tally,
  held: HeldRowGroup,
  buckets: TimeBuckets,
  columnOf: Int32Array,
): void {
  const rows = rowsOf(held.group);
  const ofRows = bucketsOfRows(tally, held, rows, buckets)!;
  const values = valueNumbersOfRows(tally, held, rows)!;
  for (let i = 0; i < rows.length; i++) {
    const bucket = ofRows[i]!;
    const column = values[i]! < 0 ? -1 : columnOf[values[i]!]!;
    if (bucket >= 0 && column >= 0) tally.cells.add(bucket, column, 1);
  }
}

function rowsOf({ counted, count }: RowGroupCount): Uint32Array {
  const rows = new Uint32Array(count);
  const end = listRange(counted.bits, counted.from, counted.to, rows, 0);
  assert(end === count, `${end} rows are listed of ${count}`);
  return rows;
}

/** The number of the bucket of each row, -1 for null; null where nothing is counted by time. */
function bucketsOfRows(
  tally: Tally,
  { group, time: column }: HeldRowGroup,
  rows: Uint32Array,
  buckets: TimeBuckets | null,
): Int32Array | null {
  const { time } = group;
  if (time === null) return null;
  const found = new Int32Array(rows.length);
  if (time.kind === 'null') return found.fill(-1);
  if (time.kind === 'one') return found.fill(tally.bucketOf(time.one));
  assert(column !== null && buckets !== null, 'times are read before they are counted');
  const plain = plainColumn(column);
  assert(plain.kind === 'int64', `a column of ${plain.kind} holds no times`);
  const { values, validity } = plain;
  let bucket: TimeBucket = { from: 0, until: 0 };
  let number = -1;
  for (let i = 0; i < rows.length; i++) {
    const row = rows[i]!;
    if (!isValid(validity, row)) {
      found[i] = -1;
      continue;
    }
    const time = Number(values[row]!);
    // Doubles represent the ends of buckets exactly, so that rounding cannot move a time to another bucket.
    if (time < bucket.from || time >= bucket.until) {
      bucket = bucketOfTime(buckets, values[row]!);
      number = tally.bucketOf(bucket);
    }
    found[i] = number;
  }
  return found;
}

/** The number of the value of each row, -1 for null; null where nothing is counted by value. */
function valueNumbersOfRows(
  { values: table }: Tally,
  { group, value: column }: HeldRowGroup,
  rows: Uint32Array,
): Int32Array | null {
  const { value } = group;
  if (value === null) return null;
  if (value.kind === 'null') return new Int32Array(rows.length).fill(-1);
  if (value.kind === 'one') {
    const bytes = typeof value.one === 'bigint' ? integerBytes(value.one) : value.one;
    return new Int32Array(rows.length).fill(table!.add(bytes, 0, bytes.length));
  }
  assert(column !== null, 'values are read before they are counted');
  return valuesOfRows(column, rows, table!);
}
