import { assert } from '../../terms/assert.js';
import {
  countNumberedBytesMax,
  countPairsOfRowGroupMax,
  countRowsForOneMax,
  dictionaryEntriesMax,
} from '../../terms/limits.js';
import { halvesOf, type Column, type PlainColumn, type Validity } from '../../columns/column.js';
import { plainColumn } from '../../columns/take.js';
import { andRange, countRange } from '../../kernels/bitmap.js';
import { countCodes, countPairs, countRanges, type CountedRows } from '../../kernels/count.js';
import { numberBytes, numberWords } from '../../kernels/dictionary.js';

/** Rows of a row group to count, and the columns to count by. A column that is not counted by is null. */
export interface RowsToCount {
  readonly counted: CountedRows;
  /** Number of rows in `counted`. */
  readonly count: number;
  readonly time: Column | null;
  /** The starts of the buckets that the times are in, ascending; empty without times. */
  readonly starts: BigInt64Array;
  readonly value: Column | null;
  /** Whether to count by bucket and value, too. */
  readonly wantsPairs: boolean;
}

/** The values of a column as numbers: dictionary codes, or numbers that were assigned here. */
interface Numbered {
  readonly codes: Uint8Array | Uint16Array;
  readonly entries: number;
  /** The first row with each number; null where the numbers are dictionary codes. */
  readonly firstRows: Uint32Array | null;
}

/** The counts of a row group. Values are named by their numbers in the row group. */
export interface RowCounts {
  readonly timeNulls: number;
  readonly valueNulls: number;
  /** Counts by bucket; empty where nothing is counted by time. */
  readonly ranges: Uint32Array;
  /**
   * Counts by value. Null where values can only be counted row by row, which the caller has to do then, including everything else that
   * concerns values.
   */
  readonly valueCounts: Uint32Array | null;
  /** A row with each of the values; null where the numbers are dictionary codes. */
  readonly firstRows: Uint32Array | null;
  /** Counts by bucket and value; those of one bucket are consecutive. Null where they would be too many. */
  readonly pairs: Uint32Array | null;
}

/** Counts the rows of a row group. Reads only the columns it is given, whatever memory they are in. */
export function countRows({ counted, count, time, starts, value, wantsPairs }: RowsToCount): RowCounts {
  const times = time === null ? null : present(counted, count, time.validity);
  const values = value === null ? null : present(counted, count, value.validity);
  const timeValues = time === null ? null : integersOf(time);
  const numbered = value === null ? null : numberedOf(value, values!.count);
  const pairs =
    wantsPairs && numbered !== null && timeValues !== null
      ? pairsOf(timeValues, starts, numbered, both(times!.rows, value!.validity))
      : null;
  // Where every row has both a time and a value, the other counts are sums of the pairs.
  const areSums = pairs !== null && times!.nulls === 0 && values!.nulls === 0;
  const ranges = new Uint32Array(time === null ? 0 : starts.length);
  if (areSums) addRanges(pairs, ranges);
  else if (timeValues !== null) countRanges(timeValues, times!.rows, starts, ranges);
  // Null where there is a column but its values have no numbers, so that the caller has to count; empty without a column.
  const valueCounts = value !== null && numbered === null ? null : new Uint32Array(numbered?.entries ?? 0);
  if (areSums) addValues(pairs, valueCounts!);
  else if (numbered !== null) countCodes(numbered.codes, values!.rows, valueCounts!);
  return {
    timeNulls: times?.nulls ?? 0,
    valueNulls: values?.nulls ?? 0,
    ranges,
    valueCounts,
    firstRows: numbered?.firstRows ?? null,
    pairs,
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

function present(counted: CountedRows, count: number, validity: Validity): PresentRows {
  const rows = both(counted, validity);
  const present = validity === null ? count : countRange(rows.bits, rows.from, rows.to);
  return { rows, count: present, nulls: count - present };
}

/** The counted rows that are present in `validity`. */
function both(counted: CountedRows, validity: Validity): CountedRows {
  if (validity === null) return counted;
  const { from, to } = counted;
  const bits = counted.bits.slice();
  andRange(bits, validity, from & ~7, to);
  return { bits, from, to };
}

function integersOf(column: Column): BigInt64Array {
  const plain: PlainColumn = plainColumn(column);
  assert(plain.kind === 'int64', `a column of ${plain.kind} holds no times`);
  return plain.values;
}

/**
 * Numbers the values of a column. Null where they have no dictionary, and numbering them would take longer than looking at each row, or too
 * much memory.
 */
function numberedOf(column: Column, count: number): Numbered | null {
  if (column.kind === 'dictionary')
    return { codes: column.codes, entries: column.values.length, firstRows: null };
  const { length } = column;
  if (count * countRowsForOneMax < length || length > dictionaryEntriesMax) return null;
  const codes = new Uint16Array(length);
  const firstRows = new Uint32Array(length);
  const entries = numberRows(column, codes, firstRows);
  return entries < 0 ? null : { codes, entries, firstRows: firstRows.slice(0, entries) };
}

function numberRows(column: PlainColumn, codes: Uint16Array, firstRows: Uint32Array): number {
  const { length } = column;
  if (column.kind !== 'bytes') return numberWords(halvesOf(column.values), length, length, codes, firstRows);
  const { bytes, offsets } = column;
  if (offsets[length]! - offsets[0]! > countNumberedBytesMax) return -1;
  return numberBytes(bytes, offsets, length, length, codes, firstRows);
}

function pairsOf(
  times: BigInt64Array,
  starts: BigInt64Array,
  { codes, entries }: Numbered,
  rows: CountedRows,
): Uint32Array | null {
  if (starts.length * entries > countPairsOfRowGroupMax) return null;
  const pairs = new Uint32Array(starts.length * entries);
  countPairs(times, codes, entries, rows, starts, pairs);
  return pairs;
}
