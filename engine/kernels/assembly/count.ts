// Counts rows by their values: see ../count.ts.
import { wordOf } from './bitmap';

/** Whether all 64 integers at `at` are in [low, high]. */
export function areWithin(at: usize, low: i64, high: i64): bool {
  const lowest = i64x2.splat(low);
  const highest = i64x2.splat(high);
  let within = i64x2.splat(-1);
  for (const end = at + 512; at < end; at += 64) {
    const first = v128.load(at);
    const second = v128.load(at, 16);
    const third = v128.load(at, 32);
    const fourth = v128.load(at, 48);
    within = v128.and(within, v128.and(i64x2.ge_s(first, lowest), i64x2.le_s(first, highest)));
    within = v128.and(within, v128.and(i64x2.ge_s(second, lowest), i64x2.le_s(second, highest)));
    within = v128.and(within, v128.and(i64x2.ge_s(third, lowest), i64x2.le_s(third, highest)));
    within = v128.and(within, v128.and(i64x2.ge_s(fourth, lowest), i64x2.le_s(fourth, highest)));
  }
  return i64x2.all_true(within);
}

/** Index of the last of the `count` ascending starts that is not greater than `value`. */
export function rangeOf(starts: usize, count: u32, value: i64): u32 {
  let low: u32 = 0;
  let high = count;
  while (high - low > 1) {
    const middle = (low + high) >>> 1;
    if (load<i64>(starts + ((<usize>middle) << 3)) <= value) low = middle;
    else high = middle;
  }
  return low;
}

/** The first integer of a range. */
export function startOf(starts: usize, range: u32): i64 {
  return load<i64>(starts + ((<usize>range) << 3));
}

/** The last integer of a range. */
export function endOf(starts: usize, count: u32, range: u32): i64 {
  return range + 1 < count ? load<i64>(starts + ((<usize>range) << 3), 8) - 1 : i64.MAX_VALUE;
}

/** If fewer rows of a 64-bit word are counted, looking at each takes less time than checking whether all 64 are in one range. */
const rowsOfWordMin: u64 = 12;

function addOne(counts: usize, index: u32): void {
  const at = counts + ((<usize>index) << 2);
  store<u32>(at, load<u32>(at) + 1);
}

/**
 * Adds each set row of [from, to) to the count (u32) of the range that contains its integer. Range i has the integers from `starts[i]` up
 * to the next start; no counted integer is below the first start. Up to eight bytes after the bitmap are read.
 */
export function countRanges(
  values: usize,
  bits: usize,
  from: u32,
  to: u32,
  starts: usize,
  ranges: u32,
  counts: usize,
): void {
  let range: u32 = 0;
  let low = startOf(starts, 0);
  let high = endOf(starts, ranges, 0);
  for (let row = from & ~63; row < to; row += 64) {
    let word = wordOf(bits, row, from, to);
    if (word == 0) continue;
    const at = values + ((<usize>row) << 3);
    // Times mostly ascend, so all rows of most words are in one range.
    const isWhole = row >= from && row + 64 <= to && popcnt(word) >= rowsOfWordMin;
    if (isWhole && areWithin(at, low, high)) {
      const count = counts + ((<usize>range) << 2);
      store<u32>(count, load<u32>(count) + <u32>popcnt(word));
      continue;
    }
    for (; word != 0; word &= word - 1) {
      const value = load<i64>(at + ((<usize>ctz(word)) << 3));
      if (value < low || value > high) {
        range = rangeOf(starts, ranges, value);
        low = startOf(starts, range);
        high = endOf(starts, ranges, range);
      }
      addOne(counts, range);
    }
  }
}

// 8-bit codes are counted in four tables of 256 counts (u32) in turn. Often one code follows itself; with one table, each addition to its
// count would have to wait for the one before.

function addEight(eight: u64, tables: usize): void {
  for (let k: usize = 0; k < 2; k++) {
    addOne(tables, <u32>(eight & 0xff));
    addOne(tables + 1024, <u32>((eight >>> 8) & 0xff));
    addOne(tables + 2048, <u32>((eight >>> 16) & 0xff));
    addOne(tables + 3072, <u32>((eight >>> 24) & 0xff));
    eight >>>= 32;
  }
}

