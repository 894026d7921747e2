// Sums, bounds and magnitudes of groups of rows: see ../numbers.ts. Up to eight bytes after a bitmap are read.
import { wordOf } from './bitmap';
import { areWithin, endOf, rangeOf, startOf } from './count';

/** Writes the group (u32) of each set row of [from, to): the number of its range, see `countRanges`, times `codesOfRange`. */
export function groupRanges(
  values: usize,
  bits: usize,
  from: u32,
  to: u32,
  starts: usize,
  ranges: u32,
  codesOfRange: u32,
  groups: usize,
): void {
  let range: u32 = 0;
  let low = startOf(starts, 0);
  let high = endOf(starts, ranges, 0);
  for (let row = from & ~63; row < to; row += 64) {
    let word = wordOf(bits, row, from, to);
    if (word == 0) continue;
    const at = values + ((<usize>row) << 3);
    let target = groups + ((<usize>row) << 2);
    if (row >= from && row + 64 <= to && areWithin(at, low, high)) {
      const group = i32x4.splat(range * codesOfRange);
      for (const end = target + 256; target < end; target += 16) v128.store(target, group);
      continue;
    }
    for (; word != 0; word &= word - 1) {
      const next = <usize>ctz(word);
      const value = load<i64>(at + (next << 3));
      if (value < low || value > high) {
        range = rangeOf(starts, ranges, value);
        low = startOf(starts, range);
        high = endOf(starts, ranges, range);
      }
      store<u32>(target + (next << 2), range * codesOfRange);
    }
  }
}

/** The code of a row. */
function codeOf(codes: usize, codeBytes: u32, row: usize): u32 {
  return codeBytes == 1 ? <u32>load<u8>(codes + row) : <u32>load<u16>(codes + (row << 1));
}

/** Writes the value (u64) of the code of each row of [from, to). */
export function gatherWords(
  values: usize,
  codes: usize,
  codeBytes: u32,
  from: u32,
  to: u32,
  target: usize,
): void {
  for (let row: usize = from; row < to; row++)
    store<u64>(target + (row << 3), load<u64>(values + ((<usize>codeOf(codes, codeBytes, row)) << 3)));
}

/** Adds its code to the group (u32) of each row of [from, to). */
export function addCodes(codes: usize, codeBytes: u32, from: u32, to: u32, groups: usize): void {
  for (let row: usize = from; row < to; row++) {
    const at = groups + (row << 2);
    store<u32>(at, load<u32>(at) + codeOf(codes, codeBytes, row));
  }
}

/** Whether the 64 groups at `at` are the same. */
function areAlike(at: usize): bool {
  const first = v128.load32_splat(at);
  let alike = i32x4.splat(-1);
  for (const end = at + 256; at < end; at += 16) alike = v128.and(alike, i32x4.eq(v128.load(at), first));
  return i32x4.all_true(alike);
}

/** The group of a row. Without groups all rows are in group 0. */
function groupOf(groups: usize, row: u32): usize {
  return groups == 0 ? 0 : <usize>load<u32>(groups + ((<usize>row) << 2));
}

/** Bytes of the numbers of a group: the count, the low and the high part of the sum, the minimum and the maximum. */
const sumBytes: usize = 40;

/**
 * Adds the numbers of the set rows of [from, to), 64-bit integers or doubles, to those of their groups at `sums`, `count` of them, which are set
 * to those of no rows first. The groups (u32) are at `groups`, or are those of the ranges of `times`, see `groupRanges`; where both addresses
 * are 0, there is one group. The low part of a sum of integers is that of their lower 32 bits; the sum of doubles is the low part. Then moves
 * the numbers of the groups that have rows to the front, writes these groups to `summed` (u32), and returns how many there are. Their counts
 * and parts are doubles.
 */
export function sumRows(
  values: usize,
  areFloats: bool,
  bits: usize,
  from: u32,
  to: u32,
  groups: usize,
  times: usize,
  starts: usize,
  ranges: u32,
  codesOfRange: u32,
  sums: usize,
  count: u32,
  summed: usize,
): u32 {
  if (areFloats)
    addRows<f64>(values, bits, from, to, groups, times, starts, ranges, codesOfRange, sums, count);
  else addRows<i64>(values, bits, from, to, groups, times, starts, ranges, codesOfRange, sums, count);
  return moveSums(sums, count, !areFloats, summed);
}

