/**
 * Converts columns with nulls between their form in memory and on disk. In memory a null has a slot; on disk there are only the present
 * values. `bits` has one bit per row, least significant bit first, 1 = present.
 */

/** Copies the 8-byte values of the present rows to the start of `target`, as pairs of 32-bit halves. Returns how many there are. */
export function gatherWords(halves: Int32Array, bits: Uint8Array, rows: number, target: Int32Array): number {
  let present = 0;
  for (let row = 0; row < rows; row++) {
    if ((bits[row >> 3]! & (1 << (row & 7))) === 0) continue;
    target[2 * present] = halves[2 * row]!;
    target[2 * present + 1] = halves[2 * row + 1]!;
    present++;
  }
  return present;
}

/**
 * Moves `present` 8-byte values (as pairs of halves) from the start of `halves` to the slots of their rows, and sets the slots of nulls to
 * 0. Goes from the last row to the first, so that it can work in place.
 */
export function spreadWords(halves: Int32Array, bits: Uint8Array, rows: number, present: number): void {
  let from = present;
  for (let row = rows - 1; row >= 0; row--) {
    if ((bits[row >> 3]! & (1 << (row & 7))) !== 0) {
      from--;
      halves[2 * row + 1] = halves[2 * from + 1]!;
      halves[2 * row] = halves[2 * from]!;
    } else {
      halves[2 * row + 1] = 0;
      halves[2 * row] = 0;
    }
  }
}

/** Like `spreadWords`, for dictionary codes. */
export function spreadCodes(
  codes: Uint8Array | Uint16Array,
  bits: Uint8Array,
  rows: number,
  present: number,
): void {
  let from = present;
  for (let row = rows - 1; row >= 0; row--) {
    codes[row] = (bits[row >> 3]! & (1 << (row & 7))) !== 0 ? codes[--from]! : 0;
  }
}

/** Like `spreadWords`, for `present + 1` offsets that become `rows + 1`. A null becomes the empty string. */
export function spreadOffsets(offsets: Uint32Array, bits: Uint8Array, rows: number, present: number): void {
  let from = present;
  for (let row = rows - 1; row >= 0; row--) {
    offsets[row + 1] = offsets[from]!;
    if ((bits[row >> 3]! & (1 << (row & 7))) !== 0) from--;
  }
}