/** Adds the set rows of a word to the tables. The codes of its rows begin at `at`. */
function addWord(word: u64, at: usize, tables: usize): void {
  if (word == <u64>-1) {
    for (let k: usize = 0; k < 64; k += 8) addEight(load<u64>(at + k), tables);
    return;
  }
  for (; word != 0; word &= word - 1) addOne(tables, load<u8>(at + <usize>ctz(word)));
}

/** Adds the counts of the first `codes` codes from the tables to `counts`, and sets them to 0 in the tables. */
function moveCounts(tables: usize, codes: u32, counts: usize): void {
  for (const end = tables + ((<usize>codes) << 2); tables < end; tables += 4, counts += 4) {
    const counted =
      load<u32>(tables) + load<u32>(tables, 1024) + load<u32>(tables, 2048) + load<u32>(tables, 3072);
    store<u32>(counts, load<u32>(counts) + counted);
    store<u32>(tables, 0);
    store<u32>(tables, 0, 1024);
    store<u32>(tables, 0, 2048);
    store<u32>(tables, 0, 3072);
  }
}

/**
 * Adds each set row of [from, to) to the count (u32) of its 8-bit code. Codes are below `codesMax`. `tables` has 4096 bytes; they must be 0
 * before the call, and are 0 after it. Up to eight bytes after the bitmap are read.
 */
export function countCodes8(
  codes: usize,
  bits: usize,
  from: u32,
  to: u32,
  codesMax: u32,
  tables: usize,
  counts: usize,
): void {
  for (let row = from & ~63; row < to; row += 64) addWord(wordOf(bits, row, from, to), codes + row, tables);
  moveCounts(tables, codesMax, counts);
}

/** Like `countCodes8`, for 16-bit codes. */
export function countCodes16(codes: usize, bits: usize, from: u32, to: u32, counts: usize): void {
  for (let row = from & ~63; row < to; row += 64) {
    const at = codes + ((<usize>row) << 1);
    for (let word = wordOf(bits, row, from, to); word != 0; word &= word - 1)
      addOne(counts, load<u16>(at + ((<usize>ctz(word)) << 1)));
  }
}

/**
 * Adds each set row of [from, to) to the count (u32) of its range, see `countRanges`, and its code, which has `codeBytes` bytes. The count
 * of a pair is at index `range * codesOfRange + code`. `tables` as for `countCodes8`. Up to eight bytes after the bitmap are read.
 */
export function countPairs(
  values: usize,
  codes: usize,
  codeBytes: u32,
  bits: usize,
  from: u32,
  to: u32,
  starts: usize,
  ranges: u32,
  codesOfRange: u32,
  tables: usize,
  counts: usize,
): void {
  let range: u32 = 0;
  let low = startOf(starts, 0);
  let high = endOf(starts, ranges, 0);
  for (let row = from & ~63; row < to; row += 64) {
    let word = wordOf(bits, row, from, to);
    if (word == 0) continue;
    const at = values + ((<usize>row) << 3);
    const isWhole = row >= from && row + 64 <= to && popcnt(word) >= rowsOfWordMin;
    const areAlike = isWhole && areWithin(at, low, high);
    if (areAlike && codeBytes == 1) {
      addWord(word, codes + row, tables);
      continue;
    }
    for (; word != 0; word &= word - 1) {
      const next = <u32>ctz(word);
      if (!areAlike) {
        const value = load<i64>(at + ((<usize>next) << 3));
        if (value < low || value > high) {
          // The counts in the tables belong to the range before.
          if (codeBytes == 1)
            moveCounts(tables, codesOfRange, counts + ((<usize>(range * codesOfRange)) << 2));
          range = rangeOf(starts, ranges, value);
          low = startOf(starts, range);
          high = endOf(starts, ranges, range);
        }
      }
      const code =
        codeBytes == 1
          ? <u32>load<u8>(codes + row + next)
          : <u32>load<u16>(codes + ((<usize>(row + next)) << 1));
      addOne(counts, range * codesOfRange + code);
    }
  }
  if (codeBytes == 1) moveCounts(tables, codesOfRange, counts + ((<usize>(range * codesOfRange)) << 2));
}
