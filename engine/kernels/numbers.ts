/**
 * Sums, bounds and magnitudes of groups of rows. A `CountedRows` says which rows take part. `groups` has the group of each row; null where
 * all rows are in group 0.
 */
import { openScratch, scratchBytes, type Scratch } from '../core/scratch.js';
import { kernelsOver, type Kernels } from './kernels.js';
import type { CountedRows } from './count.js';

/** Doubles of the numbers of a group: the count, the low and the high part of the sum, the minimum and the maximum. */
export const wordsPerSum = 5;

/**
 * Magnitudes in a doubling. The magnitude of a positive number is its power of two and the next six bits; that of a negative number is the
 * negative of its opposite's, and that of 0 is 0. Magnitudes are in the order of the numbers, those of subnormal numbers included.
 */
export const magnitudesPerOctave = 64;
/** Octaves of subnormal numbers, which are below those of the smallest normal exponent. */
export const subnormalOctaves = 54;

/**
 * The number that stands for all positive numbers of a magnitude: it differs from each by at most 1/129. A magnitude has the numbers from `low`
 * to the next one's, whose quotient is known (DDSketch with linearly interpolated magnitudes, https://arxiv.org/abs/1908.10693).
 */
export function middleOf(magnitude: number): number {
  const isNormal = magnitude >= (subnormalOctaves + 1) * magnitudesPerOctave;
  const bits = isNormal ? magnitude - subnormalOctaves * magnitudesPerOctave : magnitude;
  // The upper half of a double has 20 bits of its fraction, of which a magnitude has six.
  const [low] = new Float64Array(Uint32Array.of(0, bits << 14).buffer);
  const part = magnitude % magnitudesPerOctave;
  const middle = low! * (1 + 1 / (2 * (magnitudesPerOctave + part) + 1));
  return isNormal ? middle : middle / 2 ** subnormalOctaves;
}

/** Room for the groups of rows up to `rows`, which kernels fill a word of 64 rows at a time. */
export function groupsLength(rows: number): number {
  return (rows + 63) & ~63;
}

/** Writes the group of each row to `groups`: its range, as in `countRanges`, times `codesOfRange`. */
export function groupRanges(
  values: BigInt64Array,
  { bits, from, to }: CountedRows,
  starts: BigInt64Array,
  codesOfRange: number,
  groups: Uint32Array,
): void {
  const scratch = openScratch(
    scratchBytes(values, values.length) +
      scratchBytes(bits, bits.length) +
      scratchBytes(starts, starts.length) +
      scratchBytes(groups, groups.length),
  );
  const valuesAt = scratch.place(values, 0, values.length);
  const bitsAt = scratch.place(bits, 0, bits.length);
  const startsAt = scratch.place(starts, 0, starts.length);
  const groupsAt = scratch.place(groups, 0, groups.length);
  kernelsOver(scratch).groupRanges(
    valuesAt,
    bitsAt,
    from,
    to,
    startsAt,
    starts.length,
    codesOfRange,
    groupsAt,
  );
  scratch.copyOut(groupsAt, groups, 0, groups.length);
}

/** Adds to the group of each row its code. */
export function addCodes(
  codes: Uint8Array | Uint16Array,
  { from, to }: CountedRows,
  groups: Uint32Array,
): void {
  const scratch = openScratch(scratchBytes(codes, codes.length) + scratchBytes(groups, groups.length));
  const codesAt = scratch.place(codes, 0, codes.length);
  const groupsAt = scratch.place(groups, 0, groups.length);
  kernelsOver(scratch).addCodes(codesAt, codes.BYTES_PER_ELEMENT, from, to, groupsAt);
  scratch.copyOut(groupsAt, groups, 0, groups.length);
}

/** The numbers of groups: `wordsPerSum` doubles for each group of `summed`. */
export interface Sums {
  readonly summed: Uint32Array;
  readonly sums: Float64Array;
}

/**
 * The numbers of those of `count` groups that have rows. The sum is `high * 2^32 + low`; the bounds of integers are 64-bit integers.
 */
export function sumsOf(
  values: BigInt64Array | Float64Array,
  rows: CountedRows,
  groups: Uint32Array | null,
  count: number,
): Sums {
  const sumsBytes = count * wordsPerSum * 8;
  const scratch = openScratch(sizeOf(values, rows, groups) + sumsBytes + count * 4);
  const sumsAt = scratch.reserve(sumsBytes);
  const summedAt = scratch.reserve(count * 4);
  const [valuesAt, groupsAt, bitsAt] = placeRows(scratch, values, rows, groups);
  const kernels = kernelsOver(scratch);
  const { from, to } = rows;
  const found =
    values instanceof BigInt64Array
      ? kernels.addIntegers(valuesAt, groupsAt, bitsAt, from, to, sumsAt, count, summedAt)
      : kernels.addFloats(valuesAt, groupsAt, bitsAt, from, to, sumsAt, count, summedAt);
  const summed = new Uint32Array(found);
  const sums = new Float64Array(found * wordsPerSum);
  scratch.copyOut(summedAt, summed, 0, found);
  scratch.copyOut(sumsAt, sums, 0, sums.length);
  return { summed, sums };
}

