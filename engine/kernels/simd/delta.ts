import * as plain from '../delta.js';
import { openScratch, scratchBytes } from '../../memory/scratch.js';
import { kernelsOver } from '../kernels.js';

/** Below this many values a call and its copies cost more than the plain twin. */
const kernelValuesMin = 64;
/** Bytes of the deltas of a block. */
const deltasBytes = 128 * 8;

/** Four numbers of ten bytes: more than our writer takes, but nobody says that they are as short as can be. */
const headerBytesMax = 40;

/** As the twin. */
export function encodeDelta(values: BigInt64Array, count: number, target: Uint8Array, at: number): number {
  const bytesMax = plain.deltaBytesMax(count);
  const scratch =
    count < kernelValuesMin ? null : openScratch(scratchBytes(values, count) + bytesMax + deltasBytes);
  if (scratch === null) return plain.encodeDelta(values, count, target, at);
  const valuesAt = scratch.place(values, 0, count);
  const targetAt = scratch.room(bytesMax);
  const written = kernelsOver(scratch).encodeDelta(valuesAt, count, targetAt, scratch.room(deltasBytes));
  scratch.take(targetAt, target, at, written);
  return at + written;
}

/** As the twin. */
export function decodeDelta(source: Uint8Array, at: number, values: BigInt64Array, count: number): number {
  // The deltas of strings' lengths stand before the strings, which need not be copied.
  const end = Math.min(source.length, at + headerBytesMax + plain.deltaBytesMax(count));
  const scratch =
    count < kernelValuesMin
      ? null
      : openScratch(scratchBytes(values, count) + scratchBytes(source, end - at));
  if (scratch === null) return plain.decodeDelta(source, at, values, count);
  const valuesAt = scratch.target(values, 0, count);
  const sourceAt = scratch.place(source, at, end);
  const read = kernelsOver(scratch).decodeDelta(sourceAt, end - at, valuesAt, count);
  if (read < 0) return -1;
  scratch.take(valuesAt, values, 0, count);
  return at + read;
}

/** As the twin. */
export function decodeLengths(source: Uint8Array, count: number, offsets: Uint32Array): number {
  // The strings behind the lengths need not be copied.
  const deltaEnd = Math.min(source.length, headerBytesMax + plain.deltaBytesMax(count));
  const scratch =
    count < kernelValuesMin
      ? null
      : openScratch(count * 8 + scratchBytes(source, deltaEnd) + scratchBytes(offsets, count + 1));
  if (scratch === null) return plain.decodeLengths(source, count, offsets);
  const lengthsAt = scratch.room(count * 8);
  const offsetsAt = scratch.target(offsets, 0, count + 1);
  const bytesAt = kernelsOver(scratch).decodeDelta(
    scratch.place(source, 0, deltaEnd),
    deltaEnd,
    lengthsAt,
    count,
  );
  if (bytesAt < 0) return -1;
  if (kernelsOver(scratch).addLengths(lengthsAt, count, source.length - bytesAt, offsetsAt) === 0) return -1;
  scratch.take(offsetsAt, offsets, 0, count + 1);
  return bytesAt;
}
