import * as plain from '../bit-packing.js';
import { openScratch, scratchBytes } from '../../memory/scratch.js';
import { kernelsOver } from '../kernels.js';

/** Below this many codes a call and its copies cost more than the plain twin. */
const kernelCodesMin = 256;

/** As the twin. */
export function packCodes(
  codes: Uint8Array | Uint16Array,
  count: number,
  width: number,
  target: Uint8Array,
  at: number,
): number {
  const bytes = Math.ceil(count / 8) * width;
  const codeBytes = codes.BYTES_PER_ELEMENT;
  const scratch = count < kernelCodesMin ? null : openScratch(scratchBytes(codes, count) + bytes);
  if (scratch === null) return plain.packCodes(codes, count, width, target, at);
  const targetAt = scratch.target(target, at, bytes);
  kernelsOver(scratch).packCodes(scratch.place(codes, 0, count), codeBytes, count, width, targetAt);
  scratch.take(targetAt, target, at, bytes);
  return at + bytes;
}

/** As the twin. */
export function unpackCodes(
  source: Uint8Array,
  at: number,
  count: number,
  width: number,
  target: Uint8Array | Uint16Array,
  to: number,
): void {
  const bytes = Math.ceil((count * width) / 8);
  const codeBytes = target.BYTES_PER_ELEMENT;
  const isKernels = count >= kernelCodesMin && (codeBytes === 2 || width <= 8);
  const scratch = isKernels
    ? openScratch(scratchBytes(source, bytes) + scratchBytes(target, count) + 64)
    : null;
  if (scratch === null) {
    plain.unpackCodes(source, at, count, width, target, to);
    return;
  }
  const sourceAt = scratch.place(source, at, at + bytes);
  const targetAt = scratch.target(target, to, count);
  const windows = scratch.room(64);
  if (codeBytes === 1) kernelsOver(scratch).unpackCodes8(sourceAt, count, width, targetAt, windows);
  else kernelsOver(scratch).unpackCodes16(sourceAt, count, width, targetAt, windows);
  scratch.take(targetAt, target, to, count);
}

/** As the twin. */
export function largestCode(codes: Uint8Array | Uint16Array, count: number): number {
  const scratch = count < kernelCodesMin ? null : openScratch(scratchBytes(codes, count));
  if (scratch === null) return plain.largestCode(codes, count);
  return kernelsOver(scratch).largestCode(scratch.place(codes, 0, count), codes.BYTES_PER_ELEMENT, count);
}
