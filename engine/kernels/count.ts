/** Counts rows by their values. A `CountedRows` says which rows are counted. The counts are added to those in `counts`. */
import type { TypedArray } from '../core/scratch.js';
import { onArrays } from './kernels.js';

/** The rows of [from, to) whose bit is set in `bits`. */
export interface CountedRows {
  readonly bits: Uint8Array;
  readonly from: number;
  readonly to: number;
}

/** The same rows without those before the first word of 64 rows, which then need not be copied. */
export function fromFirstWord({ bits, from, to }: CountedRows): CountedRows {
  const first = from & ~63;
  return { bits: bits.subarray(first >> 3, (to + 7) >> 3), from: from - first, to: to - first };
}

/** The values of the rows in `fromFirstWord`, up to the end of the last word. */
export function valuesFromWord<Values extends TypedArray>(values: Values, { from, to }: CountedRows): Values {
  return values.subarray(from & ~63, (to + 63) & ~63) as Values;
}

/** Four tables with a 32-bit count for each 8-bit code. */
const tables = new Uint32Array(4 * 256);

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
  if (rows.from >= rows.to) return;
  const { bits, from, to } = fromFirstWord(rows);
  const read = [valuesFromWord(values, rows), bits, starts];
  onArrays(read, [counts], [], (kernels, [valuesAt, bitsAt, startsAt, countsAt]) =>
    kernels.countRanges(valuesAt!, bitsAt!, from, to, startsAt!, starts.length, countsAt!),
  );
}

/** Counts rows by their codes. Each code is an index in `counts`, which has at most 256 elements for 8-bit codes. */
export function countCodes(codes: Uint8Array | Uint16Array, rows: CountedRows, counts: Uint32Array): void {
  if (rows.from >= rows.to) return;
  const { bits, from, to } = fromFirstWord(rows);
  const read = [valuesFromWord(codes, rows), bits, tables];
  onArrays(read, [counts], [], (kernels, [codesAt, bitsAt, tablesAt, countsAt]) => {
    if (codes.BYTES_PER_ELEMENT === 2) kernels.countCodes16(codesAt!, bitsAt!, from, to, countsAt!);
    else kernels.countCodes8(codesAt!, bitsAt!, from, to, counts.length, tablesAt!, countsAt!);
  });
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
  if (rows.from >= rows.to) return;
  const { bits, from, to } = fromFirstWord(rows);
  const read = [valuesFromWord(values, rows), valuesFromWord(codes, rows), bits, starts, tables];
  const { length } = starts;
  const width = codes.BYTES_PER_ELEMENT;
  onArrays(read, [counts], [], (kernels, [valuesAt, codesAt, bitsAt, startsAt, tablesAt, countsAt]) =>
    kernels.countPairs(
      valuesAt!,
      codesAt!,
      width,
      bitsAt!,
      from,
      to,
      startsAt!,
      length,
      codesOfRange,
      tablesAt!,
      countsAt!,
    ),
  );
}
