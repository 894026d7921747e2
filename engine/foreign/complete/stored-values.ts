import { deltaBinaryUnpack } from 'hyparquet/src/delta.js';
import { FormatError, encoding, physicalType } from '../../parquet/format.js';
import { pageBytesMax } from '../../terms/limits.js';
import { readHybrid } from './levels.js';
import type { LeafType } from './schema-node.js';

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
