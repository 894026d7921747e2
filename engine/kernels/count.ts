/** Counts rows by their values. A `CountedRows` says which rows are counted. The counts are added to those in `counts`. */
import { openScratch, scratchBytes, type Scratch, type TypedArray } from '../core/scratch.js';
import { kernelsOver } from './kernels.js';

/** Four tables with a 32-bit count for each 8-bit code. */
const tablesBytes = 4 * 256 * 4;

/** The rows of [from, to) whose bit is set in `bits`. */
export interface CountedRows {
  readonly bits: Uint8Array;
  readonly from: number;
  readonly to: number;
}

/**
 * Counts rows by the range that contains their integer. Range i has the integers from `starts[i]` up to the next start; the last range has
 * no end. There must be at least one start, the starts must ascend, and no counted row may have an integer below the first.
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

/** Counts rows by their codes. Each code is an index in `counts`, which has at most 256 elements for 8-bit codes. */
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

/** Counts rows by range, see `countRanges`, and by code. The count of a pair is at index `range * codesOfRange + code`. */
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

/** Scratch bytes for the rows and their values. */
function sizeOf({ bits, from, to }: CountedRows, values: TypedArray): number {
  return scratchBytes(values, to - (from & ~63)) + scratchBytes(bits, bits.length);
}

/**
 * Places the values of the rows [from, to), together with those before them in the same 64-bit word of the bitmap. Returns the address that
 * row 0 would have.
 */
function placeRows(scratch: Scratch, values: TypedArray, from: number, to: number): number {
  const first = from & ~63;
  return scratch.place(values, first, to) - first * values.BYTES_PER_ELEMENT;
}

/** Like `placeRows`, for the bitmap. */
function placeBits(scratch: Scratch, { bits, from, to }: CountedRows): number {
  const first = (from >> 6) << 3;
  return scratch.place(bits, first, Math.min(bits.length, (to + 7) >> 3)) - first;
}
