import { deltaBinaryUnpack } from 'hyparquet/src/delta.js';
import { FormatError, encoding, physicalType } from '../parquet/format.js';
import { pageBytesMax } from '../core/limits.js';
import type { LeafType } from './schema-node.js';

/** Number of bits that integers up to `max` need. */
export function bitsOf(max: number): number {
  return 32 - Math.clz32(max);
}

/**
 * Fills `target` with integers of the RLE/bit-packing hybrid
 * (https://parquet.apache.org/docs/file-format/data-pages/encodings/#RLE). Throws `FormatError` where `bytes` hold fewer, or
 * one is above `max`.
 *
 * @param width bits per integer, 0 to 32
 */
export function readHybrid<T extends Uint8Array | Uint16Array | Uint32Array>(
  bytes: Uint8Array,
  width: number,
  target: T,
  max: number,
): T {
  if (width > 32) throw new FormatError(`integers of ${width} bits`, 0);
  const count = target.length;
  const valueBytes = (width + 7) >> 3;
  let at = 0;
  let done = 0;
  while (done < count) {
    let header = 0;
    let factor = 1;
    for (;;) {
      const byte = bytes[at++];
      if (byte === undefined || factor > 2 ** 35) throw new FormatError('there are too few integers', at);
      header += (byte & 127) * factor;
      if (byte < 128) break;
      factor *= 128;
    }
    if (header % 2 === 0) {
      const run = Math.min(header / 2, count - done);
      if (at + valueBytes > bytes.length) throw new FormatError('there are too few integers', at);
      let value = 0;
      for (let k = 0; k < valueBytes; k++) value += bytes[at++]! * 2 ** (8 * k);
      if (value > max) throw new FormatError(`the value ${value} is above the maximum of ${max}`, at);
      target.fill(value, done, done + run);
      done += run;
      continue;
    }
    const run = Math.min(((header - 1) / 2) * 8, count - done);
    // Some writers omit the padding of the last group of eight values.
    if (at + Math.ceil((run * width) / 8) > bytes.length)
      throw new FormatError('there are too few integers', at);
    unpack(bytes, at, width, target, done, done + run, max);
    done += run;
    at += ((header - 1) / 2) * width;
  }
  return target;
}

/** Unpacks integers of `width` bits each, least significant bit first, from byte `at` of `bytes` to target[from, to). */
function unpack(
  bytes: Uint8Array,
  at: number,
  width: number,
  target: Uint8Array | Uint16Array | Uint32Array,
  from: number,
  to: number,
  max: number,
): void {
  let bit = 8 * at;
  for (let i = from; i < to; i++) {
    let value = 0;
    for (let read = 0; read < width;) {
      const shift = bit & 7;
      const taken = Math.min(8 - shift, width - read);
      value += ((bytes[bit >> 3]! >>> shift) & ((1 << taken) - 1)) * 2 ** read;
      read += taken;
      bit += taken;
    }
    if (value > max) throw new FormatError(`the value ${value} is above the maximum of ${max}`, bit >> 3);
    target[i] = value;
  }
}

/** Number of bytes of `count` levels in the older encoding BIT_PACKED. */
export function bitPackedBytes(count: number, width: number): number {
  return Math.ceil((count * width) / 8);
}

/** Decodes levels in the older encoding BIT_PACKED, most significant bit first. `bytes` must have `bitPackedBytes` bytes. */
export function readBitPacked(
  bytes: Uint8Array,
  width: number,
  target: Uint16Array,
  max: number,
): Uint16Array {
  let bit = 0;
  for (let i = 0; i < target.length; i++) {
    let value = 0;
    for (let k = 0; k < width; k++, bit++) value = 2 * value + ((bytes[bit >> 3]! >>> (7 - (bit & 7))) & 1);
    if (value > max) throw new FormatError(`the level ${value} is above the maximum of ${max}`, bit >> 3);
    target[i] = value;
  }
  return target;
}

/** Values as a page stores them: numbers, booleans as 0 and 1, or bytes. */
export type StoredValues =
  Int32Array | BigInt64Array | Float32Array | Float64Array | Uint8Array | ByteStrings;

/** Value i is bytes[starts[i], ends[i]). */
export interface ByteStrings {
  readonly bytes: Uint8Array;
  readonly starts: Uint32Array;
  readonly ends: Uint32Array;
}

/** Bytes of an INT96. */
const int96Bytes = 12;

