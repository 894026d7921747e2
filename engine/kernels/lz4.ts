/**
 * The LZ4 block format (https://github.com/lz4/lz4/blob/dev/doc/lz4_Block_format.md), which Parquet calls LZ4_RAW.
 */
import { openScratch, scratchBytes } from '../core/scratch.js';
import { kernelsOver } from './kernels.js';

/** Size of the kernel's hash table: two bytes per slot. */
const tableBytes = 2 * 2 ** 14;

/** Maximum bytes that `lz4Compress` writes for `length` bytes. */
export function lz4BytesMax(length: number): number {
  return length + Math.ceil(length / 255) + 16;
}

/** Compresses `source` into `target`, which needs room for `lz4BytesMax(source.length)` bytes. Returns the number of bytes written. */
export function lz4Compress(source: Uint8Array, target: Uint8Array): number {
  const { length } = source;
  const bytesMax = lz4BytesMax(length);
  const scratch = openScratch(scratchBytes(source, length) + scratchBytes(target, bytesMax) + tableBytes);
  const targetAt = scratch.target(target, 0, bytesMax);
  const sourceAt = scratch.place(source, 0, length);
  const written = kernelsOver(scratch).lz4Compress(sourceAt, length, targetAt, scratch.reserve(tableBytes));
  scratch.copyOut(targetAt, target, 0, written);
  return written;
}

/**
 * Decompresses `source` into target[0, length). Returns the number of bytes written, or -1 when the input is malformed or does not fit.
 * Never reads or writes outside either array.
 */
export function lz4Decompress(source: Uint8Array, target: Uint8Array, length: number): number {
  const scratch = openScratch(scratchBytes(source, source.length) + scratchBytes(target, length));
  const targetAt = scratch.target(target, 0, length);
  const sourceAt = scratch.place(source, 0, source.length);
  const written = kernelsOver(scratch).lz4Decompress(sourceAt, source.length, targetAt, length);
  if (written > 0) scratch.copyOut(targetAt, target, 0, written);
  return written;
}
