/**
 * Hashed bitmaps of the n-grams (runs of 4 to 6 bytes) and trigrams in case-folded strings. The high bits of a hash are the index of its
 * bit. So a bitmap of half the size is made by OR-ing each two neighbouring bits.
 */
import { openScratch, scratchBytes } from '../core/scratch.js';
import { foldCodePoint, foldEnd } from '../core/fold.js';
import { kernelsOver } from './kernels.js';
import { asciiFold } from './substring.js';

const lastPrime = 0x9e3779b1 | 0;
const olderPrime = 0x85ebca6b | 0;
const finalPrime = 0xc2b2ae35 | 0;

/** A bitmap of trigrams is built with 2^16 bits, which is 8 KiB and read in two pieces. Common text has some ten thousand trigrams. */
export const trigramBits = 16;

/**
 * Index of an n-gram's bit in a bitmap of 2^bits bits. `last` has its last four bytes, the very last one in the high byte; `older` has the
 * bytes before.
 */
function gramBit(last: number, older: number, bits: number): number {
  const mixed = Math.imul(last, lastPrime) ^ Math.imul(older, olderPrime);
  return Math.imul(mixed ^ (mixed >>> 15), finalPrime) >>> (32 - bits);
}

function trigramBit(last: number, bits: number): number {
  return Math.imul(last >>> 8, lastPrime) >>> (32 - bits);
}

/**
 * Sets the bits of all n-grams of `gramBytes` bytes (4 to 6) and of all trigrams in the strings of the rows [from, to). ASCII letters are
 * folded here; other letters must be folded already. An n-gram never spans two rows.
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
  // Bytes in the kernels' memory must not be changed, so they are folded into a buffer. A copy is folded in place.
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
  // The offsets are not adjusted. Instead the kernel gets the address that offset 0 would have.
  kernels.addGrams(bytesAt - start, offsetsAt, to - from, gramBytes, 32 - gramBits, gramsAt, mapAt);
  kernels.addMap(mapAt, trigramBits, trigramsAt);
  scratch.copyOut(gramsAt, grams, 0, grams.length);
  scratch.copyOut(trigramsAt, trigrams, 0, trigrams.length);
}

/** Indices of the bits of the n-grams of `gramBytes` bytes (3 for trigrams) in a folded needle, in their order. */
export function needleBits(needle: Uint8Array, gramBytes: number, bits: number): number[] {
  const found: number[] = [];
  let last = 0;
  let older = 0;
  for (let i = 0; i < needle.length; i++) {
    older = (older >>> 8) | ((last & 255) << 8);
    last = (last >>> 8) | (asciiFold[needle[i]!]! << 24);
    if (i + 1 < gramBytes) continue;
    found.push(
      gramBytes === 3 ? trigramBit(last, bits) : gramBit(last, older >>> ((6 - gramBytes) * 8), bits),
    );
  }
  return found;
}

/** Whether all bytes are ASCII. */
export function isAscii(bytes: Uint8Array): boolean {
  const { length } = bytes;
  const scratch = openScratch(scratchBytes(bytes, length));
  return kernelsOver(scratch).isAscii(scratch.place(bytes, 0, length), length) !== 0;
}

/** A table of the folded forms of code points, in pages of this many. */
const pagePoints = 64;

interface FoldTable {
  /** For each page of code points up to the last that folds, the number of its page in `folded`; 0 if none of its code points folds. */
  readonly pageOf: Uint8Array;
  /** The folded forms of the code points of each page. Page 0 is empty. */
  readonly folded: Uint32Array;
}

/** Made on first use, because most processes only see ASCII. */
let foldTable: FoldTable | undefined;

function makeFoldTable(): FoldTable {
  const pageOf = new Uint8Array(Math.ceil(foldEnd / pagePoints));
  const folded: number[] = new Array<number>(pagePoints).fill(0);
  for (let page = 0; page < pageOf.length; page++) {
    const points = Array.from({ length: pagePoints }, (_, i) => page * pagePoints + i);
    if (points.every((point) => foldCodePoint(point) === point)) continue;
    pageOf[page] = folded.length / pagePoints;
    folded.push(...points.map(foldCodePoint));
  }
  return { pageOf, folded: Uint32Array.from(folded) };
}

/**
 * Copies UTF-8 to `target`, which must have room for as many bytes, and folds all characters except ASCII in place. Returns false, with
 * any bytes in `target`, where folding would change the length of a character, which is rare.
 */
export function foldBeyondAscii(source: Uint8Array, target: Uint8Array): boolean {
  const { length } = source;
  const { pageOf, folded } = (foldTable ??= makeFoldTable());
  const copied = scratchBytes(source, length) + scratchBytes(target, length);
  const scratch = openScratch(copied + pageOf.length + folded.byteLength);
  const sourceAt = scratch.place(source, 0, length);
  const targetAt = scratch.target(target, 0, length);
  const pageOfAt = scratch.copy(pageOf, 0, pageOf.length);
  const foldedAt = scratch.copy(folded, 0, folded.length);
  const kernels = kernelsOver(scratch);
  const points = pageOf.length * pagePoints;
  if (kernels.foldBeyondAscii(sourceAt, length, targetAt, pageOfAt, foldedAt, points) === 0) return false;
  scratch.copyOut(targetAt, target, 0, length);
  return true;
}

/**
 * Writes the bitmap of half the size to `half`: each bit is the OR of two neighbours in `bitmap`, whose length must be a multiple of four.
 * Returns the number of set bits in `half`.
 */
export function halveBitmap(bitmap: Int32Array, half: Int32Array): number {
  const scratch = openScratch(scratchBytes(bitmap, bitmap.length) + scratchBytes(half, half.length));
  const bitmapAt = scratch.place(bitmap, 0, bitmap.length);
  const halfAt = scratch.target(half, 0, half.length);
  const ones = kernelsOver(scratch).halveBitmap(bitmapAt, bitmap.byteLength, halfAt);
  scratch.copyOut(halfAt, half, 0, half.length);
  return ones;
}

/**
 * Index of the bit in a bitmap of `eighths` eighths of the size that stands for bit `bit` of the whole bitmap. Of each eight bits of the
 * whole, some share a bit.
 */
export function squeezedBit(bit: number, eighths: number): number {
  return Math.floor((bit * eighths) / 8);
}

/**
 * A bitmap of `eighths` eighths of the size (5 to 7). Each of its bits stands for one or two bits of the whole, and is the OR of them. The
 * length of `bitmap` must be a multiple of eight.
 */
export function squeezeBitmap(bitmap: Int32Array, eighths: number): Int32Array {
  const squeezed = new Int32Array((bitmap.length * eighths) / 8);
  const scratch = openScratch(scratchBytes(bitmap, bitmap.length) + squeezed.byteLength + 256);
  const bitmapAt = scratch.place(bitmap, 0, bitmap.length);
  const tableAt = scratch.copy(squeezedBytes(eighths), 0, 256);
  const squeezedAt = scratch.reserve(squeezed.byteLength);
  kernelsOver(scratch).squeezeBitmap(bitmapAt, bitmap.byteLength, eighths, tableAt, squeezedAt);
  scratch.copyOut(squeezedAt, squeezed, 0, squeezed.length);
  return squeezed;
}

/** A table: for each value of a byte of the whole bitmap, the `eighths` bits that it becomes. */
function squeezedBytes(eighths: number): Uint8Array {
  return Uint8Array.from({ length: 256 }, (_, byte) => {
    let bits = 0;
    for (let bit = 0; bit < 8; bit++) if (byte & (1 << bit)) bits |= 1 << squeezedBit(bit, eighths);
    return bits;
  });
}