/** Largest number of values in a delta block, well above what writers use. It limits the memory that a header can claim. */
const deltaBlockMax = 64 * 1024;

/** Decodes `count` values of a page. Throws `FormatError` for malformed data, and for an encoding that does not fit the type. */
export function decodeValues(
  number: number,
  { type, valueBytes }: LeafType,
  bytes: Uint8Array,
  count: number,
): StoredValues {
  switch (number) {
    case encoding.plain:
      return plainValues(type, valueBytes, bytes, count);
    case encoding.rle:
      if (type === physicalType.boolean) {
        if (count === 0) return new Uint8Array(0);
        return readHybrid(prefixed(bytes, 0).content, 1, new Uint8Array(count), 1);
      }
      break;
    case encoding.deltaBinaryPacked:
      if (type === physicalType.int32) return new DeltaReader(bytes).integers(new Int32Array(count));
      if (type === physicalType.int64) return new DeltaReader(bytes).integers(new BigInt64Array(count));
      break;
    case encoding.deltaLengthByteArray:
      if (type === physicalType.byteArray) return deltaLengths(bytes, count);
      break;
    case encoding.deltaByteArray:
      if (type === physicalType.byteArray || type === physicalType.fixedLengthBytes)
        return deltaStrings(bytes, count);
      break;
    case encoding.byteStreamSplit:
      return plainValues(type, valueBytes, joined(bytes, count, widthOf(type, valueBytes)), count);
    default:
  }
  throw new FormatError(`the encoding ${number} is not supported for the physical type ${type}`, 0);
}

/** Reads bytes that are preceded by their length in four bytes. Returns them and their end offset. */
export function prefixed(bytes: Uint8Array, at: number): { content: Uint8Array; end: number } {
  if (at + 4 > bytes.length) throw new FormatError('a length is missing', at);
  const length = new DataView(bytes.buffer, bytes.byteOffset).getUint32(at, true);
  if (length > bytes.length - at - 4) throw new FormatError(`${length} bytes are missing`, at);
  return { content: bytes.subarray(at + 4, at + 4 + length), end: at + 4 + length };
}

function widthOf(type: number, valueBytes: number): number {
  switch (type) {
    case physicalType.int32:
    case physicalType.float:
      return 4;
    case physicalType.int64:
    case physicalType.double:
      return 8;
    case physicalType.int96:
      return int96Bytes;
    case physicalType.fixedLengthBytes:
      return valueBytes;
    default:
      throw new FormatError(`the physical type ${type} is stored in an encoding for other types`, 0);
  }
}

function plainValues(type: number, valueBytes: number, bytes: Uint8Array, count: number): StoredValues {
  if (type === physicalType.byteArray) return plainStrings(bytes, count);
  if (type === physicalType.boolean) {
    if (bytes.length * 8 < count) throw new FormatError(`the page is too short for ${count} booleans`, 0);
    return Uint8Array.from({ length: count }, (_, i) => (bytes[i >> 3]! >>> (i & 7)) & 1);
  }
  const width = widthOf(type, valueBytes);
  if (bytes.length < count * width)
    throw new FormatError(`the page is too short for ${count} values of ${width} bytes`, 0);
  if (type === physicalType.int96 || type === physicalType.fixedLengthBytes) {
    const starts = Uint32Array.from({ length: count }, (_, i) => i * width);
    return { bytes, starts, ends: starts.map((start) => start + width) };
  }
  // A copy, because typed arrays must be aligned.
  const { buffer } = bytes.slice(0, count * width);
  if (type === physicalType.int32) return new Int32Array(buffer);
  if (type === physicalType.int64) return new BigInt64Array(buffer);
  return type === physicalType.float ? new Float32Array(buffer) : new Float64Array(buffer);
}

function plainStrings(bytes: Uint8Array, count: number): ByteStrings {
  if (bytes.length < 4 * count) throw new FormatError(`the page is too short for ${count} strings`, 0);
  const starts = new Uint32Array(count);
  const ends = new Uint32Array(count);
  let at = 0;
  for (let i = 0; i < count; i++) {
    starts[i] = at + 4;
    at = prefixed(bytes, at).end;
    ends[i] = at;
  }
  return { bytes, starts, ends };
}