/** Different pairs of 32-bit numbers, one after another, and how many rows have each. */
export interface CountedPairs {
  readonly pairs: Int32Array;
  readonly counts: Uint32Array;
}

/** The pairs (magnitude, group) of the rows, of which there are `count`. Where few are equal, each row may have its own. */
export function countMagnitudes(
  values: BigInt64Array | Float64Array,
  rows: CountedRows,
  groups: Uint32Array | null,
  count: number,
): CountedPairs {
  const areFloats = values instanceof Float64Array ? 1 : 0;
  return countedPairs(values, rows, groups, count, (kernels, valuesAt, groupsAt, bitsAt, pairsAt) =>
    kernels.listMagnitudes(valuesAt, areFloats, groupsAt, bitsAt, rows.from, rows.to, pairsAt),
  );
}

/** The pairs (code, group) of the rows, see `countMagnitudes`. */
export function countCodesOfGroups(
  codes: Uint8Array | Uint16Array,
  rows: CountedRows,
  groups: Uint32Array | null,
  count: number,
): CountedPairs {
  const codeBytes = codes.BYTES_PER_ELEMENT;
  return countedPairs(codes, rows, groups, count, (kernels, codesAt, groupsAt, bitsAt, pairsAt) =>
    kernels.listPairs(codesAt, codeBytes, groupsAt, bitsAt, rows.from, rows.to, pairsAt),
  );
}

/** @param list a kernel that lists the pairs of the rows */
function countedPairs(
  values: Values,
  rows: CountedRows,
  groups: Uint32Array | null,
  count: number,
  list: (kernels: Kernels, valuesAt: number, groupsAt: number, bitsAt: number, pairsAt: number) => number,
): CountedPairs {
  const bits = 33 - Math.clz32(count);
  // The pairs, their codes, the first with each code, and the hash table of `numberWords`, which then has the counts.
  const scratch = openScratch(sizeOf(values, rows, groups) + count * (8 + 2 + 4) + 2 ** bits * 4);
  const pairsAt = scratch.reserve(count * 8);
  const codesAt = scratch.reserve(count * 2);
  const firstsAt = scratch.reserve(count * 4);
  const tableAt = scratch.reserve(2 ** bits * 4);
  const kernels = kernelsOver(scratch);
  const listed = list(kernels, ...placeRows(scratch, values, rows, groups), pairsAt);
  const found = kernels.numberWords(pairsAt, listed, listed, codesAt, firstsAt, tableAt, bits);
  if (found >= 0) kernels.countDifferent(pairsAt, listed, codesAt, firstsAt, found, tableAt);
  const different = found < 0 ? listed : found;
  const pairs = new Int32Array(2 * different);
  const counts = new Uint32Array(different).fill(1);
  scratch.copyOut(pairsAt, pairs, 0, pairs.length);
  if (found >= 0) scratch.copyOut(tableAt, counts, 0, found);
  return { pairs, counts };
}

/** Writes the value of each row, whose code is given. */
export function gatherWords(
  values: BigInt64Array | Float64Array,
  codes: Uint8Array | Uint16Array,
  { from, to }: CountedRows,
  target: BigInt64Array | Float64Array,
): void {
  const scratch = openScratch(
    scratchBytes(values, values.length) +
      scratchBytes(codes, codes.length) +
      scratchBytes(target, target.length),
  );
  const valuesAt = scratch.place(values, 0, values.length);
  const codesAt = scratch.place(codes, 0, codes.length);
  const targetAt = scratch.target(target, 0, target.length);
  kernelsOver(scratch).gatherWords(valuesAt, codesAt, codes.BYTES_PER_ELEMENT, from, to, targetAt);
  scratch.copyOut(targetAt, target, 0, target.length);
}

type Values = BigInt64Array | Float64Array | Uint8Array | Uint16Array;

function sizeOf(values: Values, { bits }: CountedRows, groups: Uint32Array | null): number {
  const ofGroups = groups === null ? 0 : scratchBytes(groups, groups.length);
  return scratchBytes(values, values.length) + scratchBytes(bits, bits.length) + ofGroups;
}

function placeRows(
  scratch: Scratch,
  values: Values,
  { bits }: CountedRows,
  groups: Uint32Array | null,
): [valuesAt: number, groupsAt: number, bitsAt: number] {
  return [
    scratch.place(values, 0, values.length),
    groups === null ? 0 : scratch.place(groups, 0, groups.length),
    scratch.place(bits, 0, bits.length),
  ];
}
