import { assert } from '../terms/assert.js';
import { type BytesColumn, halvesOf, type Int64Column, type PlainColumn } from '../columns/column.js';
import { takeColumn } from '../columns/take.js';
import { dictionaryEntriesMax, rowGroupRowsMax } from '../terms/limits.js';
import { codeBits, packCodes } from '../kernels/bit-packing.js';
import { copyBytes as copyArray } from '../kernels/copy.js';
import { encodeDelta } from '../kernels/delta.js';
import { numberBytes, numberWords } from '../kernels/dictionary.js';
import { encodePlainStrings } from '../kernels/plain-strings.js';

/** A column as its distinct values, in the order of their first row, and a code for each row. */
export interface DistinctValues {
  readonly entries: PlainColumn;
  /** Valid until those of the next column are found. */
  readonly codes: Uint16Array;
  readonly rows: number;
}

/** Above this share of distinct values a dictionary saves nothing that compression would not. */
const distinctShareMax = 0.4;

const codes = new Uint16Array(rowGroupRowsMax);
const firstRows = new Uint32Array(dictionaryEntriesMax);

/** The most distinct values of so many rows for which a dictionary pays. */
export function distinctValuesMax(rows: number): number {
  return Math.max(1, Math.min(dictionaryEntriesMax, Math.ceil(rows * distinctShareMax)));
}

/** Finds the distinct values of a column without nulls; null when there are too many for a dictionary to pay. */
export function distinctValues(column: PlainColumn): DistinctValues | null {
  const distinct = numberValues(column);
  if (distinct < 0) return null;
  return { entries: takeColumn(column, firstRows.subarray(0, distinct)), codes, rows: column.length };
}

/** Whether the values of a column without nulls repeat so often that a dictionary would pay. */
export function doValuesRepeat(column: PlainColumn): boolean {
  return numberValues(column) >= 0;
}

/** Writes `codes` and `firstRows`. Returns the number of distinct values; -1 where they are too many. */
function numberValues(column: PlainColumn): number {
  const rows = column.length;
  const entriesMax = distinctValuesMax(rows);
  return column.kind === 'bytes'
    ? numberBytes(column.bytes, column.offsets, rows, entriesMax, codes, firstRows)
    : numberWords(halvesOf(column.values), rows, entriesMax, codes, firstRows);
}

/** Bytes of the first `rows` strings. */
function contentBytes(column: BytesColumn, rows: number): number {
  return column.offsets[rows]! - column.offsets[0]!;
}

/** PLAIN: the values one behind another, strings with their length (4 bytes, little-endian) before them. Returns the end. */
export function encodePlain(column: PlainColumn, rows: number, target: Uint8Array): number {
  if (column.kind !== 'bytes') {
    const { values } = column;
    target.set(new Uint8Array(values.buffer, values.byteOffset, rows * 8));
    return rows * 8;
  }
  return encodePlainStrings(column.bytes, column.offsets, rows, target);
}

/** PLAIN of a BOOLEAN: a bit a row, the least significant one first; 1 where the integer is not 0. Returns the end. */
export function encodeBits(column: Int64Column, target: Uint8Array): number {
  const halves = halvesOf(column.values);
  const end = (column.length + 7) >> 3;
  target.fill(0, 0, end);
  for (let row = 0; row < column.length; row++)
    if (halves[2 * row] !== 0) target[row >> 3]! |= 1 << (row & 7);
  return end;
}

/** DELTA_LENGTH_BYTE_ARRAY: all lengths, then all bytes. Returns the end. */
export function encodeDeltaLengths(column: BytesColumn, rows: number, target: Uint8Array): number {
  const lengths = new BigInt64Array(rows);
  const halves = halvesOf(lengths);
  for (let row = 0; row < rows; row++) halves[2 * row] = column.offsets[row + 1]! - column.offsets[row]!;
  const at = encodeDelta(lengths, rows, target, 0);
  copyArray(column.bytes, column.offsets[0]!, column.offsets[rows]!, target, at);
  return at + contentBytes(column, rows);
}

/** RLE_DICTIONARY: the width of the codes, then one run. Returns the end. */
export function encodeCodes(distinct: DistinctValues, target: Uint8Array): number {
  const { rows } = distinct;
  assert(rows > 0, 'a dictionary has rows');
  const width = codeBits(distinct.entries.length);
  target[0] = width;
  // Codes without bits can't be packed: a repeated run of them has a length and no bytes.
  if (width === 0) return writeVarint(rows * 2, target, 1);
  const at = writeVarint((Math.ceil(rows / 8) << 1) | 1, target, 1);
  return packCodes(distinct.codes, rows, width, target, at);
}

function writeVarint(value: number, target: Uint8Array, at: number): number {
  while (value >= 128) {
    target[at++] = (value & 127) | 128;
    value >>>= 7;
  }
  target[at++] = value;
  return at;
}
