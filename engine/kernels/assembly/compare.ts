// Compares numeric columns with an inclusive range, and writes a bitmap: see ../compare.ts.

/** The low halves of four 64-bit lanes. A comparison sets all bits of a lane alike, so the half has the whole result. */
function lowHalves(a: v128, b: v128): v128 {
  return i8x16.shuffle(a, b, 0, 1, 2, 3, 8, 9, 10, 11, 16, 17, 18, 19, 24, 25, 26, 27);
}

/** One bit for each of sixteen 32-bit lanes. */
function bitsOf(a: v128, b: v128, c: v128, d: v128): u32 {
  return i8x16.bitmask(i8x16.narrow_i16x8_s(i16x8.narrow_i32x4_s(a, b), i16x8.narrow_i32x4_s(c, d)));
}

function pairInt64(at: usize, low: v128, high: v128): v128 {
  const values = v128.load(at);
  return v128.and(i64x2.ge_s(values, low), i64x2.le_s(values, high));
}

function quadInt64(at: usize, low: v128, high: v128): v128 {
  return lowHalves(pairInt64(at, low, high), pairInt64(at + 16, low, high));
}

/**
 * Selects the rows of [from, to) whose 64-bit integer is in [low, high], or with `flip` = 0xff is not. `from` must be a multiple of 8.
 * Overwrites the bits of these rows at `out`; the remaining bits of the last byte become 0.
 */
export function selectInt64(
  values: usize,
  from: u32,
  to: u32,
  low: i64,
  high: i64,
  flip: u32,
  out: usize,
): void {
  const lowest = i64x2.splat(low);
  const highest = i64x2.splat(high);
  const flips = flip | (flip << 8);
  let at = values + ((<usize>from) << 3);
  out += from >>> 3;
  let row = from;
  for (; row + 16 <= to; row += 16) {
    const bits = bitsOf(
      quadInt64(at, lowest, highest),
      quadInt64(at + 32, lowest, highest),
      quadInt64(at + 64, lowest, highest),
      quadInt64(at + 96, lowest, highest),
    );
    store<u16>(out, <u16>(bits ^ flips));
    out += 2;
    at += 128;
  }
  for (; row < to; row += 8) {
    const rows = min<u32>(8, to - row);
    let bits: u32 = 0;
    for (let k: u32 = 0; k < rows; k++) {
      const value = load<i64>(at + (k << 3));
      bits |= (<u32>(value >= low && value <= high)) << k;
    }
    store<u8>(out++, <u8>((bits ^ flip) & (0xff >>> (8 - rows))));
    at += 64;
  }
}

function pairFloat64(at: usize, low: v128, high: v128): v128 {
  const values = v128.load(at);
  return v128.and(f64x2.ge(values, low), f64x2.le(values, high));
}

function quadFloat64(at: usize, low: v128, high: v128): v128 {
  return lowHalves(pairFloat64(at, low, high), pairFloat64(at + 16, low, high));
}

/** Like `selectInt64`, for doubles, none of them NaN. −0 equals +0. */
export function selectFloat64(
  values: usize,
  from: u32,
  to: u32,
  low: f64,
  high: f64,
  flip: u32,
  out: usize,
): void {
  const lowest = f64x2.splat(low);
  const highest = f64x2.splat(high);
  const flips = flip | (flip << 8);
  let at = values + ((<usize>from) << 3);
  out += from >>> 3;
  let row = from;
  for (; row + 16 <= to; row += 16) {
    const bits = bitsOf(
      quadFloat64(at, lowest, highest),
      quadFloat64(at + 32, lowest, highest),
      quadFloat64(at + 64, lowest, highest),
      quadFloat64(at + 96, lowest, highest),
    );
    store<u16>(out, <u16>(bits ^ flips));
    out += 2;
    at += 128;
  }
  for (; row < to; row += 8) {
    const rows = min<u32>(8, to - row);
    let bits: u32 = 0;
    for (let k: u32 = 0; k < rows; k++) {
      const value = load<f64>(at + (k << 3));
      bits |= (<u32>(value >= low && value <= high)) << k;
    }
    store<u8>(out++, <u8>((bits ^ flip) & (0xff >>> (8 - rows))));
    at += 64;
  }
}
