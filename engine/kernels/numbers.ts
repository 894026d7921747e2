/**
 * Sums, bounds and magnitudes of groups of rows. A `CountedRows` says which rows take part. `groups` has the group of each row; null where
 * all rows are in group 0.
 */
import { fromFirstWord, valuesFromWord, type CountedRows } from './count.js';
import { onArrays } from './kernels.js';

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

/** Ranges of integers, as in `countRanges`. The group of a row is the number of its range times `codesOfRange`. */
export interface RangesOfRows {
  readonly values: BigInt64Array;
  readonly starts: BigInt64Array;
  readonly codesOfRange: number;
}

type Codes = Uint8Array | Uint16Array;
type Words = BigInt64Array | Float64Array;

/** Writes the group of each row to `groups`. */
export function groupRanges(
  { values, starts, codesOfRange }: RangesOfRows,
  { bits, from, to }: CountedRows,
  groups: Uint32Array,
): void {
  onArrays([values, bits, starts], [groups], [], (kernels, [valuesAt, bitsAt, startsAt, groupsAt]) =>
    kernels.groupRanges(valuesAt!, bitsAt!, from, to, startsAt!, starts.length, codesOfRange, groupsAt!),
  );
}

/** Adds to the group of each row its code. */
export function addCodes(codes: Codes, { from, to }: CountedRows, groups: Uint32Array): void {
  onArrays([codes], [groups], [], (kernels, [codesAt, groupsAt]) =>
    kernels.addCodes(codesAt!, codes.BYTES_PER_ELEMENT, from, to, groupsAt!),
  );
}

/** Writes the value of each row, whose code is given. */
export function gatherWords(values: Words, codes: Codes, { from, to }: CountedRows, target: Words): void {
  onArrays([values, codes], [target], [], (kernels, [valuesAt, codesAt, targetAt]) =>
    kernels.gatherWords(valuesAt!, codesAt!, codes.BYTES_PER_ELEMENT, from, to, targetAt!),
  );
}

/** The numbers of groups: `wordsPerSum` doubles for each group of `summed`. */
export interface Sums {
  readonly summed: Uint32Array;
  readonly sums: Float64Array;
}

/**
 * The numbers of those of `count` groups that have rows. The sum is `high * 2^32 + low`; the bounds of integers are 64-bit integers. With
 * ranges, groups need not be written first.
 */
export function sumsOf(
  values: Words,
  rows: CountedRows,
  groups: Uint32Array | RangesOfRows | null,
  count: number,
): Sums {
  const { bits, from, to } = fromFirstWord(rows);
  const ranges = groups instanceof Uint32Array ? null : groups;
  const placed = groups instanceof Uint32Array ? valuesFromWord(groups, rows) : null;
  const times = ranges && valuesFromWord(ranges.values, rows);
  const read = [valuesFromWord(values, rows), bits, placed, times, ranges && ranges.starts];
  const buffers = [count * wordsPerSum * 8, count * 4];
  const areFloats = Number(values instanceof Float64Array);
  return onArrays(read, [], buffers, (kernels, addresses, scratch) => {
    const [valuesAt, bitsAt, groupsAt, timesAt, startsAt, sumsAt, summedAt] = addresses;
    const found = kernels.sumRows(
      valuesAt!,
      areFloats,
      bitsAt!,
      from,
      to,
      groupsAt!,
      timesAt!,
      startsAt!,
      ranges?.starts.length ?? 0,
      ranges?.codesOfRange ?? 0,
      sumsAt!,
      count,
      summedAt!,
    );
    const summed = new Uint32Array(found);
    const sums = new Float64Array(found * wordsPerSum);
    scratch.copyOut(summedAt!, summed, 0, found);
    scratch.copyOut(sumsAt!, sums, 0, sums.length);
    return { summed, sums };
  });
}

/** Different pairs of 32-bit numbers, one after another, and how many rows have each. */
export interface CountedPairs {
  readonly pairs: Int32Array;
  readonly counts: Uint32Array;
}

/**
 * The pairs (magnitude, group) or, of codes, (code, group) of the rows, of which there are `count`. Where few are equal, each row may have its
 * own.
 */
export function countPairsOfGroups(
  values: Words | Codes,
  rows: CountedRows,
  groups: Uint32Array | null,
  count: number,
): CountedPairs {
  const { bits, from, to } = fromFirstWord(rows);
  const read = [valuesFromWord(values, rows), bits, groups && valuesFromWord(groups, rows)];
  const tableBits = 33 - Math.clz32(count);
  const areFloats = Number(values instanceof Float64Array);
  // The pairs, their codes, the first with each code, and the hash table of `numberWords`, which then has the counts.
  const buffers = [count * 8, count * 2, count * 4, 2 ** tableBits * 4];
  return onArrays(read, [], buffers, (kernels, addresses, scratch) => {
    const [valuesAt, bitsAt, groupsAt, pairsAt, codesAt, firstsAt, tableAt] = addresses;
    const width = values.BYTES_PER_ELEMENT;
    const listed = kernels.listPairs(valuesAt!, width, areFloats, groupsAt!, bitsAt!, from, to, pairsAt!);
    const found = kernels.numberWords(pairsAt!, listed, listed, codesAt!, firstsAt!, tableAt!, tableBits);
    if (found >= 0) kernels.countDifferent(pairsAt!, listed, codesAt!, firstsAt!, found, tableAt!);
    const different = found < 0 ? listed : found;
    const pairs = new Int32Array(2 * different);
    const counts = new Uint32Array(different).fill(1);
    scratch.copyOut(pairsAt!, pairs, 0, pairs.length);
    if (found >= 0) scratch.copyOut(tableAt!, counts, 0, found);
    return { pairs, counts };
  });
}
