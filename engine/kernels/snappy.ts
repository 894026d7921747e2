/** The block format of Snappy (https://github.com/google/snappy/blob/main/format_description.txt), which Parquet calls SNAPPY. */
import { openScratch, scratchBytes } from '../core/scratch.js';
import { kernelsOver } from './kernels.js';

/**
 * Decompresses `source` into target[0, length), which it must fill exactly. Returns `length`, or -1 when the input is malformed or has
 * another length. Never reads or writes outside either array.
 */
export function snappyDecompress(source: Uint8Array, target: Uint8Array, length: number): number {
  const scratch = openScratch(scratchBytes(source, source.length) + scratchBytes(target, length));
  const targetAt = scratch.target(target, 0, length);
  const sourceAt = scratch.place(source, 0, source.length);
  const written = kernelsOver(scratch).snappyDecompress(sourceAt, source.length, targetAt, length);
  if (written > 0) scratch.copyOut(targetAt, target, 0, written);
  return written;
}
