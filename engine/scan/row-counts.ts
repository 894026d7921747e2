import { assert } from '../core/errors.js';
import { countRowsForOneMax } from '../core/limits.js';
import { isValid, type Column, type PlainColumn, type Validity } from '../columns/column.js';
import { plainColumn, takeColumn } from '../columns/take.js';
import { bitmapBytes, countRange, listRange } from '../kernels/bitmap.js';
import { countCodes, countPairs, countRanges, type CountedRows } from '../kernels/count.js';
import {
  countsOfRanges,
  numbersOfRows,
  present,
  type GroupNumbers,
  type NumberField,
} from '../numbers/group-numbers.js';
import { eachItsOwn, numberedOf, type Numbered } from '../numbers/numbered.js';

/** Rows of a row group to count, and the columns to count by. A column that is not read is null. */
export interface RowsToCount {
  readonly counted: CountedRows;
  /** Number of rows in `counted`. */
  readonly count: number;
  readonly time: Column | null;
  /**
   * The starts of the buckets that the times are in, ascending. Without the column, all rows are in the only bucket, or no row has a time if
   * there is none.
   */
  readonly starts: BigInt64Array;
  readonly value: Column | null;
  /** Whether all rows have the same value, where the column is not read; else no row has a value then. */
  readonly hasOneValue: boolean;
  /** The most counts by bucket and value; 0 if they are not wanted. */
  readonly pairsMax: number;
  /** The fields whose numbers are wanted. */
  readonly numbers: readonly NumberField[];
}

/** The counts of a row group. Values are named by their numbers in the row group. Several numbers may have the same value. */
export interface RowCounts {
  readonly timeNulls: number;
  readonly valueNulls: number;
  /** Counts by bucket. */
  readonly ranges: Uint32Array;
  /** Counts by value. */
  readonly valueCounts: Uint32Array;
  /** A row with each of the values; null where the numbers are dictionary codes. */
  readonly firstRows: Uint32Array | null;
  /** Counts by bucket and value; those of one bucket are consecutive. Null where they are not wanted or would be too many. */
  readonly pairs: Uint32Array | null;
  /** Null where no numbers are wanted. */
  readonly numbers: GroupNumbers | null;
}

/** Whether numbering the values of all rows would take longer than looking at those of the counted ones. */
export function areFew(count: number, { length }: Column): boolean {
  return count * countRowsForOneMax < length;
}

/** Counts the rows of a row group. Reads only the columns it is given, whatever memory they are in. */
export function countRows(given: RowsToCount): RowCounts {
  const { counted, count, time, value, numbers } = given;
  if (value === null || value.kind === 'dictionary' || !areFew(count, value))
    return countNumbered(given, value === null ? null : numberedOf(value));
  const rows = new Uint32Array(count);
  listRange(counted.bits, counted.from, counted.to, rows, 0);
  const few = {
    ...given,
    counted: { bits: new Uint8Array(bitmapBytes(count)).fill(0xff), from: 0, to: count },
    time: time === null ? null : takeColumn(time, rows),
    numbers: numbers.map((each) => ({ ...each, column: each.column && takeColumn(each.column, rows) })),
  };
  return countNumbered(few, { ...eachItsOwn(count), firstRows: rows, validity: validityOf(value, rows) });
}

function countNumbered(
  { counted, count, time, starts, hasOneValue, pairsMax, numbers }: RowsToCount,
  numbered: Numbered | null,
): RowCounts {
  const times = time === null ? null : presentRows(counted, count, time.validity);
  const values = numbered === null ? null : presentRows(counted, count, numbered.validity);
  const timeValues = time === null ? null : integersOf(time);
  const pairs =
    numbered !== null && timeValues !== null && starts.length * numbered.entries <= pairsMax
      ? pairsOf(timeValues, starts, numbered, present(times!.rows, numbered.validity))
      : null;
  // Where every row has both a time and a value, the other counts are sums of the pairs.
  const areSums = pairs !== null && times!.nulls === 0 && values!.nulls === 0;
  const ranges = new Uint32Array(starts.length);
  const valueCounts = new Uint32Array(numbered?.entries ?? (hasOneValue ? 1 : 0));
  const grouped = {
    counted,
    count,
    time: timeValues && { values: timeValues, validity: time!.validity },
    starts,
    numbered,
    codes: valueCounts.length,
  };
  const ofFields = numbers.length === 0 ? null : numbersOfRows(grouped, numbers);
  if (areSums) addRanges(pairs, ranges);
  else if (timeValues === null) ranges.fill(count);
  else if (times!.nulls > 0 || ofFields === null || !countsOfRanges(ofFields, numbers, ranges))
    countRanges(timeValues, times!.rows, starts, ranges);
  if (areSums) addValues(pairs, valueCounts);
  else if (numbered !== null) countCodes(numbered.codes, values!.rows, valueCounts);
  else valueCounts.fill(count);
  return {
    timeNulls: times?.nulls ?? (starts.length === 0 ? count : 0),
    valueNulls: values?.nulls ?? (hasOneValue ? 0 : count),
    ranges,
    valueCounts,
    firstRows: numbered?.firstRows ?? null,
    pairs,
    numbers: ofFields,
  };
}

/** Adds up the counts of each range over all values. */
function addRanges(pairs: Uint32Array, ranges: Uint32Array): void {
  const values = pairs.length / ranges.length;
  for (let range = 0, at = 0; range < ranges.length; range++)
    for (const end = at + values; at < end; at++) ranges[range]! += pairs[at]!;
}

/** Adds up the counts of each value over all ranges. */
function addValues(pairs: Uint32Array, valueCounts: Uint32Array): void {
  for (let at = 0; at < pairs.length;)
    for (let code = 0; code < valueCounts.length; code++, at++) valueCounts[code]! += pairs[at]!;
}

/** The counted rows in which a column has a value. */
interface PresentRows {
  readonly rows: CountedRows;
  readonly count: number;
  readonly nulls: number;
}

function presentRows(counted: CountedRows, count: number, validity: Validity): PresentRows {
  const rows = present(counted, validity);
  const found = validity === null ? count : countRange(rows.bits, rows.from, rows.to);
  return { rows, count: found, nulls: count - found };
}

function integersOf(column: Column): BigInt64Array {
  const plain: PlainColumn = plainColumn(column);
  assert(plain.kind === 'int64', `a column of ${plain.kind} holds no times`);
  return plain.values;
}

function validityOf({ validity }: Column, rows: Uint32Array): Validity {
  if (validity === null) return null;
  const bits = new Uint8Array(bitmapBytes(rows.length));
  for (const [i, row] of rows.entries()) if (isValid(validity, row)) bits[i >> 3]! |= 1 << (i & 7);
  return bits;
}

function pairsOf(
  times: BigInt64Array,
  starts: BigInt64Array,
  { codes, entries }: Numbered,
  rows: CountedRows,
): Uint32Array {
  const pairs = new Uint32Array(starts.length * entries);
  countPairs(times, codes, entries, rows, starts, pairs);
  return pairs;
}
