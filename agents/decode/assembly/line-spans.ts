// Layout of split lines, which ../line-columns.ts allocates and the kernels fill and convert.
//
// A line has an entry in the table of lines (its beginning and the position of its line feed, relative to the text), a
// state, and a span per field: the beginning of the field's bytes, relative to the text, and their number, with the field's
// kind in the upper bits. A line that the kernels can't take is odd, and is left to the decoder of single lines.

/** Bytes of a line's entry and of a span. */
export const lineEntryBytes: usize = 8;
export const spanBytes: usize = 8;

export const kindAbsent: u32 = 0;
export const kindText: u32 = 1;
export const kindNumber: u32 = 2;
/** A JSON true, false, object or array. */
export const kindOther: u32 = 3;
/** Text of a JSON string with escapes, all of which are valid and none a surrogate. */
export const kindEscaped: u32 = 4;
export const kindShift: u32 = 28;
export const lengthMask: u32 = 0x0fffffff;

/** State of a line whose fields are in its spans. */
export const lineTaken: u8 = 0;
/** State of a line that the kernels can't take. */
export const lineOdd: u8 = 1;

/** Longer lines are not taken: `lineBytesMax` of engine/core/limits.ts. */
export const takenLineBytesMax: usize = 1024 * 1024;

const lineFeed: i8 = 0x0a;

/** Address of the first line feed from `at` on; there must be one. */
export function lineFeedFrom(at: usize): usize {
  const wanted = i8x16.splat(lineFeed);
  while (true) {
    const mask = i8x16.bitmask(i8x16.eq(v128.load(at), wanted));
    if (mask != 0) return at + <usize>ctz(mask);
    at += 16;
  }
}

/** Whether [at, end) has a byte of 0x80 or more. */
export function hasHighByte(at: usize, end: usize): bool {
  for (; at + 16 <= end; at += 16) if (i8x16.bitmask(v128.load(at)) != 0) return true;
  if (at == end) return false;
  const left = <i32>(end - at);
  return (i8x16.bitmask(v128.load(at)) & ((1 << left) - 1)) != 0;
}

/** Whether [a, a + length) and [b, b + length) hold the same bytes. Both must be followed by slack. */
export function sameBytes(a: usize, b: usize, length: u32): bool {
  let left = <i32>length;
  for (; left >= 16; left -= 16) {
    if (v128.any_true(v128.xor(v128.load(a), v128.load(b)))) return false;
    a += 16;
    b += 16;
  }
  if (left == 0) return true;
  const differ = i8x16.bitmask(i8x16.ne(v128.load(a), v128.load(b)));
  return (differ & ((1 << left) - 1)) == 0;
}
