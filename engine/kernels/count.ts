/**
 * Rows counted by what they hold. `bits` is a bitmap of the rows to count, of which those of [from, to) are looked at. Counts are added to
 * what `counts` has.
 */
import { openScratch, scratchBytes, type Scratch, type TypedArray } from '../memory/scratch.js';
import { kernelsOver } from './kernels.js';

/** Four tables of a count for each 8-bit code. */
const tablesBytes = 4 * 256 * 4;

/** Rows of [from, to) that are to be counted. */
export interface CountedRows {
  readonly bits: Uint8Array;
  readonly from: number;
  readonly to: number;
}

/**
 * Counts rows by the range that their integer lies in. Range i has the integers from `starts[i]` up to the next start, the last one all
 * from its start on. The starts ascend, there is one at least, and no row to be counted has an integer below the first.
 */
export function countRanges(
  values: BigInt64Array,
  rows: CountedRows,
  starts: BigInt64Array,
  counts: Uint32Array,
): void {
  const { from, to } = rows;
  if (from >= to) return;
  const scratch = openScratch(sizeOf(rows, values) + scratchBytes(starts, starts.length) + counts.byteLength);
  const valuesAt = placeRows(scratch, values, from, to);
  const bitsAt = placeBits(scratch, rows);
  const startsAt = scratch.place(starts, 0, starts.length);
  const countsAt = scratch.copy(counts, 0, counts.length);
  kernelsOver(scratch).countRanges(valuesAt, bitsAt, from, to, startsAt, starts.length, countsAt);
  scratch.copyOut(countsAt, counts, 0, counts.length);
}

/** Counts rows by their codes, of which each is an index of `counts`; 8-bit codes have 256 counts at most. */
export function countCodes(codes: Uint8Array | Uint16Array, rows: CountedRows, counts: Uint32Array): void {
  const { from, to } = rows;
  if (from >= to) return;
  const scratch = openScratch(sizeOf(rows, codes) + counts.byteLength + tablesBytes);
  const codesAt = placeRows(scratch, codes, from, to);
  const bitsAt = placeBits(scratch, rows);
  const countsAt = scratch.copy(counts, 0, counts.length);
  const kernels = kernelsOver(scratch);
  if (codes instanceof Uint8Array) {
    const tablesAt = scratch.reserveZeros(tablesBytes);
    kernels.countCodes8(codesAt, bitsAt, from, to, counts.length, tablesAt, countsAt);
  } else {
    kernels.countCodes16(codesAt, bitsAt, from, to, countsAt);
  }
  scratch.copyOut(countsAt, counts, 0, counts.length);
}

/** Counts rows by range, as `countRanges`, and code: the counts of the `codesOfRange` codes of a range lie together. */
export function countPairs(
  values: BigInt64Array,
  codes: Uint8Array | Uint16Array,
  codesOfRange: number,
  rows: CountedRows,
  starts: BigInt64Array,
  counts: Uint32Array,
): void {
  const { from, to } = rows;
  if (from >= to) return;
  const scratch = openScratch(
    sizeOf(rows, values) +
      scratchBytes(codes, to - (from & ~63)) +
      scratchBytes(starts, starts.length) +
      counts.byteLength +
      tablesBytes,
  );
  const valuesAt = placeRows(scratch, values, from, to);
  const codesAt = placeRows(scratch, codes, from, to);
  const bitsAt = placeBits(scratch, rows);
  const startsAt = scratch.place(starts, 0, starts.length);
  const countsAt = scratch.copy(counts, 0, counts.length);
  const { length } = starts;
  const codeBytes = codes.BYTES_PER_ELEMENT;
  kernelsOver(scratch).countPairs(
    valuesAt,
    codesAt,
    codeBytes,
    bitsAt,
    from,
    to,
    startsAt,
    length,
    codesOfRange,
    scratch.reserveZeros(tablesBytes),
    countsAt,
  );
  scratch.copyOut(countsAt, counts, 0, counts.length);
}

/** What the rows and their values take of the scratch memory. */
function sizeOf({ bits, from, to }: CountedRows, values: TypedArray): number {
  return scratchBytes(values, to - (from & ~63)) + scratchBytes(bits, bits.length);
}

/** The address that row 0 would have; those of [from, to) are there, and those before them in their word. */
function placeRows(scratch: Scratch, values: TypedArray, from: number, to: number): number {
  const first = from & ~63;
  return scratch.place(values, first, to) - first * values.BYTES_PER_ELEMENT;
}

/** The same, of the bitmap. */
function placeBits(scratch: Scratch, { bits, from, to }: CountedRows): number {
  const first = (from >> 6) << 3;
  return scratch.place(bits, first, Math.min(bits.length, (to + 7) >> 3)) - first;
}
