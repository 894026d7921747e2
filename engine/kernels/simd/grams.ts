import * as plain from '../grams.js';
import { openScratch, scratchBytes } from '../../memory/scratch.js';
import { kernelsOver } from '../kernels.js';

/** Below this a call and the copies of the bitmaps cost more than the plain twin. */
const kernelBytesMin = 4096;

/** As the twin. */
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
  const scratch =
    length < kernelBytesMin
      ? null
      : openScratch(length + (to - from + 1) * 4 + grams.byteLength + trigrams.byteLength * 9);
  if (scratch === null) {
    plain.addGrams(bytes, offsets, from, to, gramBytes, gramBits, grams, trigrams);
    return;
  }
  const kernels = kernelsOver(scratch);
  // What lies in the kernels' memory stays as it is; a copy is folded where it lies.
  const isHeld = scratchBytes(bytes, length) === 0;
  const sourceAt = isHeld
    ? scratch.place(bytes, start, start + length)
    : scratch.copy(bytes, start, start + length);
  const bytesAt = isHeld ? scratch.room(length) : sourceAt;
  const offsetsAt = scratch.place(offsets, from, to + 1);
  const gramsAt = scratch.copy(grams, 0, grams.length);
  const trigramsAt = scratch.copy(trigrams, 0, trigrams.length);
  const mapAt = scratch.clear(2 ** plain.trigramBits);
  kernels.foldAscii(sourceAt, length, bytesAt);
  // Offsets stay as they are: the address that they count from is that of the text they belong to.
  kernels.addGrams(bytesAt - start, offsetsAt, to - from, gramBytes, 32 - gramBits, gramsAt, mapAt);
  kernels.addMap(mapAt, plain.trigramBits, trigramsAt);
  scratch.take(gramsAt, grams, 0, grams.length);
  scratch.take(trigramsAt, trigrams, 0, trigrams.length);
}

/** As the twin. */
export function isAscii(bytes: Uint8Array): boolean {
  const { length } = bytes;
  const scratch = length < kernelBytesMin ? null : openScratch(scratchBytes(bytes, length));
  if (scratch === null) return plain.isAscii(bytes);
  return kernelsOver(scratch).isAscii(scratch.place(bytes, 0, length), length) !== 0;
}

/** As the twin. */
export function halveBitmap(bitmap: Int32Array, half: Int32Array): number {
  const scratch =
    bitmap.byteLength < kernelBytesMin ? null : openScratch(bitmap.byteLength + half.byteLength);
  if (scratch === null) return plain.halveBitmap(bitmap, half);
  const bitmapAt = scratch.place(bitmap, 0, bitmap.length);
  const halfAt = scratch.target(half, 0, half.length);
  const ones = kernelsOver(scratch).halveBitmap(bitmapAt, bitmap.byteLength, halfAt);
  scratch.take(halfAt, half, 0, half.length);
  return ones;
}
