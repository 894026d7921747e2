import { assert } from '../core/errors.js';
import {
  type BytesColumn,
  halvesOf,
  type Int64Column,
  type PlainColumn,
  numberColumn,
} from '../columns/column.js';
import { takeColumn } from '../columns/take.js';
import { dictionaryEntriesMax, rowGroupRowsMax } from '../core/limits.js';
import { codeBits, packCodes } from '../kernels/bit-packing.js';
import { copyBytes as copyArray } from '../kernels/copy.js';
import { encodeDelta } from '../kernels/delta.js';
import { numberBytes, numberWords, sortBytes, sortWords } from '../kernels/dictionary.js';
import { encodePlainStrings } from '../kernels/plain-strings.js';
import { writeVarint } from '../kernels/validity.js';
import { listRange, countRange } from '../kernels/bitmap.js';
import { gatherWords } from '../kernels/spread.js';

/** The distinct values of a column, sorted if there are many, and a code for each row. */
export interface DistinctValues {
  readonly entries: PlainColumn;
  /** Valid until the next call of `distinctValues` or `doValuesRepeat`, which reuse the array. */
  readonly codes: Uint16Array;
  readonly rows: number;
}

/** With a larger share of distinct values, a dictionary saves nothing that compression would not save. */
const distinctShareMax = 0.4;

/**
 * A dictionary of more entries is sorted: neighbours then share most of their bytes, and compression finds that. A small dictionary takes
 * few bytes in any order, and sorting it could make the codes larger: in the order of the first rows the most frequent values have small
 * codes.
 */
const unsortedEntriesMax = 256;

const codes = new Uint16Array(rowGroupRowsMax);
const firstRows = new Uint32Array(dictionaryEntriesMax);

/** The most distinct values for which a dictionary of `rows` rows pays. */
export function distinctValuesMax(rows: number): number {
  return Math.max(1, Math.min(dictionaryEntriesMax, Math.ceil(rows * distinctShareMax)));
}

/** Finds the distinct values of a column without nulls. Null when there are too many for a dictionary to pay. */
export function distinctValues(column: PlainColumn): DistinctValues | null {
  const distinct = numberValues(column);
  if (distinct < 0) return null;
  if (distinct > unsortedEntriesMax) sortEntries(column, distinct);
  return { entries: takeColumn(column, firstRows.subarray(0, distinct)), codes, rows: column.length };
}

/** Whether a dictionary would pay for a column without nulls. */
export function doValuesRepeat(column: PlainColumn): boolean {
  return numberValues(column) >= 0;
}

/** Fills `codes` and `firstRows`. Returns the number of distinct values, or -1 where there are too many. */
function numberValues(column: PlainColumn): number {
  const rows = column.length;
  const entriesMax = distinctValuesMax(rows);
  return column.kind === 'bytes'
    ? numberBytes(column.bytes, column.offsets, rows, entriesMax, codes, firstRows)
    : numberWords(halvesOf(column.values), rows, entriesMax, codes, firstRows);
}

/** Sorts the entries in `firstRows`, and changes `codes` accordingly. */
function sortEntries(column: PlainColumn, entries: number): void {
  const rows = column.length;
  if (column.kind === 'bytes') sortBytes(column.bytes, column.offsets, rows, entries, codes, firstRows);
  else sortWords(halvesOf(column.values), rows, entries, codes, firstRows);
}

/** Bytes of the first `rows` strings. */
function contentBytes(column: BytesColumn, rows: number): number {
  return column.offsets[rows]! - column.offsets[0]!;
}

/** Encodes in PLAIN: the values one after another, each string after its length (4 bytes, little-endian). Returns the end in `target`. */
export function encodePlain(column: PlainColumn, rows: number, target: Uint8Array): number {
  if (column.kind !== 'bytes') {
    const { values } = column;
    target.set(new Uint8Array(values.buffer, values.byteOffset, rows * 8));
    return rows * 8;
  }
  return encodePlainStrings(column.bytes, column.offsets, rows, target);
}

/** Encodes a BOOLEAN in PLAIN: one bit per row, least significant bit first; 1 where the integer is not 0. Returns the end in `target`. */
export function encodeBits(column: Int64Column, target: Uint8Array): number {
  const halves = halvesOf(column.values);
  const end = (column.length + 7) >> 3;
  target.fill(0, 0, end);
  for (let row = 0; row < column.length; row++)
    if (halves[2 * row] !== 0) target[row >> 3]! |= 1 << (row & 7);
  return end;
}

/** Encodes in DELTA_LENGTH_BYTE_ARRAY: all lengths, then all bytes. Returns the end in `target`. */
export function encodeDeltaLengths(column: BytesColumn, rows: number, target: Uint8Array): number {
  const lengths = new BigInt64Array(rows);
  const halves = halvesOf(lengths);
  for (let row = 0; row < rows; row++) halves[2 * row] = column.offsets[row + 1]! - column.offsets[row]!;
  const at = encodeDelta(lengths, rows, target, 0);
  copyArray(column.bytes, column.offsets[0]!, column.offsets[rows]!, target, at);
  return at + contentBytes(column, rows);
}

/** Encodes in RLE_DICTIONARY: the width of the codes, then one run. Returns the end in `target`. */
export function encodeCodes(distinct: DistinctValues, target: Uint8Array): number {
  const { rows } = distinct;
  assert(rows > 0, 'a dictionary has rows');
  const width = codeBits(distinct.entries.length);
  target[0] = width;
  // Codes of 0 bits can't be packed. They are one RLE run, which has a length and no bytes.
  if (width === 0) return writeVarint(rows * 2, target, 1);
  const at = writeVarint((Math.ceil(rows / 8) << 1) | 1, target, 1);
  return packCodes(distinct.codes, rows, width, target, at);
}

/** The column without its nulls, which is what a page stores. Its `validity` is null, and its `length` is the number of present rows. */
export function presentValues(column: PlainColumn): PlainColumn {
  const bits = column.validity;
  if (bits === null) return column;
  const present = countRange(bits, 0, column.length);
  if (present === column.length) return { ...column, validity: null };
  if (column.kind === 'bytes') return presentStrings(column, bits, present);
  const halves = new Int32Array(present * 2);
  gatherWords(halvesOf(column.values), bits, column.length, halves);
  return numberColumn(column.kind, present, halves.buffer, 0, null);
}

function presentStrings(column: BytesColumn, bits: Uint8Array, present: number): PlainColumn {
  const { length } = column;
  const offsets = new Uint32Array(present + 1);
  let at = 0;
  let nullBytes = 0;
  for (let row = 0; row < length; row++) {
    if ((bits[row >> 3]! & (1 << (row & 7))) !== 0) offsets[at++] = column.offsets[row]!;
    else nullBytes += column.offsets[row + 1]! - column.offsets[row]!;
  }
  offsets[present] = column.offsets[length]!;
  // If nulls take no bytes, as they should, the bytes of the present values are contiguous and need not be copied.
  if (nullBytes === 0)
    return { kind: 'bytes', length: present, offsets, bytes: column.bytes, validity: null };
  const rows = new Uint32Array(present);
  listRange(bits, 0, length, rows, 0);
  return takeColumn({ ...column, validity: null }, rows);
}
