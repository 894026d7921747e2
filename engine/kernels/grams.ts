/**
 * Hashed bitmaps of the grams (runs of 4 to 6 bytes) and trigrams in strings whose case is folded. The high bits of a
 * hash choose the bit, so that a bitmap of half the size is the union of each two neighbouring bits.
 */
import { openScratch, scratchBytes } from '../memory/scratch.js';
import { kernelsOver } from './kernels.js';

const lastPrime = 0x9e3779b1 | 0;
const olderPrime = 0x85ebca6b | 0;
const finalPrime = 0xc2b2ae35 | 0;

/** A bitmap of trigrams has 2^16 bits when it is built. Common text has some ten thousand; 8 KiB of them are read in two pieces. */
export const trigramBits = 16;

/** Bit of a gram in a bitmap of 2^bits bits: `last` has its last four bytes (the newest on top), `older` the ones before. */
function gramBit(last: number, older: number, bits: number): number {
  const mixed = Math.imul(last, lastPrime) ^ Math.imul(older, olderPrime);
  return Math.imul(mixed ^ (mixed >>> 15), finalPrime) >>> (32 - bits);
}

function trigramBit(last: number, bits: number): number {
  return Math.imul(last >>> 8, lastPrime) >>> (32 - bits);
}

/** Lower case for ASCII, everything else as it is. */
const asciiFolds = Uint8Array.from({ length: 256 }, (_, byte) =>
  byte >= 0x41 && byte <= 0x5a ? byte | 0x20 : byte,
);

/**
 * Sets the bits of all grams of `gramBytes` bytes (4 to 6) and of all trigrams in the strings of rows [from, to). ASCII
 * letters are folded here; the case of other characters must be folded already. Grams never span two rows.
 */
export function addGrams(
  bytes: Uint8Array,
  offsets: Uint32Array,
  from: number,
  to: number,
  gramBytes: number,
  gramBits: number,
  grams: Int32Array,
  trigrams: Int32Array,
): void {
  const start = offsets[from]!;
  const length = offsets[to]! - start;
  const scratch = openScratch(length + (to - from + 1) * 4 + grams.byteLength + trigrams.byteLength * 9);
  const kernels = kernelsOver(scratch);
  // What lies in the kernels' memory stays as it is; a copy is folded where it lies.
  const isHeld = scratchBytes(bytes, length) === 0;
  const sourceAt = isHeld
    ? scratch.place(bytes, start, start + length)
    : scratch.copy(bytes, start, start + length);
  const bytesAt = isHeld ? scratch.reserve(length) : sourceAt;
  const offsetsAt = scratch.place(offsets, from, to + 1);
  const gramsAt = scratch.copy(grams, 0, grams.length);
  const trigramsAt = scratch.copy(trigrams, 0, trigrams.length);
  const mapAt = scratch.reserveZeros(2 ** trigramBits);
  kernels.foldAscii(sourceAt, length, bytesAt);
  // Offsets stay as they are: the address that they count from is that of the text they belong to.
  kernels.addGrams(bytesAt - start, offsetsAt, to - from, gramBytes, 32 - gramBits, gramsAt, mapAt);
  kernels.addMap(mapAt, trigramBits, trigramsAt);
  scratch.copyOut(gramsAt, grams, 0, grams.length);
  scratch.copyOut(trigramsAt, trigrams, 0, trigrams.length);
}

/** Bits of the grams of `gramBytes` bytes (3 for trigrams) in a folded needle, in their order. */
export function needleBits(needle: Uint8Array, gramBytes: number, bits: number): number[] {
  const found: number[] = [];
  let last = 0;
  let older = 0;
  for (let i = 0; i < needle.length; i++) {
    older = (older >>> 8) | ((last & 255) << 8);
    last = (last >>> 8) | (asciiFolds[needle[i]!]! << 24);
    if (i + 1 < gramBytes) continue;
    found.push(
      gramBytes === 3 ? trigramBit(last, bits) : gramBit(last, older >>> ((6 - gramBytes) * 8), bits),
    );
  }
  return found;
}

/** Whether no byte is beyond ASCII. */
export function isAscii(bytes: Uint8Array): boolean {
  const { length } = bytes;
  const scratch = openScratch(scratchBytes(bytes, length));
  return kernelsOver(scratch).isAscii(scratch.place(bytes, 0, length), length) !== 0;
}

/**
 * Makes `half` the bitmap of half the size: each of its bits is set when one of two neighbours is. `bitmap` has a multiple of four words.
 * Returns how many bits of the half are set.
 */
export function halveBitmap(bitmap: Int32Array, half: Int32Array): number {
  const scratch = openScratch(scratchBytes(bitmap, bitmap.length) + scratchBytes(half, half.length));
  const bitmapAt = scratch.place(bitmap, 0, bitmap.length);
  const halfAt = scratch.target(half, 0, half.length);
  const ones = kernelsOver(scratch).halveBitmap(bitmapAt, bitmap.byteLength, halfAt);
  scratch.copyOut(halfAt, half, 0, half.length);
  return ones;
}
