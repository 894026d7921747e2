import * as plain from '../lz4.js';
import { openScratch, scratchBytes } from '../../memory/scratch.js';
import { kernelsOver } from '../kernels.js';

/** Below this a call and its copies cost more than the plain twin. */
const kernelBytesMin = 256;

/** As the twin's, but for which of the possible blocks is written. */
export function lz4Compress(source: Uint8Array, target: Uint8Array, table: Int32Array): number {
  const length = source.length;
  const bytesMax = plain.lz4BytesMax(length);
  const scratch =
    length < kernelBytesMin
      ? null
      : openScratch(
          scratchBytes(source, length) + scratchBytes(target, bytesMax) + plain.lz4TableEntries * 4,
        );
  if (scratch === null) return plain.lz4Compress(source, target, table);
  const kernels = kernelsOver(scratch);
  const targetAt = scratch.target(target, 0, bytesMax);
  const written = kernels.lz4Compress(
    scratch.place(source, 0, length),
    length,
    targetAt,
    scratch.room(kernels.lz4TableBytes()),
  );
  scratch.take(targetAt, target, 0, written);
  return written;
}

/** As the twin. */
export function lz4Decompress(source: Uint8Array, target: Uint8Array, length: number): number {
  const scratch =
    length < kernelBytesMin
      ? null
      : openScratch(scratchBytes(source, source.length) + scratchBytes(target, length));
  if (scratch === null) return plain.lz4Decompress(source, target, length);
  const targetAt = scratch.target(target, 0, length);
  const sourceAt = scratch.place(source, 0, source.length);
  const written = kernelsOver(scratch).lz4Decompress(sourceAt, source.length, targetAt, length);
  if (written > 0) scratch.take(targetAt, target, 0, written);
  return written;
}
