/**
 * Selections as bitmaps: one bit for each row, least significant first. Bits past the rows are 0 in every input and output bitmap.
 */

const onesOfByte = buildOnes();

function buildOnes(): Uint8Array {
  const ones = new Uint8Array(256);
  for (let i = 1; i < 256; i++) ones[i] = ones[i >> 1]! + (i & 1);
  return ones;
}

/** Intersects `bits` with `other` in the rows [from, to); `from` is a multiple of 8. */
export function andRange(bits: Uint8Array, other: Uint8Array, from: number, to: number): void {
  const end = (to + 7) >> 3;
  for (let i = from >> 3; i < end; i++) bits[i]! &= other[i]!;
}

/** Unites `bits` with `other` in the rows [from, to); `from` is a multiple of 8. */
export function orRange(bits: Uint8Array, other: Uint8Array, from: number, to: number): void {
  const end = (to + 7) >> 3;
  for (let i = from >> 3; i < end; i++) bits[i]! |= other[i]!;
}

/** Number of set rows in [from, to). */
export function countRange(bits: Uint8Array, from: number, to: number): number {
  if (from >= to) return 0;
  const first = from >> 3;
  const last = (to - 1) >> 3;
  const head = (0xff << (from & 7)) & 0xff;
  const tail = 0xff >> (7 - ((to - 1) & 7));
  if (first === last) return onesOfByte[bits[first]! & head & tail]!;
  let count = onesOfByte[bits[first]! & head]! + onesOfByte[bits[last]! & tail]!;
  for (let i = first + 1; i < last; i++) count += onesOfByte[bits[i]!]!;
  return count;
}

/** Writes the set rows of [from, to) in ascending order to `rows` from `at` on, which must have room; returns the end. */
export function listRange(
  bits: Uint8Array,
  from: number,
  to: number,
  rows: Uint16Array | Uint32Array,
  at: number,
): number {
  let o = at;
  const end = (to + 7) >> 3;
  for (let i = from >> 3; i < end; i++) {
    let byte = bits[i]!;
    while (byte !== 0) {
      const row = (i << 3) + (31 - Math.clz32(byte & -byte));
      byte &= byte - 1;
      if (row >= from && row < to) rows[o++] = row;
    }
  }
  return o;
}

/** Writes a byte for each of the first `count` bits: 1 if it is set, else 0. */
export function spreadBits(bits: Uint8Array, count: number, bytes: Uint8Array): void {
  for (let i = 0; i < count; i++) bytes[i] = (bits[i >> 3]! >> (i & 7)) & 1;
}
