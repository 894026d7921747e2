import { trigramBits } from '../../../engine/kernels/grams.js';

/**
 * Hashed bitmaps of the grams (runs of 4 to 6 bytes) and trigrams in strings whose case is folded. The high bits of a
 * hash choose the bit, so that a bitmap of half the size is the union of each two neighbouring bits.
 */

const lastPrime = 0x9e3779b1 | 0;
const olderPrime = 0x85ebca6b | 0;
const finalPrime = 0xc2b2ae35 | 0;

/** Bit of a gram in a bitmap of 2^bits bits: `last` has its last four bytes (the newest on top), `older` the ones before. */
function gramBit(last: number, older: number, bits: number): number {
  const mixed = Math.imul(last, lastPrime) ^ Math.imul(older, olderPrime);
  return Math.imul(mixed ^ (mixed >>> 15), finalPrime) >>> (32 - bits);
}

function trigramBit(last: number, bits: number): number {
  return Math.imul(last >>> 8, lastPrime) >>> (32 - bits);
}

/** Lower case for ASCII; all other bytes unchanged. */
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
  const olderShift = (6 - gramBytes) * 8;
  for (let row = from; row < to; row++) {
    const start = offsets[row]!;
    const end = offsets[row + 1]!;
    let last = 0;
    let older = 0;
    let i = start;
    for (const warmUpEnd = Math.min(end, start + gramBytes - 1); i < warmUpEnd; i++) {
      older = (older >>> 8) | ((last & 255) << 8);
      last = (last >>> 8) | (asciiFolds[bytes[i]!]! << 24);
      if (i >= start + 2) {
        const trigram = trigramBit(last, trigramBits);
        trigrams[trigram >>> 5]! |= 1 << (trigram & 31);
      }
    }
    for (; i < end; i++) {
      older = (older >>> 8) | ((last & 255) << 8);
      last = (last >>> 8) | (asciiFolds[bytes[i]!]! << 24);
      const trigram = trigramBit(last, trigramBits);
      trigrams[trigram >>> 5]! |= 1 << (trigram & 31);
      const gram = gramBit(last, older >>> olderShift, gramBits);
      grams[gram >>> 5]! |= 1 << (gram & 31);
    }
  }
}

/** Writes the bitmap of half the size to `half`: each bit is set if one of two neighbours is. Returns the number of set bits. */
export function halveBitmap(bitmap: Int32Array, half: Int32Array): number {
  for (let i = 0; i < half.length; i++) half[i] = pairs(bitmap[2 * i]!) | (pairs(bitmap[2 * i + 1]!) << 16);
  return countBits(half);
}

/** The union of each two neighbouring bits, in the low 16 bits. */
function pairs(word: number): number {
  let bits = (word | (word >>> 1)) & 0x55555555;
  bits = (bits | (bits >>> 1)) & 0x33333333;
  bits = (bits | (bits >>> 2)) & 0x0f0f0f0f;
  bits = (bits | (bits >>> 4)) & 0x00ff00ff;
  return (bits | (bits >>> 8)) & 0xffff;
}

/** Number of set bits. */
function countBits(bitmap: Int32Array): number {
  let ones = 0;
  for (let i = 0; i < bitmap.length; i++) {
    let word = bitmap[i]!;
    word -= (word >>> 1) & 0x55555555;
    word = (word & 0x33333333) + ((word >>> 2) & 0x33333333);
    ones += Math.imul((word + (word >>> 4)) & 0x0f0f0f0f, 0x01010101) >>> 24;
  }
  return ones;
}
