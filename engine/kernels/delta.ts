/**
 * DELTA_BINARY_PACKED (https://parquet.apache.org/docs/file-format/data-pages/encodings/#DELTAENC) for 64-bit integers. Blocks of 128
 * values with 4 miniblocks are written; blocks of any size are read.
 */
import { openScratch, scratchBytes } from '../core/scratch.js';
import { kernelsOver } from './kernels.js';

const blockValues = 128;
const miniblocks = 4;
/** Scratch bytes for the deltas of a block. */
const deltasBytes = blockValues * 8;

/** The header has four varints of at most ten bytes. This writer's are shorter; those of other writers may not be. */
const headerBytesMax = 40;

/** Maximum bytes that `encodeDelta` writes for `count` values. */
export function deltaBytesMax(count: number): number {
  return 32 + Math.ceil(count / blockValues) * (10 + miniblocks + blockValues * 8);
}

/** An upper bound of the offset at which `count` values that begin at `at` end. */
function deltaEnd(source: Uint8Array, at: number, count: number): number {
  // The last block is padded, which may take many bytes where blocks are large. So the bound only holds for blocks of 128 values (0x80 0x01
  // as a varint), which this writer and most others use.
  const isUsual = source[at] === 0x80 && source[at + 1] === 0x01;
  return isUsual ? Math.min(source.length, at + headerBytesMax + deltaBytesMax(count)) : source.length;
}

/** Encodes values[0, count) into `target` from offset `at` on. Returns the offset after them. */
export function encodeDelta(values: BigInt64Array, count: number, target: Uint8Array, at: number): number {
  const bytesMax = deltaBytesMax(count);
  const scratch = openScratch(scratchBytes(values, count) + bytesMax + deltasBytes);
  const valuesAt = scratch.place(values, 0, count);
  const targetAt = scratch.reserve(bytesMax);
  const written = kernelsOver(scratch).encodeDelta(valuesAt, count, targetAt, scratch.reserve(deltasBytes));
  scratch.copyOut(targetAt, target, at, written);
  return at + written;
}

/**
 * Decodes exactly `count` values from source[at, …) into values[0, count). Returns the offset after them, or -1 when the input is
 * malformed. Never reads or writes outside either array.
 */
export function decodeDelta(source: Uint8Array, at: number, values: BigInt64Array, count: number): number {
  // The lengths of strings are followed by the strings, which need not be copied.
  const end = deltaEnd(source, at, count);
  const scratch = openScratch(scratchBytes(values, count) + scratchBytes(source, end - at));
  const valuesAt = scratch.target(values, 0, count);
  const sourceAt = scratch.place(source, at, end);
  const read = kernelsOver(scratch).decodeDelta(sourceAt, end - at, valuesAt, count);
  if (read < 0) return -1;
  scratch.copyOut(valuesAt, values, 0, count);
  return at + read;
}

/**
 * Decodes `count` strings in DELTA_LENGTH_BYTE_ARRAY: their lengths, followed by their bytes up to the end of `source`. Writes the end of
 * each string to `offsets`, after offsets[0] = 0. Returns the offset in `source` where the bytes begin, or -1 when the input is malformed.
 */
export function decodeLengths(source: Uint8Array, count: number, offsets: Uint32Array): number {
  // The strings after the lengths need not be copied.
  const lengthsEnd = deltaEnd(source, 0, count);
  const scratch = openScratch(
    count * 8 + scratchBytes(source, lengthsEnd) + scratchBytes(offsets, count + 1),
  );
  const lengthsAt = scratch.reserve(count * 8);
  const offsetsAt = scratch.target(offsets, 0, count + 1);
  const kernels = kernelsOver(scratch);
  const bytesAt = kernels.decodeDelta(scratch.place(source, 0, lengthsEnd), lengthsEnd, lengthsAt, count);
  if (bytesAt < 0) return -1;
  if (kernels.addLengths(lengthsAt, count, source.length - bytesAt, offsetsAt) === 0) return -1;
  scratch.copyOut(offsetsAt, offsets, 0, count + 1);
  return bytesAt;
}

/**
 * Decodes `count` strings in DELTA_BYTE_ARRAY: the length of the prefix that each shares with the string before, followed by the suffixes
 * in DELTA_LENGTH_BYTE_ARRAY up to the end of `source`. Writes the end of each string to `offsets`, after offsets[0] = 0. Returns the bytes
 * of the strings in a new array, or null when the input is malformed or they are more than `bytesMax`.
 */
export function decodePrefixed(
  source: Uint8Array,
  count: number,
  bytesMax: number,
  offsets: Uint32Array,
): Uint8Array | null {
  const { length } = source;
  const prefixes = new BigInt64Array(count);
  const suffixesAt = decodeDelta(source, 0, prefixes, count);
  const suffixes = new BigInt64Array(count);
  const bytesAt = suffixesAt < 0 ? -1 : decodeDelta(source, suffixesAt, suffixes, count);
  if (bytesAt < 0) return null;
  const ownBytes = length - bytesAt;
  const lengths = openScratch(2 * count * 8);
  const total = kernelsOver(lengths).prefixedBytes(
    lengths.place(prefixes, 0, count),
    lengths.place(suffixes, 0, count),
    count,
    ownBytes,
    bytesMax,
  );
  if (total < 0n) return null;
  const bytes = new Uint8Array(Number(total));
  const scratch = openScratch(
    2 * count * 8 + scratchBytes(source, ownBytes) + bytes.length + scratchBytes(offsets, count + 1),
  );
  const offsetsAt = scratch.target(offsets, 0, count + 1);
  const bytesTo = scratch.reserve(bytes.length);
  kernelsOver(scratch).joinPrefixed(
    scratch.place(prefixes, 0, count),
    scratch.place(suffixes, 0, count),
    count,
    scratch.place(source, bytesAt, length),
    bytesTo,
    offsetsAt,
  );
  scratch.copyOut(offsetsAt, offsets, 0, count + 1);
  scratch.copyOut(bytesTo, bytes, 0, bytes.length);
  offsets[0] = 0;
  return bytes;
}
