/**
 * Selects rows by their dictionary codes and a set of entries, into a bitmap.
 *
 * `wanted` has one byte for each entry: 1 to select its rows, else 0. `from` is a multiple of 8. The bytes of `out` for the
 * rows [from, to) are overwritten, bits past `to` with 0.
 */
export function selectCodes(
  codes: Uint8Array | Uint16Array,
  wanted: Uint8Array,
  from: number,
  to: number,
  out: Uint8Array,
): void {
  const whole = from + ((to - from) & ~7);
  let row = from;
  for (; row < whole; row += 8) {
    out[row >> 3] =
      wanted[codes[row]!]! |
      (wanted[codes[row + 1]!]! << 1) |
      (wanted[codes[row + 2]!]! << 2) |
      (wanted[codes[row + 3]!]! << 3) |
      (wanted[codes[row + 4]!]! << 4) |
      (wanted[codes[row + 5]!]! << 5) |
      (wanted[codes[row + 6]!]! << 6) |
      (wanted[codes[row + 7]!]! << 7);
  }
  if (row < to) {
    let byte = 0;
    for (let bit = 0; row + bit < to; bit++) byte |= wanted[codes[row + bit]!]! << bit;
    out[row >> 3] = byte;
  }
}