function addRows<T>(
  values: usize,
  bits: usize,
  from: u32,
  to: u32,
  groups: usize,
  times: usize,
  starts: usize,
  ranges: u32,
  codesOfRange: u32,
  sums: usize,
  count: u32,
): void {
  const end = sums + <usize>count * sumBytes;
  memory.fill(sums, 0, end - sums);
  for (let at = sums; at < end; at += sumBytes) {
    if (isFloat<T>()) {
      store<f64>(at, Infinity, 24);
      store<f64>(at, -Infinity, 32);
    } else {
      store<i64>(at, i64.MAX_VALUE, 24);
      store<i64>(at, i64.MIN_VALUE, 32);
    }
  }
  let own = sums;
  let low: i64 = 0;
  let high: i64 = -1;
  for (let row = from & ~63; row < to; row += 64) {
    let word = wordOf(bits, row, from, to);
    if (word == 0) continue;
    const first = values + ((<usize>row) << 3);
    const firstTime = times + ((<usize>row) << 3);
    if (word == <u64>-1) {
      let alike = groups == 0 || areAlike(groups + ((<usize>row) << 2));
      if (times != 0 && !areWithin(firstTime, low, high)) {
        const range = rangeOf(starts, ranges, load<i64>(firstTime));
        low = startOf(starts, range);
        high = endOf(starts, ranges, range);
        own = sums + <usize>(range * codesOfRange) * sumBytes;
        alike = areWithin(firstTime, low, high);
      }
      if (alike) {
        addWhole<T>(first, groups == 0 ? own : sums + groupOf(groups, row) * sumBytes);
        continue;
      }
    }
    if (groups != 0) {
      const firstGroup = groups + ((<usize>row) << 2);
      for (; word != 0; word &= word - 1) {
        const next = <usize>ctz(word);
        addOne<T>(first + (next << 3), sums + <usize>load<u32>(firstGroup + (next << 2)) * sumBytes);
      }
    }
    for (; word != 0; word &= word - 1) {
      const next = (<usize>ctz(word)) << 3;
      if (times != 0) {
        const time = load<i64>(firstTime + next);
        if (time < low || time > high) {
          const range = rangeOf(starts, ranges, time);
          low = startOf(starts, range);
          high = endOf(starts, ranges, range);
          own = sums + <usize>(range * codesOfRange) * sumBytes;
        }
      }
      addOne<T>(first + next, own);
    }
  }
}

/** Adds a number to those of its group. */
function addOne<T>(place: usize, at: usize): void {
  const value = load<T>(place);
  store<u64>(at, load<u64>(at) + 1);
  if (isFloat<T>()) {
    store<T>(at, <T>(load<T>(at, 8) + value), 8);
  } else {
    store<u64>(at, load<u64>(at, 8) + ((<u64>value) & 0xffffffff), 8);
    store<i64>(at, load<i64>(at, 16) + ((<i64>value) >> 32), 16);
  }
  if (value < load<T>(at, 24)) store<T>(at, value, 24);
  if (value > load<T>(at, 32)) store<T>(at, value, 32);
}

/** Sums of 64 integers up to here fit 64 bits. */
const smallMax: i64 = 1 << 56;

/** Adds 64 integers of one group if the sum fits 64 bits and they are within the bounds of the group so far, as most are. */
function addWithin(first: usize, at: usize): bool {
  const low = load<i64>(at, 24);
  const high = load<i64>(at, 32);
  if (low < -smallMax || high > smallMax) return false;
  const least = i64x2.splat(low);
  const greatest = i64x2.splat(high);
  let sum = i64x2.splat(0);
  let outside = i64x2.splat(0);
  for (const end = first + 512; first < end; first += 32) {
    const two = v128.load(first);
    const more = v128.load(first, 16);
    sum = i64x2.add(sum, i64x2.add(two, more));
    outside = v128.or(outside, v128.or(i64x2.lt_s(two, least), i64x2.gt_s(two, greatest)));
    outside = v128.or(outside, v128.or(i64x2.lt_s(more, least), i64x2.gt_s(more, greatest)));
  }
  if (v128.any_true(outside)) return false;
  const total = i64x2.extract_lane(sum, 0) + i64x2.extract_lane(sum, 1);
  store<u64>(at, load<u64>(at) + 64);
  store<u64>(at, load<u64>(at, 8) + ((<u64>total) & 0xffffffff), 8);
  store<i64>(at, load<i64>(at, 16) + (total >> 32), 16);
  return true;
}

