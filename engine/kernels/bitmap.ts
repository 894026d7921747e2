/**
 * Selections as bitmaps: one bit per row, least significant bit first. The bits after the last row are 0, both in the bitmaps that are
 * given and in those that are returned.
 */
import { openScratch, scratchBytes } from '../core/scratch.js';
import { kernelsOver } from './kernels.js';

/** The size in bytes of a bitmap of `rows` rows, rounded up to whole 64-byte vectors. */
export function bitmapBytes(rows: number): number {
  return ((rows + 511) >> 9) << 6;
}

/** Sets the bits of the rows [from, to). */
export function setRange(bits: Uint8Array, from: number, to: number): void {
  if (from >= to) return;
  const first = from >> 3;
  const last = (to - 1) >> 3;
  const head = (0xff << (from & 7)) & 0xff;
  const tail = 0xff >> (7 - ((to - 1) & 7));
  if (first === last) {
    bits[first]! |= head & tail;
    return;
  }
  bits[first]! |= head;
  bits.fill(0xff, first + 1, last);
  bits[last]! |= tail;
}

/**
 * Copies the bits of the `count` bytes of `other` from offset `at` on into `bits`, to the rows from `row` on. Bits that don't fit in `bits`
 * are dropped. No bit of `bits` from `row` on may be set.
 */
export function addBits(bits: Uint8Array, row: number, other: Uint8Array, at: number, count: number): void {
  const shift = row & 7;
  let to = row >> 3;
  if (shift === 0) {
    bits.set(other.subarray(at, at + Math.min(count, bits.length - to)), to);
    return;
  }
  for (const end = at + count; at < end; at++, to++) {
    const pair = other[at]! << shift;
    bits[to]! |= pair;
    // A write beyond the end of a typed array has no effect.
    bits[to + 1] = pair >> 8;
  }
}

/** Inverts the bits of the rows [from, to). `from` must be a multiple of 8. */
export function flipRange(bits: Uint8Array, from: number, to: number): void {
  const end = to >> 3;
  for (let i = from >> 3; i < end; i++) bits[i]! ^= 0xff;
  if ((to & 7) !== 0) bits[end]! ^= 0xff >> (8 - (to & 7));
}

/** Clears the rows of [from, to) in `bits` that are not set in `other`. `from` must be a multiple of 8. */
export function andRange(bits: Uint8Array, other: Uint8Array, from: number, to: number): void {
  combine('andRange', bits, other, from, to);
}

/** Sets the rows of [from, to) in `bits` that are set in `other`. `from` must be a multiple of 8. */
export function orRange(bits: Uint8Array, other: Uint8Array, from: number, to: number): void {
  combine('orRange', bits, other, from, to);
}

function combine(
  operation: 'andRange' | 'orRange',
  bits: Uint8Array,
  other: Uint8Array,
  from: number,
  to: number,
): void {
  const first = from >> 3;
  const end = (to + 7) >> 3;
  const scratch = openScratch(scratchBytes(bits, end - first) + scratchBytes(other, end - first));
  // `bits` is read as well as written. Where it is not in the kernels' memory, `place` copies it in and `copyOut` copies it back.
  const bitsAt = scratch.place(bits, first, end);
  const otherAt = scratch.place(other, first, end);
  kernelsOver(scratch)[operation](bitsAt - first, otherAt - first, from, to);
  scratch.copyOut(bitsAt, bits, first, end - first);
}

/** The bytes of the 64-bit words that contain the rows [from, to): the first, and the end. */
function bytesOfRows(bits: Uint8Array, from: number, to: number): [first: number, end: number] {
  return [(from >> 6) << 3, Math.min(bits.length, (to + 7) >> 3)];
}

/** The number of set rows in [from, to). */
export function countRange(bits: Uint8Array, from: number, to: number): number {
  if (from >= to) return 0;
  const [first, end] = bytesOfRows(bits, from, to);
  const scratch = openScratch(scratchBytes(bits, end - first));
  return kernelsOver(scratch).countRange(scratch.place(bits, first, end) - first, from, to);
}

/**
 * Writes the set rows of [from, to), ascending, to `rows` from index `at` on. `rows` must have room for them. Returns the index after the
 * last.
 */
export function listRange(
  bits: Uint8Array,
  from: number,
  to: number,
  rows: Uint16Array | Uint32Array,
  at: number,
): number {
  if (from >= to) return at;
  const [first, end] = bytesOfRows(bits, from, to);
  const room = Math.min(rows.length - at, to - from);
  const scratch = openScratch(scratchBytes(bits, end - first) + scratchBytes(rows, room));
  const rowsAt = scratch.target(rows, at, room);
  const bitsAt = scratch.place(bits, first, end) - first;
  const kernels = kernelsOver(scratch);
  const listed =
    rows instanceof Uint16Array
      ? kernels.listRange16(bitsAt, from, to, room, rowsAt)
      : kernels.listRange32(bitsAt, from, to, room, rowsAt);
  scratch.copyOut(rowsAt, rows, at, listed);
  return at + listed;
}

/** Writes one byte for each of the first `count` bits: 1 where it is set, else 0. */
export function spreadBits(bits: Uint8Array, count: number, bytes: Uint8Array): void {
  const bitsBytes = (count + 7) >> 3;
  const scratch = openScratch(scratchBytes(bits, bitsBytes) + count);
  const bytesAt = scratch.reserve(count);
  kernelsOver(scratch).spreadBits(scratch.place(bits, 0, bitsBytes), count, bytesAt);
  scratch.copyOut(bytesAt, bytes, 0, count);
}
