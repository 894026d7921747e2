// Rows counted by what they hold: see ../count.ts.

/** The 64 bits from the byte at `row` >> 3 on, without those outside [from, to). `row` is a multiple of 64. */
function wordOf(bits: usize, row: u32, from: u32, to: u32): u64 {
  let word = load<u64>(bits + (row >>> 3));
  if (row < from) word &= (<u64>-1) << (from - row);
  if (to - row < 64) word &= ((<u64>1) << (to - row)) - 1;
  return word;
}

/** Whether each of the 64 integers at `at` is in [low, high]. */
function areWithin(at: usize, low: i64, high: i64): bool {
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

/** The last of the `count` ascending starts that is not above `value`. */
function rangeOf(starts: usize, count: u32, value: i64): u32 {
  let low: u32 = 0;
  let high = count;
  while (high - low > 1) {
    const middle = (low + high) >>> 1;
    if (load<i64>(starts + ((<usize>middle) << 3)) <= value) low = middle;
    else high = middle;
  }
  return low;
}

function startOf(starts: usize, range: u32): i64 {
  return load<i64>(starts + ((<usize>range) << 3));
}

function endOf(starts: usize, count: u32, range: u32): i64 {
  return range + 1 < count ? load<i64>(starts + ((<usize>range) << 3), 8) - 1 : i64.MAX_VALUE;
}

function addOne(counts: usize, index: u32): void {
  const at = counts + ((<usize>index) << 2);
  store<u32>(at, load<u32>(at) + 1);
}

/**
 * Adds each set row of [from, to) to the count (u32) of the range that its integer lies in. Range i has the integers from `starts[i]` up to
 * the next start; none is below the first. Eight bytes behind the bitmap are read.
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
    // Times ascend, but for some: most words lie in one range.
    if (row >= from && row + 64 <= to && areWithin(at, low, high)) {
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

/** Adds each set row of [from, to) to the count (u32) of its 8-bit code. Eight bytes behind the bitmap are read. */
export function countCodes8(codes: usize, bits: usize, from: u32, to: u32, counts: usize): void {
  for (let row = from & ~63; row < to; row += 64) {
    let word = wordOf(bits, row, from, to);
    const at = codes + row;
    if (word == <u64>-1) {
      for (let k: usize = 0; k < 64; k += 8) addCodes8(load<u64>(at + k), counts);
      continue;
    }
    for (; word != 0; word &= word - 1) addOne(counts, load<u8>(at + <usize>ctz(word)));
  }
}

/** Eight codes. Where all are alike, as they often are, they are one addition. */
function addCodes8(eight: u64, counts: usize): void {
  if (eight == rotl<u64>(eight, 8)) {
    const at = counts + ((<usize>(eight & 0xff)) << 2);
    store<u32>(at, load<u32>(at) + 8);
    return;
  }
  for (let k = 0; k < 8; k++, eight >>>= 8) addOne(counts, <u32>(eight & 0xff));
}

/** As `countCodes8`, for 16-bit codes. */
export function countCodes16(codes: usize, bits: usize, from: u32, to: u32, counts: usize): void {
  for (let row = from & ~63; row < to; row += 64) {
    const at = codes + ((<usize>row) << 1);
    for (let word = wordOf(bits, row, from, to); word != 0; word &= word - 1)
      addOne(counts, load<u16>(at + ((<usize>ctz(word)) << 1)));
  }
}

/**
 * Adds each set row of [from, to) to the count (u32) of its range, as `countRanges` has them, and its code, of `codeBytes` bytes: the counts
 * of the `codesOfRange` codes of a range lie together. Eight bytes behind the bitmap are read.
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
  counts: usize,
): void {
  let range: u32 = 0;
  let low = startOf(starts, 0);
  let high = endOf(starts, ranges, 0);
  for (let row = from & ~63; row < to; row += 64) {
    let word = wordOf(bits, row, from, to);
    if (word == 0) continue;
    const at = values + ((<usize>row) << 3);
    const areAlike = row >= from && row + 64 <= to && areWithin(at, low, high);
    for (; word != 0; word &= word - 1) {
      const next = <u32>ctz(word);
      if (!areAlike) {
        const value = load<i64>(at + ((<usize>next) << 3));
        if (value < low || value > high) {
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
}
