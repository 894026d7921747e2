/**
 * Compares numeric columns with an inclusive range, and writes the result to a bitmap.
 *
 * `from` is a multiple of 8. The bytes of `out` for the rows [from, to) are overwritten, bits past `to` with 0.
 * `flip` is 0xff to select the rows outside the range, else 0. The caller handles nulls.
 */

const two32 = 4294967296;

/**
 * 64-bit integers as pairs of 32-bit halves, the low one first. Each bound is infinite or a safe integer. Comparing the values rounded to
 * doubles is therefore exact: rounding is monotone, and the bounds and their neighbours are doubles (which is why 2^53 itself cannot be a
 * bound). Reading halves avoids a BigInt for each row.
 */
export function selectInt64(
  halves: Int32Array,
  from: number,
  to: number,
  low: number,
  high: number,
  flip: number,
  out: Uint8Array,
): void {
  for (let row = from; row < to; row += 8) {
    const end = row + 8 < to ? row + 8 : to;
    let byte = 0;
    for (let r = row, bit = 1; r < end; r++, bit <<= 1) {
      const value = halves[2 * r + 1]! * two32 + (halves[2 * r]! >>> 0);
      if (value >= low && value <= high) byte |= bit;
    }
    out[row >> 3] = (byte ^ flip) & (0xff >> (8 - (end - row)));
  }
}

/** Like `selectInt64` for any bounds, each given by its halves: the high one signed, the low one unsigned. */
export function selectInt64Wide(
  halves: Int32Array,
  from: number,
  to: number,
  lowHigh: number,
  lowLow: number,
  highHigh: number,
  highLow: number,
  flip: number,
  out: Uint8Array,
): void {
  for (let row = from; row < to; row += 8) {
    const end = row + 8 < to ? row + 8 : to;
    let byte = 0;
    for (let r = row, bit = 1; r < end; r++, bit <<= 1) {
      const upper = halves[2 * r + 1]!;
      const lower = halves[2 * r]! >>> 0;
      if (
        (upper > lowHigh || (upper === lowHigh && lower >= lowLow)) &&
        (upper < highHigh || (upper === highHigh && lower <= highLow))
      ) {
        byte |= bit;
      }
    }
    out[row >> 3] = (byte ^ flip) & (0xff >> (8 - (end - row)));
  }
}

/** Doubles; the column holds no NaN. −0 equals +0. */
export function selectFloat64(
  values: Float64Array,
  from: number,
  to: number,
  low: number,
  high: number,
  flip: number,
  out: Uint8Array,
): void {
  for (let row = from; row < to; row += 8) {
    const end = row + 8 < to ? row + 8 : to;
    let byte = 0;
    for (let r = row, bit = 1; r < end; r++, bit <<= 1) {
      const value = values[r]!;
      if (value >= low && value <= high) byte |= bit;
    }
    out[row >> 3] = (byte ^ flip) & (0xff >> (8 - (end - row)));
  }
}
