/**
 * Converts numbers from the forms in which other programs store them in Parquet
 * (https://parquet.apache.org/docs/file-format/data-pages/encodings/) to 8-byte values. Functions that take an array of values change it in
 * place. `bits` has one bit per row, least significant bit first, 1 = present.
 */
import { openScratch, scratchBytes, type Scratch } from '../core/scratch.js';
import { kernelsOver, type Kernels } from './kernels.js';

type Values = BigInt64Array | Float64Array;

/** Calls a kernel that reads source[at, at + bytes) and writes `count` elements of `target`. */
function fromSource(
  source: Uint8Array,
  at: number,
  bytes: number,
  target: Values | Uint8Array,
  count: number,
  work: (kernels: Kernels, source: number, target: number) => void,
): void {
  const scratch = openScratch(scratchBytes(source, bytes) + scratchBytes(target, count));
  const targetAt = scratch.target(target, 0, count);
  work(kernelsOver(scratch), scratch.place(source, at, at + bytes), targetAt);
  scratch.copyOut(targetAt, target, 0, count);
}

/** Calls a kernel that changes all values, and the validity bits of some rows. */
function inPlace<T>(
  values: Values,
  bits: Uint8Array | null,
  work: (kernels: Kernels, values: number, bits: number) => T,
): T {
  const { length } = values;
  const bitsBytes = bits === null ? 0 : (length + 7) >> 3;
  const scratch: Scratch = openScratch(
    scratchBytes(values, length) + (bits === null ? 0 : scratchBytes(bits, bitsBytes)),
  );
  const valuesAt = scratch.place(values, 0, length);
  const bitsAt = bits === null ? 0 : scratch.place(bits, 0, bitsBytes);
  const result = work(kernelsOver(scratch), valuesAt, bitsAt);
  scratch.copyOut(valuesAt, values, 0, length);
  if (bits !== null) scratch.copyOut(bitsAt, bits, 0, bitsBytes);
  return result;
}

/** Reads `count` 32-bit integers from `source`, from offset `at` on, to the start of `target`. */
export function widenInt32(
  source: Uint8Array,
  at: number,
  count: number,
  target: BigInt64Array,
  isUnsigned: boolean,
): void {
  fromSource(source, at, count * 4, target, count, (kernels, from, to) =>
    kernels.widenInt32(from, count, to, Number(isUnsigned)),
  );
}

/** Reads `count` 32-bit floats from `source`, from offset `at` on, to the start of `target`. */
export function widenFloat32(source: Uint8Array, at: number, count: number, target: Float64Array): void {
  fromSource(source, at, count * 4, target, count, (kernels, from, to) =>
    kernels.widenFloat32(from, count, to),
  );
}

/** Reads `count` values of `width` bytes in BYTE_STREAM_SPLIT encoding from `source`, from offset `at` on, to the start of `target`. */
export function joinStreams(
  source: Uint8Array,
  at: number,
  count: number,
  width: number,
  target: Uint8Array,
): void {
  fromSource(source, at, count * width, target, count * width, (kernels, from, to) =>
    kernels.joinStreams(from, count, width, to),
  );
}

/** Reduces each integer to its low 32 bits, signed or unsigned. */
export function wrapInt32(values: BigInt64Array, isUnsigned: boolean): void {
  inPlace(values, null, (kernels, at) => kernels.wrapInt32(at, values.length, Number(isUnsigned)));
}

/** Divides each integer by a positive integer, rounding down. */
export function divideDown(values: BigInt64Array, divisor: number): void {
  inPlace(values, null, (kernels, at) => kernels.divideDown(at, values.length, BigInt(divisor)));
}

/**
 * Multiplies each integer by a positive integer. A row whose product does not fit in 64 bits becomes 0 and null. Returns the number of such
 * rows.
 */
export function multiply(values: BigInt64Array, factor: number, bits: Uint8Array): number {
  const most = (2n ** 63n - 1n) / BigInt(factor);
  return inPlace(values, bits, (kernels, at, bitsAt) =>
    kernels.multiply(at, values.length, BigInt(factor), most, bitsAt),
  );
}

/** Divides each integer by `divisor`, rounding to the nearest double. Returns a view of the same memory as doubles. */
export function divideToFloats(values: BigInt64Array, divisor: number): Float64Array {
  inPlace(values, null, (kernels, at) => kernels.divideToFloats(at, values.length, divisor));
  return new Float64Array(values.buffer, values.byteOffset, values.length);
}

/** Makes NaN and infinite values 0 and null. Returns the number of such rows. */
export function dropInfinite(values: Float64Array, bits: Uint8Array): number {
  return inPlace(values, bits, (kernels, at, bitsAt) => kernels.dropInfinite(at, values.length, bitsAt));
}

/** Whether no value is negative. */
export function noneNegative(values: BigInt64Array): boolean {
  const scratch = openScratch(scratchBytes(values, values.length));
  return kernelsOver(scratch).noneNegative(scratch.place(values, 0, values.length), values.length) !== 0;
}