/** Decodes BYTE_STREAM_SPLIT, which stores the first bytes of all values, then all second bytes, and so on. */
function joined(bytes: Uint8Array, count: number, width: number): Uint8Array {
  if (bytes.length < count * width)
    throw new FormatError(`the page is too short for ${count} values of ${width} bytes`, 0);
  const values = new Uint8Array(count * width);
  for (let k = 0; k < width; k++)
    for (let i = 0; i < count; i++) values[i * width + k] = bytes[k * count + i]!;
  return values;
}

/** Decodes DELTA_LENGTH_BYTE_ARRAY. */
function deltaLengths(bytes: Uint8Array, count: number): ByteStrings {
  const reader = new DeltaReader(bytes);
  const lengths = reader.integers(new Int32Array(count));
  return stringsBehind(bytes, reader.offset, lengths);
}

function stringsBehind(bytes: Uint8Array, from: number, lengths: Int32Array): ByteStrings {
  const starts = new Uint32Array(lengths.length);
  const ends = new Uint32Array(lengths.length);
  let at = from;
  for (const [i, length] of lengths.entries()) {
    starts[i] = at;
    if (length < 0 || length > bytes.length - at)
      throw new FormatError(`a string has the impossible length ${length}`, at);
    at += length;
    ends[i] = at;
  }
  return { bytes, starts, ends };
}

/** Decodes DELTA_BYTE_ARRAY. It stores of each value the length of the prefix that it shares with the value before, and the rest. */
function deltaStrings(bytes: Uint8Array, count: number): ByteStrings {
  const reader = new DeltaReader(bytes);
  const prefixes = reader.integers(new Int32Array(count));
  const lengths = reader.integers(new Int32Array(count));
  const rests = stringsBehind(bytes, reader.offset, lengths);
  let total = 0;
  let before = 0;
  for (let i = 0; i < count; i++) {
    const prefix = prefixes[i]!;
    if (prefix < 0 || prefix > before)
      throw new FormatError(
        `a value shares ${prefix} bytes with the value before it, which has ${before}`,
        0,
      );
    before = prefix + lengths[i]!;
    total += before;
    // A few stored bytes can claim many long values.
    if (total > pageBytesMax) throw new FormatError(`the page has more than ${pageBytesMax} bytes`, 0);
  }
  const values = new Uint8Array(total);
  const starts = new Uint32Array(count);
  const ends = new Uint32Array(count);
  let at = 0;
  for (let i = 0; i < count; i++) {
    starts[i] = at;
    if (i > 0) values.copyWithin(at, starts[i - 1]!, starts[i - 1]! + prefixes[i]!);
    at += prefixes[i]!;
    values.set(bytes.subarray(rests.starts[i], rests.ends[i]), at);
    at += lengths[i]!;
    ends[i] = at;
  }
  return { bytes: values, starts, ends };
}

/** Reads consecutive DELTA_BINARY_PACKED sequences. */
class DeltaReader {
  readonly view: DataView;
  offset = 0;

  constructor(bytes: Uint8Array) {
    this.view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  }

  /** Fills `target` with the next sequence. */
  integers<T extends Int32Array | BigInt64Array>(target: T): T {
    const blockValues = this.#varint(this.offset);
    const miniblocks = this.#varint(blockValues.end);
    const count = this.#varint(miniblocks.end);
    if (count.value < target.length)
      throw new FormatError(`${count.value} values, not ${target.length}`, this.offset);
    if (target.length === 0) {
      // A sequence without values still stores a first value.
      this.offset = this.#varint(count.end).end;
      return target;
    }
    const each = blockValues.value / miniblocks.value;
    if (blockValues.value > deltaBlockMax || !Number.isInteger(each) || each === 0 || each % 8 !== 0)
      throw new FormatError(
        `blocks of ${blockValues.value} values can't have ${miniblocks.value} miniblocks`,
        this.offset,
      );
    try {
      deltaBinaryUnpack(this, target.length, target);
    } catch (error) {
      if (error instanceof RangeError)
        throw new FormatError('the page ends in the middle of a value', this.offset);
      throw error;
    }
    return target;
  }

  #varint(at: number): { value: number; end: number } {
    let value = 0;
    for (let factor = 1; factor <= 2 ** 63; factor *= 128) {
      if (at >= this.view.byteLength) break;
      const byte = this.view.getUint8(at++);
      value += (byte & 127) * factor;
      if (byte < 128) return { value, end: at };
    }
    throw new FormatError('an integer has no end', at);
  }
}
