/**
 * DELTA_BINARY_PACKED (https://parquet.apache.org/docs/file-format/data-pages/encodings/#DELTAENC) for 64-bit integers. We write
 * blocks of 128 values and 4 miniblocks, and read those of any size.
 */
import { openScratch, scratchBytes } from '../memory/scratch.js';
import { kernelsOver } from './kernels.js';

const blockValues = 128;
const miniblocks = 4;
/** Bytes of the deltas of a block. */
const deltasBytes = blockValues * 8;

/** Four numbers of ten bytes, the longest form. Our writer takes fewer; another writer may not. */
const headerBytesMax = 40;

/** Bytes that `encodeDelta` may need for `count` values. */
export function deltaBytesMax(count: number): number {
  return 32 + Math.ceil(count / blockValues) * (10 + miniblocks + blockValues * 8);
}

/** Where the deltas of `count` values that begin at `at` end at the latest. */
function deltaEnd(source: Uint8Array, at: number, count: number): number {
  // The last block is filled up, which may take many bytes where blocks are large. Ours begin with 128 as a varint, as most do.
  const isUsual = source[at] === 0x80 && source[at + 1] === 0x01;
  return isUsual ? Math.min(source.length, at + headerBytesMax + deltaBytesMax(count)) : source.length;
}

/** Encodes values[0, count) into `target` from `at` on. Returns the offset behind them. */
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
 * Decodes exactly `count` values from source[at, …) into values[0, count). Returns the offset behind them, or -1 when
 * the input is malformed; never reads or writes outside either.
 */
export function decodeDelta(source: Uint8Array, at: number, values: BigInt64Array, count: number): number {
  // The deltas of strings' lengths stand before the strings, which need not be copied.
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
 * Decodes the lengths of `count` strings, which stand behind them (DELTA_LENGTH_BYTE_ARRAY) and reach to the end of `source`, to
 * where each ends: offsets[0] is 0. Returns where the strings begin, or -1 when the input is malformed.
 */
export function decodeLengths(source: Uint8Array, count: number, offsets: Uint32Array): number {
  // The strings behind the lengths need not be copied.
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
 * Decodes `count` strings of which each begins as the one before (DELTA_BYTE_ARRAY): the lengths that they share, then the strings' own
 * rests as `decodeLengths` has them, which reach to the end of `source`. Writes to `offsets` where each ends: offsets[0] is 0. Returns
 * their bytes in memory of their own, or null when the input is malformed or has more than `bytesMax`.
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
