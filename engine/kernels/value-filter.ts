import { openScratch, scratchBytes } from '../core/scratch.js';
import { kernelsOver } from './kernels.js';

/** Bytes of a block of either filter, which has 256 bits. */
export const filterBlockBytes = 32;

/** Approximate size of the slices in which strings are hashed, where they have to be copied to the kernels' memory. */
const copiedBytesMax = 256 * 1024;
/**
 * The bitmap that estimates the number of distinct values has 2^20 bits: 16 for each row of a full row group, so that few hashes share a
 * bit.
 */
const markBits = 20;

/** The XXH64 hash (seed 0) of each string, as low half and high half. */
export function hashStrings(bytes: Uint8Array, offsets: Uint32Array, count: number): Uint32Array {
  const hashes = new Uint32Array(2 * count);
  for (let from = 0; from < count;) {
    const to = sliceEnd(bytes, offsets, from, count);
    const start = offsets[from]!;
    const sizeBytes = scratchBytes(bytes, offsets[to]! - start) + scratchBytes(offsets, to - from + 1);
    const scratch = openScratch(sizeBytes + (to - from) * 8);
    const bytesAt = scratch.place(bytes, start, offsets[to]!);
    const offsetsAt = scratch.place(offsets, from, to + 1);
    const hashesAt = scratch.reserve((to - from) * 8);
    // The offsets are not adjusted. Instead the kernel gets the address that offset 0 would have.
    kernelsOver(scratch).hashStrings(bytesAt - start, offsetsAt, to - from, hashesAt);
    scratch.copyOut(hashesAt, hashes, 2 * from, 2 * (to - from));
    from = to;
  }
  return hashes;
}

/** The end of the slice of strings that begins at `from`. A slice has at least one string. */
function sliceEnd(bytes: Uint8Array, offsets: Uint32Array, from: number, count: number): number {
  if (scratchBytes(bytes, 1) === 0) return count;
  let to = from + 1;
  while (to < count && offsets[to + 1]! - offsets[from]! <= copiedBytesMax) to++;
  return to;
}

/** The XXH64 hash (seed 0) of the eight bytes of each integer, as low half and high half. */
export function hashIntegers(values: BigInt64Array, count: number): Uint32Array {
  const hashes = new Uint32Array(2 * count);
  const scratch = openScratch(scratchBytes(values, count) + count * 8);
  const valuesAt = scratch.place(values, 0, count);
  const hashesAt = scratch.reserve(count * 8);
  kernelsOver(scratch).hashIntegers(valuesAt, count, hashesAt);
  scratch.copyOut(hashesAt, hashes, 0, 2 * count);
  return hashes;
}

/** Estimates the number of distinct hashes by linear counting. For the rows of a row group the error is within 1 %. */
export function distinctHashes(hashes: Uint32Array): number {
  const bitmapBytes = 2 ** (markBits - 3);
  const scratch = openScratch(hashes.byteLength + bitmapBytes);
  const hashesAt = scratch.place(hashes, 0, hashes.length);
  const bitmapAt = scratch.reserveZeros(bitmapBytes);
  const kernels = kernelsOver(scratch);
  kernels.markHashes(hashesAt, hashes.length / 2, markBits, bitmapAt);
  const marked = kernels.countRange(bitmapAt, 0, 2 ** markBits);
  return Math.round(-Math.log(1 - marked / 2 ** markBits) * 2 ** markBits);
}

/** Adds hashes to a split-block Bloom filter. The length of `blocks` must be a multiple of `filterBlockBytes`. */
export function addToBlocks(hashes: Uint32Array, blocks: Uint8Array): void {
  addHashes('addToBlocks', hashes, blocks);
}

/** Adds hashes to a sketch: each sets three bits of one block. The length of `blocks` must be a multiple of `filterBlockBytes`. */
export function addToSketch(hashes: Uint32Array, blocks: Uint8Array): void {
  addHashes('addToSketch', hashes, blocks);
}

function addHashes(kernel: 'addToBlocks' | 'addToSketch', hashes: Uint32Array, blocks: Uint8Array): void {
  const scratch = openScratch(hashes.byteLength + blocks.length);
  const hashesAt = scratch.place(hashes, 0, hashes.length);
  const blocksAt = scratch.copy(blocks, 0, blocks.length);
  kernelsOver(scratch)[kernel](hashesAt, hashes.length / 2, blocksAt, blocks.length / filterBlockBytes);
  scratch.copyOut(blocksAt, blocks, 0, blocks.length);
}
