// Selections as bitmaps, one bit per row: see ../bitmap.ts. Bits after the last row are 0, both in arguments and in results.

/** Clears the rows of [from, to) in `bits` that are not set in `other`. `from` must be a multiple of 8. */
export function andRange(bits: usize, other: usize, from: u32, to: u32): void {
  const end = bits + ((to + 7) >>> 3);
  bits += from >>> 3;
  other += from >>> 3;
  for (; bits + 16 <= end; bits += 16, other += 16)
    v128.store(bits, v128.and(v128.load(bits), v128.load(other)));
  for (; bits < end; bits++, other++) store<u8>(bits, load<u8>(bits) & load<u8>(other));
}

/** Sets the rows of [from, to) in `bits` that are set in `other`. `from` must be a multiple of 8. */
export function orRange(bits: usize, other: usize, from: u32, to: u32): void {
  const end = bits + ((to + 7) >>> 3);
  bits += from >>> 3;
  other += from >>> 3;
  for (; bits + 16 <= end; bits += 16, other += 16)
    v128.store(bits, v128.or(v128.load(bits), v128.load(other)));
  for (; bits < end; bits++, other++) store<u8>(bits, load<u8>(bits) | load<u8>(other));
}

/** The 64 bits of the rows from `row` on, with those outside [from, to) cleared. `row` must be a multiple of 64. */
export function wordOf(bits: usize, row: u32, from: u32, to: u32): u64 {
  let word = load<u64>(bits + (row >>> 3));
  if (row < from) word &= (<u64>-1) << (from - row);
  if (to - row < 64) word &= ((<u64>1) << (to - row)) - 1;
  return word;
}

/** The number of set rows in [from, to). Up to eight bytes after the bitmap are read. */
export function countRange(bits: usize, from: u32, to: u32): u32 {
  let count: u64 = 0;
  for (let row = from & ~63; row < to; row += 64) count += popcnt(wordOf(bits, row, from, to));
  return <u32>count;
}

/** Writes the first `most` set rows of [from, to), ascending, to `rows` (u32). Returns the number of rows written. */
export function listRange32(bits: usize, from: u32, to: u32, most: u32, rows: usize): u32 {
  let listed: u32 = 0;
  for (let row = from & ~63; row < to; row += 64) {
    for (let word = wordOf(bits, row, from, to); word != 0; word &= word - 1) {
      if (listed == most) return listed;
      store<u32>(rows + ((<usize>listed) << 2), row + <u32>ctz(word));
      listed++;
    }
  }
  return listed;
}

/** Like `listRange32`, for row numbers below 2^16 (u16). */
export function listRange16(bits: usize, from: u32, to: u32, most: u32, rows: usize): u32 {
  let listed: u32 = 0;
  for (let row = from & ~63; row < to; row += 64) {
    for (let word = wordOf(bits, row, from, to); word != 0; word &= word - 1) {
      if (listed == most) return listed;
      store<u16>(rows + ((<usize>listed) << 1), <u16>(row + <u32>ctz(word)));
      listed++;
    }
  }
  return listed;
}

/** Writes one byte for each of the first `count` bits, 1 or 0. Up to 15 bytes after them are overwritten. */
export function spreadBits(bits: usize, count: u32, bytes: usize): void {
  const byteOfLane = i8x16(0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1);
  const bitOfLane = i8x16(1, 2, 4, 8, 16, 32, 64, -128, 1, 2, 4, 8, 16, 32, 64, -128);
  for (let i: u32 = 0; i < count; i += 16) {
    const sixteen = i8x16.swizzle(i16x8.splat(load<i16>(bits + (i >>> 3))), byteOfLane);
    const isSet = i8x16.ne(v128.and(sixteen, bitOfLane), i8x16.splat(0));
    v128.store(bytes + i, v128.and(isSet, i8x16.splat(1)));
  }
}
