import * as plain from '../plain-strings.js';
import { openScratch, scratchBytes } from '../../memory/scratch.js';
import { kernelsOver } from '../kernels.js';

/** Below this many rows a call and its copies cost more than the plain twin. */
const kernelRowsMin = 64;

/** As the twin. */
export function encodePlainStrings(
  bytes: Uint8Array,
  offsets: Uint32Array,
  rows: number,
  target: Uint8Array,
): number {
  const start = offsets[0]!;
  const end = offsets[rows]!;
  const writtenBytes = end - start + rows * 4;
  const scratch =
    rows < kernelRowsMin
      ? null
      : openScratch(
          scratchBytes(bytes, end - start) +
            scratchBytes(offsets, rows + 1) +
            scratchBytes(target, writtenBytes),
        );
  if (scratch === null) return plain.encodePlainStrings(bytes, offsets, rows, target);
  const offsetsAt = scratch.place(offsets, 0, rows + 1);
  const bytesAt = scratch.place(bytes, start, end) - start;
  const targetAt = scratch.target(target, 0, writtenBytes);
  const written = kernelsOver(scratch).encodePlain(bytesAt, offsetsAt, rows, targetAt);
  scratch.take(targetAt, target, 0, written);
  return written;
}

/** As the twin. */
export function decodePlainStrings(
  source: Uint8Array,
  count: number,
  bytes: Uint8Array,
  offsets: Uint32Array,
): number {
  const bytesMax = Math.max(0, source.length - count * 4);
  const scratch =
    count < kernelRowsMin
      ? null
      : openScratch(
          scratchBytes(source, source.length) +
            scratchBytes(bytes, bytesMax) +
            scratchBytes(offsets, count + 1),
        );
  if (scratch === null) return plain.decodePlainStrings(source, count, bytes, offsets);
  const sourceAt = scratch.place(source, 0, source.length);
  const bytesAt = scratch.target(bytes, 0, bytesMax);
  const offsetsAt = scratch.target(offsets, 0, count + 1);
  const written = kernelsOver(scratch).decodePlain(sourceAt, source.length, count, bytesAt, offsetsAt);
  if (written < 0) return -1;
  scratch.take(bytesAt, bytes, 0, written);
  scratch.take(offsetsAt, offsets, 0, count + 1);
  return written;
}
