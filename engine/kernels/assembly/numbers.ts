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

/** Writes the value (u64) of the code of each row of [from, to). */
export function gatherWords(
  values: usize,
  codes: usize,
  codeBytes: u32,
  from: u32,
  to: u32,
  target: usize,
): void {
  for (let row: usize = from; row < to; row++) {
    const code = codeBytes == 1 ? <usize>load<u8>(codes + row) : <usize>load<u16>(codes + (row << 1));
    store<u64>(target + (row << 3), load<u64>(values + (code << 3)));
  }
}

/** Adds its code to the group (u32) of each row of [from, to). */
export function addCodes(codes: usize, codeBytes: u32, from: u32, to: u32, groups: usize): void {
  for (let row: usize = from; row < to; row++) {
    const at = groups + (row << 2);
    const code = codeBytes == 1 ? <u32>load<u8>(codes + row) : <u32>load<u16>(codes + (row << 1));
    store<u32>(at, load<u32>(at) + code);
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
 * Adds the integers of the set rows of [from, to) to the numbers of their groups at `sums`, `count` of them, which are set to those of no
 * rows first. The low part of a sum is that of the lower 32 bits of the integers. Then moves the numbers of the groups that have rows to the
 * front, writes these groups to `summed` (u32), and returns how many there are. Their counts and parts are doubles.
 */
export function addIntegers(
  values: usize,
  groups: usize,
  bits: usize,
  from: u32,
  to: u32,
  sums: usize,
  count: u32,
  summed: usize,
): u32 {
  const end = sums + <usize>count * sumBytes;
  memory.fill(sums, 0, end - sums);
  for (let at = sums; at < end; at += sumBytes) {
    store<i64>(at, i64.MAX_VALUE, 24);
    store<i64>(at, i64.MIN_VALUE, 32);
  }
  for (let row = from & ~63; row < to; row += 64) {
    let word = wordOf(bits, row, from, to);
    if (word == 0) continue;
    const first = values + ((<usize>row) << 3);
    if (word == <u64>-1 && (groups == 0 || areAlike(groups + ((<usize>row) << 2)))) {
      addWholeIntegers(first, sums + groupOf(groups, row) * sumBytes);
      continue;
    }
    for (; word != 0; word &= word - 1) {
      const next = <u32>ctz(word);
      const value = load<i64>(first + ((<usize>next) << 3));
      const at = sums + groupOf(groups, row + next) * sumBytes;
      store<u64>(at, load<u64>(at) + 1);
      store<u64>(at, load<u64>(at, 8) + ((<u64>value) & 0xffffffff), 8);
      store<i64>(at, load<i64>(at, 16) + (value >> 32), 16);
      if (value < load<i64>(at, 24)) store<i64>(at, value, 24);
      if (value > load<i64>(at, 32)) store<i64>(at, value, 32);
    }
  }
  const found = moveSums(sums, count, summed);
  for (let at = sums; at < sums + <usize>found * sumBytes; at += sumBytes) {
    store<f64>(at, <f64>load<u64>(at));
    store<f64>(at, <f64>load<u64>(at, 8), 8);
    store<f64>(at, <f64>load<i64>(at, 16), 16);
  }
  return found;
}

/** Moves the numbers of groups with rows to the front, and writes these groups. A count of no rows has no bits, integer or double. */
function moveSums(sums: usize, count: u32, summed: usize): u32 {
  let found: u32 = 0;
  for (let group: u32 = 0; group < count; group++) {
    const from = sums + <usize>group * sumBytes;
    if (load<u64>(from) == 0) continue;
    memory.copy(sums + <usize>found * sumBytes, from, sumBytes);
    store<u32>(summed + ((<usize>found) << 2), group);
    found++;
  }
  return found;
}

function addWholeIntegers(first: usize, at: usize): void {
  let low = i64x2.splat(0);
  let high = i64x2.splat(0);
  let least = v128.load64_splat(at, 24);
  let greatest = v128.load64_splat(at, 32);
  const lower = i64x2.splat(0xffffffff);
  for (const end = first + 512; first < end; first += 16) {
    const two = v128.load(first);
    low = i64x2.add(low, v128.and(two, lower));
    high = i64x2.add(high, i64x2.shr_s(two, 32));
    least = v128.bitselect(two, least, i64x2.lt_s(two, least));
    greatest = v128.bitselect(two, greatest, i64x2.gt_s(two, greatest));
  }
  store<u64>(at, load<u64>(at) + 64);
  store<u64>(at, load<u64>(at, 8) + i64x2.extract_lane(low, 0) + i64x2.extract_lane(low, 1), 8);
  store<i64>(at, load<i64>(at, 16) + i64x2.extract_lane(high, 0) + i64x2.extract_lane(high, 1), 16);
  store<i64>(at, min(i64x2.extract_lane(least, 0), i64x2.extract_lane(least, 1)), 24);
  store<i64>(at, max(i64x2.extract_lane(greatest, 0), i64x2.extract_lane(greatest, 1)), 32);
}

/** Like `addIntegers`, for doubles. The sum is the low part, and the high part is 0. */
export function addFloats(
  values: usize,
  groups: usize,
  bits: usize,
  from: u32,
  to: u32,
  sums: usize,
  count: u32,
  summed: usize,
): u32 {
  const end = sums + <usize>count * sumBytes;
  memory.fill(sums, 0, end - sums);
  for (let at = sums; at < end; at += sumBytes) {
    store<f64>(at, Infinity, 24);
    store<f64>(at, -Infinity, 32);
  }
  for (let row = from & ~63; row < to; row += 64) {
    let word = wordOf(bits, row, from, to);
    if (word == 0) continue;
    const first = values + ((<usize>row) << 3);
    if (word == <u64>-1 && (groups == 0 || areAlike(groups + ((<usize>row) << 2)))) {
      addWholeFloats(first, sums + groupOf(groups, row) * sumBytes);
      continue;
    }
    for (; word != 0; word &= word - 1) {
      const next = <u32>ctz(word);
      const value = load<f64>(first + ((<usize>next) << 3));
      const at = sums + groupOf(groups, row + next) * sumBytes;
      store<f64>(at, load<f64>(at) + 1);
      store<f64>(at, load<f64>(at, 8) + value, 8);
      if (value < load<f64>(at, 24)) store<f64>(at, value, 24);
      if (value > load<f64>(at, 32)) store<f64>(at, value, 32);
    }
  }
  return moveSums(sums, count, summed);
}

function addWholeFloats(first: usize, at: usize): void {
  let sum = f64x2.splat(0);
  let other = f64x2.splat(0);
  let least = v128.load64_splat(at, 24);
  let greatest = v128.load64_splat(at, 32);
  for (const end = first + 512; first < end; first += 32) {
    const two = v128.load(first);
    const more = v128.load(first, 16);
    sum = f64x2.add(sum, two);
    other = f64x2.add(other, more);
    least = f64x2.pmin(least, f64x2.pmin(two, more));
    greatest = f64x2.pmax(greatest, f64x2.pmax(two, more));
  }
  sum = f64x2.add(sum, other);
  store<f64>(at, load<f64>(at) + 64);
  store<f64>(at, load<f64>(at, 8) + (f64x2.extract_lane(sum, 0) + f64x2.extract_lane(sum, 1)), 8);
  store<f64>(at, min(f64x2.extract_lane(least, 0), f64x2.extract_lane(least, 1)), 24);
  store<f64>(at, max(f64x2.extract_lane(greatest, 0), f64x2.extract_lane(greatest, 1)), 32);
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

/** Writes a pair (i32 magnitude, u32 group) for each set row of [from, to). Returns their number. */
export function listMagnitudes(
  values: usize,
  areFloats: u32,
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
      const place = values + ((<usize>next) << 3);
      store<i32>(at, magnitudeOf(areFloats != 0 ? load<f64>(place) : <f64>load<i64>(place)));
      store<u32>(at, <u32>groupOf(groups, next), 4);
    }
  }
  return <u32>((at - pairs) >>> 3);
}

/** Writes a pair (u32 code, u32 group) for each set row of [from, to). Returns their number. */
export function listPairs(
  codes: usize,
  codeBytes: u32,
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
      const code =
        codeBytes == 1 ? <u32>load<u8>(codes + next) : <u32>load<u16>(codes + ((<usize>next) << 1));
      store<u32>(at, code);
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
