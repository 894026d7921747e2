/**
 * A filter for the strings of a dictionary: a bitmap in which each string sets two bits (a Bloom filter: Bloom 1970, "Space/time trade-offs
 * in hash coding with allowable errors").
 */
import { openScratch, scratchBytes } from '../core/scratch.js';
import { kernelsOver } from './kernels.js';

/** Minimum bits per entry. With that many, about one in twenty strings that are not in the dictionary pass the filter. */
const bitsOfEntry = 8;

/** The shift that turns a 32-bit hash into the index of a bit, in the bitmap for this many entries. */
export function entryFilterShift(entries: number): number {
  return Math.clz32(Math.max(8, entries * bitsOfEntry) - 1);
}

/** Size in bytes of the bitmap for this shift. */
export function entryFilterBytes(shift: number): number {
  return 2 ** (32 - shift) / 8;
}

/** Four bytes of [start, end) from `at` on as a little-endian number. Bytes after `end` count as 0. */
function wordAt(bytes: Uint8Array, at: number, end: number): number {
  let word = 0;
  for (let i = 0; i < 4 && at + i < end; i++) word |= bytes[at + i]! << (8 * i);
  return word;
}

/** A 32-bit hash of a string's length and its last sixteen bytes, or, for a shorter string, its first and last eight bytes. */
export function entryHash(bytes: Uint8Array, start: number, end: number): number {
  const length = end - start;
  const first = length >= 16 ? end - 16 : start;
  const last = length >= 8 ? end - 8 : end;
  const product =
    Math.imul(wordAt(bytes, first, end), 0x9e3779b1) ^
    Math.imul(wordAt(bytes, first + 4, end), 0x85ebca77) ^
    Math.imul(wordAt(bytes, last, end), 0xc2b2ae3d) ^
    Math.imul(wordAt(bytes, last + 4, end), 0x27d4eb2f) ^
    Math.imul(length, 0x165667b1);
  return Math.imul(product ^ (product >>> 15), 0x85ebca6b) >>> 0;
}

function secondHash(hash: number): number {
  return Math.imul(hash ^ (hash >>> 13), 0x9e3779b1) >>> 0;
}

/** Sets the bits of the first `entries` strings in a bitmap of `entryFilterBytes(shift)` bytes. */
export function addEntries(
  offsets: Uint32Array,
  bytes: Uint8Array,
  entries: number,
  shift: number,
  bitmap: Uint8Array,
): void {
  const start = offsets[0]!;
  const end = offsets[entries]!;
  const scratch = openScratch(
    scratchBytes(bytes, end - start) +
      scratchBytes(offsets, entries + 1) +
      scratchBytes(bitmap, bitmap.length),
  );
  const bytesAt = scratch.place(bytes, start, end) - start;
  const offsetsAt = scratch.place(offsets, 0, entries + 1);
  // `bitmap` is read as well as written. Where it is not in the kernels' memory, `place` copies it in and `copyOut` copies it back.
  const bitmapAt = scratch.place(bitmap, 0, bitmap.length);
  kernelsOver(scratch).addEntries(bytesAt, offsetsAt, entries, shift, bitmapAt);
  scratch.copyOut(bitmapAt, bitmap, 0, bitmap.length);
}

/** Whether a string with this hash may be among those that were added; false only where it is not. */
export function mayHaveEntry(hash: number, shift: number, bitmap: Uint8Array): boolean {
  const first = hash >>> shift;
  const second = secondHash(hash) >>> shift;
  return ((bitmap[first >>> 3]! >> (first & 7)) & (bitmap[second >>> 3]! >> (second & 7)) & 1) === 1;
}