/** Adds the numbers of 64 rows of one group. */
function addWhole<T>(first: usize, at: usize): void {
  if (isInteger<T>() && addWithin(first, at)) return;
  let sum = i64x2.splat(0);
  let other = i64x2.splat(0);
  let least = v128.load64_splat(at, 24);
  let greatest = v128.load64_splat(at, 32);
  const lower = i64x2.splat(0xffffffff);
  for (const end = first + 512; first < end; first += 32) {
    const two = v128.load(first);
    const more = v128.load(first, 16);
    if (isFloat<T>()) {
      sum = f64x2.add(sum, two);
      other = f64x2.add(other, more);
      least = f64x2.pmin(least, f64x2.pmin(two, more));
      greatest = f64x2.pmax(greatest, f64x2.pmax(two, more));
    } else {
      sum = i64x2.add(sum, i64x2.add(v128.and(two, lower), v128.and(more, lower)));
      other = i64x2.add(other, i64x2.add(i64x2.shr_s(two, 32), i64x2.shr_s(more, 32)));
      least = lesser(least, lesser(two, more));
      greatest = greater(greatest, greater(two, more));
    }
  }
  store<u64>(at, load<u64>(at) + 64);
  if (isFloat<T>()) {
    sum = f64x2.add(sum, other);
    store<f64>(at, load<f64>(at, 8) + (f64x2.extract_lane(sum, 0) + f64x2.extract_lane(sum, 1)), 8);
  } else {
    store<u64>(at, load<u64>(at, 8) + i64x2.extract_lane(sum, 0) + i64x2.extract_lane(sum, 1), 8);
    store<i64>(at, load<i64>(at, 16) + i64x2.extract_lane(other, 0) + i64x2.extract_lane(other, 1), 16);
  }
  store<T>(at, min<T>(v128.extract_lane<T>(least, 0), v128.extract_lane<T>(least, 1)), 24);
  store<T>(at, max<T>(v128.extract_lane<T>(greatest, 0), v128.extract_lane<T>(greatest, 1)), 32);
}

function lesser(a: v128, b: v128): v128 {
  return v128.bitselect(a, b, i64x2.lt_s(a, b));
}

function greater(a: v128, b: v128): v128 {
  return v128.bitselect(a, b, i64x2.gt_s(a, b));
}

/** Moves the numbers of groups with rows to the front, with doubles in place of integers save in the bounds, and writes these groups. */
function moveSums(sums: usize, count: u32, areIntegers: bool, summed: usize): u32 {
  let found: u32 = 0;
  for (let group: u32 = 0; group < count; group++) {
    const from = sums + <usize>group * sumBytes;
    const rows = load<u64>(from);
    if (rows == 0) continue;
    const to = sums + <usize>found * sumBytes;
    memory.copy(to, from, sumBytes);
    store<f64>(to, <f64>rows);
    if (areIntegers) {
      store<f64>(to, <f64>load<u64>(to, 8), 8);
      store<f64>(to, <f64>load<i64>(to, 16), 16);
    }
    store<u32>(summed + ((<usize>found) << 2), group);
    found++;
  }
  return found;
}

/** The smallest normal double. Smaller ones are multiplied by 2^54, which makes them normal, before their magnitude is taken. */
const normalMin: f64 = 2.2250738585072014e-308;
const scale: f64 = 18014398509481984;

/** The magnitude of a number, see `magnitudesPerOctave`. */
function magnitudeOf(value: f64): i32 {
  const size = abs(value);
  const magnitude =
    size < normalMin
      ? <i32>(reinterpret<u64>(size * scale) >>> 46)
      : <i32>(reinterpret<u64>(size) >>> 46) + 54 * 64;
  return value < 0 ? -magnitude : magnitude;
}

/**
 * Writes a pair (i32, u32 group) for each set row of [from, to): the magnitude of its number, a double or a 64-bit integer, or its code of one
 * or two bytes. Returns their number.
 */
export function listPairs(
  values: usize,
  valueBytes: u32,
  areFloats: bool,
  groups: usize,
  bits: usize,
  from: u32,
  to: u32,
  pairs: usize,
): u32 {
  let at = pairs;
  for (let row = from & ~63; row < to; row += 64) {
    for (let word = wordOf(bits, row, from, to); word != 0; word &= word - 1, at += 8) {
      const next = row + <u32>ctz(word);
      if (valueBytes < 8) store<u32>(at, codeOf(values, valueBytes, next));
      else {
        const place = values + ((<usize>next) << 3);
        store<i32>(at, magnitudeOf(areFloats ? load<f64>(place) : <f64>load<i64>(place)));
      }
      store<u32>(at, <u32>groupOf(groups, next), 4);
    }
  }
  return <u32>((at - pairs) >>> 3);
}

/**
 * Replaces pairs, which are numbered by `codes` (u16), by the `different` ones, of which `firsts` (u32) has the first of each. Writes how many
 * have each number to `counts` (u32).
 */
export function countDifferent(
  pairs: usize,
  count: u32,
  codes: usize,
  firsts: usize,
  different: u32,
  counts: usize,
): void {
  memory.fill(counts, 0, (<usize>different) << 2);
  for (let i: usize = 0; i < count; i++) {
    const at = counts + ((<usize>load<u16>(codes + (i << 1))) << 2);
    store<u32>(at, load<u32>(at) + 1);
  }
  for (let i: usize = 0; i < different; i++)
    store<u64>(pairs + (i << 3), load<u64>(pairs + ((<usize>load<u32>(firsts + (i << 2))) << 3)));
}
