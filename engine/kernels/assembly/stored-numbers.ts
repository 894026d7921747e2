// Converts numbers from the forms in which other programs store them: see ../stored-numbers.ts. Values have eight bytes unless stated
// otherwise.

/** Widens `count` 32-bit integers at `source` to 64-bit integers at `target`. */
export function widenInt32(source: usize, count: u32, target: usize, isUnsigned: bool): void {
  for (const end = source + ((<usize>count) << 2); source < end; source += 4, target += 8)
    store<i64>(target, isUnsigned ? <i64>load<u32>(source) : <i64>load<i32>(source));
}

/** Widens `count` 32-bit floats at `source` to doubles at `target`. */
export function widenFloat32(source: usize, count: u32, target: usize): void {
  for (const end = source + ((<usize>count) << 2); source < end; source += 4, target += 8)
    store<f64>(target, <f64>load<f32>(source));
}

/**
 * Reduces `count` integers to their low 32 bits. Sums of 32-bit deltas may have overflowed 32 bits, where the original values wrap around.
 */
export function wrapInt32(values: usize, count: u32, isUnsigned: bool): void {
  for (const end = values + ((<usize>count) << 3); values < end; values += 8)
    store<i64>(values, isUnsigned ? <i64>load<u32>(values) : <i64>load<i32>(values));
}

/**
 * Joins `count` values of `width` bytes from BYTE_STREAM_SPLIT: the source has the first bytes of all values, then their second bytes, and
 * so on.
 */
export function joinStreams(source: usize, count: u32, width: u32, target: usize): void {
  for (let k: u32 = 0; k < width; k++) {
    let at = target + k;
    for (const end = source + count; source < end; source++, at += width) store<u8>(at, load<u8>(source));
  }
}

/** Divides integers by a positive `divisor`, rounding down. */
export function divideDown(values: usize, count: u32, divisor: i64): void {
  for (const end = values + ((<usize>count) << 3); values < end; values += 8) {
    const value = load<i64>(values);
    const quotient = value / divisor;
    store<i64>(values, quotient - <i64>(value < 0 && quotient * divisor != value));
  }
}

/** Clears the bit of a row. */
function clear(bits: usize, row: u32): void {
  const at = bits + (row >>> 3);
  store<u8>(at, <u8>((<u32>load<u8>(at)) & ~((<u32>1) << (row & 7))));
}

/**
 * Multiplies integers. Values outside ±`most`, whose products do not fit, become 0, and their bits in `bits` are cleared. Returns the
 * number of such values.
 */
export function multiply(values: usize, count: u32, factor: i64, most: i64, bits: usize): u32 {
  let dropped: u32 = 0;
  for (let row: u32 = 0; row < count; row++) {
    const at = values + ((<usize>row) << 3);
    const value = load<i64>(at);
    if (value > most || value < -most) {
      store<i64>(at, 0);
      clear(bits, row);
      dropped++;
    } else {
      store<i64>(at, value * factor);
    }
  }
  return dropped;
}

/** Divides integers by `divisor`, rounding to the nearest double. */
export function divideToFloats(values: usize, count: u32, divisor: f64): void {
  for (const end = values + ((<usize>count) << 3); values < end; values += 8)
    store<f64>(values, <f64>load<i64>(values) / divisor);
}

/** Sets NaN and infinite doubles to 0, and clears their bits in `bits`. Returns the number of such values. */
export function dropInfinite(values: usize, count: u32, bits: usize): u32 {
  const exponent: u64 = 0x7ff0000000000000;
  let dropped: u32 = 0;
  for (let row: u32 = 0; row < count; row++) {
    const at = values + ((<usize>row) << 3);
    if ((load<u64>(at) & exponent) != exponent) continue;
    store<u64>(at, 0);
    clear(bits, row);
    dropped++;
  }
  return dropped;
}

/** Whether no integer is negative. */
export function noneNegative(values: usize, count: u32): bool {
  let seen: i64 = 0;
  for (const end = values + ((<usize>count) << 3); values < end; values += 8) seen |= load<i64>(values);
  return seen >= 0;
}
