/**
 * Which strings a dictionary may have: a bitmap in which each sets two bits (a Bloom filter: Bloom 1970, "Space/time trade-offs in hash
 * coding with allowable errors").
 */
import { openScratch, scratchBytes } from '../memory/scratch.js';
import { kernelsOver } from './kernels.js';

/** Bits for each entry, at least; of a bitmap that has no more, one string in twenty that is not there passes. */
const bitsOfEntry = 8;

/** What a hash is shifted by, so that it is the place of a bit in the bitmap for this many entries. */
export function entryFilterShift(entries: number): number {
  return Math.clz32(Math.max(8, entries * bitsOfEntry) - 1);
}

/** Bytes of a bitmap with this shift. */
export function entryFilterBytes(shift: number): number {
  return 2 ** (32 - shift) / 8;
}

/** Four bytes of [start, end) from `at` on, the first in the lowest; those outside count as 0. */
function wordAt(bytes: Uint8Array, at: number, end: number): number {
  let word = 0;
  for (let i = 0; i < 4 && at + i < end; i++) word |= bytes[at + i]! << (8 * i);
  return word;
}

/** A hash of 32 bits of the string's length and of its last sixteen bytes, or of its first and last eight where it is shorter. */
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

/** Sets the bits of the first `entries` strings in a bitmap that is as large as `shift` says. */
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
  // The bits are read as well as written: where they don't lie in the memory, a copy goes in and comes back.
  const bitmapAt = scratch.place(bitmap, 0, bitmap.length);
  kernelsOver(scratch).addEntries(bytesAt, offsetsAt, entries, shift, bitmapAt);
  scratch.copyOut(bitmapAt, bitmap, 0, bitmap.length);
}

/** Whether a string of this hash may be among those that were added: false only when it is not. */
export function mayHaveEntry(hash: number, shift: number, bitmap: Uint8Array): boolean {
  const first = hash >>> shift;
  const second = secondHash(hash) >>> shift;
  return ((bitmap[first >>> 3]! >> (first & 7)) & (bitmap[second >>> 3]! >> (second & 7)) & 1) === 1;
}
