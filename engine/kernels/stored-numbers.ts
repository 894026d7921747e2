/**
 * Numbers as other programs store them (https://parquet.apache.org/docs/file-format/data-pages/encodings/), and how they become values of
 * eight bytes. Arrays of values are changed in place. `bits` has one bit a row, least significant first, 1 = present.
 */
import { openScratch, scratchBytes, type Scratch } from '../memory/scratch.js';
import { kernelsOver, type Kernels } from './kernels.js';

type Values = BigInt64Array | Float64Array;

/** Has a kernel write `count` values of what it finds in source[at, at + bytes). */
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

/** Has a kernel change all values, and the bits of some rows. */
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

/** Reads `count` integers of 32 bits from `source`, at `at`, to the front of `target`. */
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

/** Reads `count` floats of 32 bits from `source`, at `at`, to the front of `target`. */
export function widenFloat32(source: Uint8Array, at: number, count: number, target: Float64Array): void {
  fromSource(source, at, count * 4, target, count, (kernels, from, to) =>
    kernels.widenFloat32(from, count, to),
  );
}

/** Reads `count` values of `width` bytes in BYTE_STREAM_SPLIT from `source`, at `at`, to the front of `target`. */
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

/** Keeps the lower 32 bits of each integer, as one of 32 bits with a sign or without. */
export function wrapInt32(values: BigInt64Array, isUnsigned: boolean): void {
  inPlace(values, null, (kernels, at) => kernels.wrapInt32(at, values.length, Number(isUnsigned)));
}

/** Divides by a positive integer, rounding down. */
export function divideDown(values: BigInt64Array, divisor: number): void {
  inPlace(values, null, (kernels, at) => kernels.divideDown(at, values.length, BigInt(divisor)));
}

/**
 * Multiplies by a positive integer. Rows whose product an integer of 64 bits can't hold become 0 and not present. Returns how many.
 */
export function multiply(values: BigInt64Array, factor: number, bits: Uint8Array): number {
  const most = (2n ** 63n - 1n) / BigInt(factor);
  return inPlace(values, bits, (kernels, at, bitsAt) =>
    kernels.multiply(at, values.length, BigInt(factor), most, bitsAt),
  );
}

/** Turns integers, in place, into the doubles that are nearest to them divided by `divisor`. */
export function divideToFloats(values: BigInt64Array, divisor: number): Float64Array {
  inPlace(values, null, (kernels, at) => kernels.divideToFloats(at, values.length, divisor));
  return new Float64Array(values.buffer, values.byteOffset, values.length);
}

/** Makes rows that are no finite numbers 0 and not present. Returns how many. */
export function dropInfinite(values: Float64Array, bits: Uint8Array): number {
  return inPlace(values, bits, (kernels, at, bitsAt) => kernels.dropInfinite(at, values.length, bitsAt));
}

/** Whether no value is below 0. */
export function noneNegative(values: BigInt64Array): boolean {
  const scratch = openScratch(scratchBytes(values, values.length));
  return kernelsOver(scratch).noneNegative(scratch.place(values, 0, values.length), values.length) !== 0;
}
