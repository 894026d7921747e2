/**
 * Builds dictionaries of the distinct values of a column, in the order of their first rows, and sorts them. The hash table uses open
 * addressing and is never more than half full. A column without a repeated value in its first 16384 rows has ids or messages; it is given
 * up before the limit of entries is reached, which saves a third of the pass.
 */
import { openScratch } from '../core/scratch.js';
import { kernelsOver } from './kernels.js';

/** The number of bits of a slot index: the table has at least twice as many slots as entries. */
function tableBits(entriesMax: number): number {
  return Math.max(4, 33 - Math.clz32(entriesMax));
}

/**
 * Numbers the distinct values bytes[offsets[i], offsets[i + 1]) for i in [0, count). Writes the code of each row to `codes`, and the first
 * row with each code to `firstRows`, which needs room for `entriesMax` (at most 65536) elements. Returns the number of distinct values, or
 * -1 when there are more than `entriesMax`, or there clearly will be.
 */
export function numberBytes(
  bytes: Uint8Array,
  offsets: Uint32Array,
  count: number,
  entriesMax: number,
  codes: Uint16Array,
  firstRows: Uint32Array,
): number {
  const start = offsets[0]!;
  const end = offsets[count]!;
  const bits = tableBits(entriesMax);
  const scratch = openScratch(end - start + count * 6 + 4 + entriesMax * 4 + 2 ** bits * 8);
  const codesAt = scratch.reserve(count * 2);
  const firstRowsAt = scratch.reserve(entriesMax * 4);
  const tableAt = scratch.reserve(2 ** bits * 8);
  const offsetsAt = scratch.place(offsets, 0, count + 1);
  const bytesAt = scratch.place(bytes, start, end) - start;
  const kernels = kernelsOver(scratch);
  const distinct = kernels.numberBytes(
    bytesAt,
    offsetsAt,
    count,
    entriesMax,
    codesAt,
    firstRowsAt,
    tableAt,
    bits,
  );
  if (distinct < 0) return -1;
  scratch.copyOut(codesAt, codes, 0, count);
  scratch.copyOut(firstRowsAt, firstRows, 0, distinct);
  return distinct;
}

/** Like `numberBytes`, for 64-bit values (integers, or the bits of doubles) as pairs of 32-bit halves, low half first. */
export function numberWords(
  halves: Int32Array,
  count: number,
  entriesMax: number,
  codes: Uint16Array,
  firstRows: Uint32Array,
): number {
  const bits = tableBits(entriesMax);
  const scratch = openScratch(count * 10 + entriesMax * 4 + 2 ** bits * 4);
  const valuesAt = scratch.place(halves, 0, count * 2);
  const codesAt = scratch.reserve(count * 2);
  const firstRowsAt = scratch.reserve(entriesMax * 4);
  const tableAt = scratch.reserve(2 ** bits * 4);
  const distinct = kernelsOver(scratch).numberWords(
    valuesAt,
    count,
    entriesMax,
    codesAt,
    firstRowsAt,
    tableAt,
    bits,
  );
  if (distinct < 0) return -1;
  scratch.copyOut(codesAt, codes, 0, count);
  scratch.copyOut(firstRowsAt, firstRows, 0, distinct);
  return distinct;
}

/** Counters for sorting: 256 for each of the 8 bytes of a key. */
const counterBytes = 8 * 256 * 4;

/**
 * Sorting looks at this many bytes of an entry. Entries with more equal bytes are neighbours in any order, so compression finds what they
 * share. The bound keeps the work linear.
 */
export const sortedBytesMax = 256;

/**
 * Sorts the entries of a dictionary that `numberBytes` made of the same rows, by their first `sortedBytesMax` bytes. Entries that are equal
 * so far stay in their order. Writes the new codes of the rows to `codes`, and the row of each entry in the new order to `firstRows`.
 */
export function sortBytes(
  bytes: Uint8Array,
  offsets: Uint32Array,
  count: number,
  entries: number,
  codes: Uint16Array,
  firstRows: Uint32Array,
): void {
  const start = offsets[0]!;
  const end = offsets[count]!;
  const scratch = openScratch(end - start + count * 6 + 4 + entries * 37 + counterBytes);
  const codesAt = scratch.copy(codes, 0, count);
  const firstRowsAt = scratch.copy(firstRows, 0, entries);
  const pairsAt = scratch.reserve(entries * 32 + counterBytes);
  const startsAt = scratch.reserve(entries);
  const offsetsAt = scratch.place(offsets, 0, count + 1);
  const bytesAt = scratch.place(bytes, start, end) - start;
  kernelsOver(scratch).sortBytes(
    bytesAt,
    offsetsAt,
    count,
    entries,
    sortedBytesMax,
    codesAt,
    firstRowsAt,
    pairsAt,
    startsAt,
  );
  scratch.copyOut(codesAt, codes, 0, count);
  scratch.copyOut(firstRowsAt, firstRows, 0, entries);
}

/** Like `sortBytes`, for 64-bit values as pairs of 32-bit halves. They are sorted as unsigned numbers. */
export function sortWords(
  halves: Int32Array,
  count: number,
  entries: number,
  codes: Uint16Array,
  firstRows: Uint32Array,
): void {
  const scratch = openScratch(count * 10 + entries * 36 + counterBytes);
  const valuesAt = scratch.place(halves, 0, count * 2);
  const codesAt = scratch.copy(codes, 0, count);
  const firstRowsAt = scratch.copy(firstRows, 0, entries);
  const pairsAt = scratch.reserve(entries * 32 + counterBytes);
  kernelsOver(scratch).sortWords(valuesAt, count, entries, codesAt, firstRowsAt, pairsAt);
  scratch.copyOut(codesAt, codes, 0, count);
  scratch.copyOut(firstRowsAt, firstRows, 0, entries);
}
