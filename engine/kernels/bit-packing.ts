/**
 * Dictionary codes in Parquet's RLE/bit-packing hybrid (https://parquet.apache.org/docs/file-format/data-pages/encodings/#RLE). Codes are
 * packed least significant bit first.
 */
import { openScratch, scratchBytes } from '../core/scratch.js';
import { kernelsOver } from './kernels.js';

/** Codes of dictionary entries. */
export type Codes = Uint8Array | Uint16Array | Uint32Array;

/** The number of bits that the codes of `entries` dictionary entries need: 0 for one entry, and at most 16 for 65536. */
export function codeBits(entries: number): number {
  return entries <= 1 ? 0 : 32 - Math.clz32(entries - 1);
}

/**
 * Packs codes[0, count) with `width` bits each (1 to 16) into `target` from `at` on, and pads with zeros to a multiple of eight codes.
 * Returns the offset after them.
 */
export function packCodes(
  codes: Uint8Array | Uint16Array,
  count: number,
  width: number,
  target: Uint8Array,
  at: number,
): number {
  const bytes = Math.ceil(count / 8) * width;
  const scratch = openScratch(scratchBytes(codes, count) + bytes);
  const targetAt = scratch.target(target, at, bytes);
  const codesAt = scratch.place(codes, 0, count);
  kernelsOver(scratch).packCodes(codesAt, codes.BYTES_PER_ELEMENT, count, width, targetAt);
  scratch.copyOut(targetAt, target, at, bytes);
  return at + bytes;
}

/** Scratch bytes of the kernel: for each code of a vector, the source bytes that contain it, and its shift. */
const windowsBytes = 64;

/**
 * Decodes `count` codes of `width` bits from the hybrid of RLE runs and packed codes in source[at, …) to the start of `target`. Ignores
 * what a run has beyond the last code. Returns the offset after what was read, or -1 when the input is malformed or its codes don't fit in
 * the elements of `target`. Never reads or writes outside either array.
 */
export function decodeHybrid(
  source: Uint8Array,
  at: number,
  count: number,
  width: number,
  target: Codes,
): number {
  const codeBytes = target.BYTES_PER_ELEMENT;
  if (width > 8 * codeBytes || at > source.length) return -1;
  const sourceBytes = source.length - at;
  const scratch = openScratch(scratchBytes(source, sourceBytes) + scratchBytes(target, count) + windowsBytes);
  const sourceAt = scratch.place(source, at, source.length);
  const targetAt = scratch.target(target, 0, count);
  const windows = scratch.reserve(windowsBytes);
  const kernels = kernelsOver(scratch);
  const read = kernels.decodeHybrid(sourceAt, sourceBytes, count, width, targetAt, codeBytes, windows);
  if (read < 0) return -1;
  scratch.copyOut(targetAt, target, 0, count);
  return at + read;
}

/** The largest of codes[0, count), or -1 when there are none. */
export function largestCode(codes: Codes, count: number): number {
  if (count === 0) return -1;
  const scratch = openScratch(scratchBytes(codes, count));
  const codesAt = scratch.place(codes, 0, count);
  if (codes instanceof Uint32Array) return kernelsOver(scratch).largestCode32(codesAt, count) >>> 0;
  return kernelsOver(scratch).largestCode(codesAt, codes.BYTES_PER_ELEMENT, count);
}
