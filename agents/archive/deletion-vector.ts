import { crc32 } from 'node:zlib';
import { LogstrataError } from '../../engine/index.js';

/** Ascending ranges of rows: the first row of each, and the one after its last. */
type Ranges = [from: number, to: number][];

/** Begins the 64-bit bitmaps of Delta and of Iceberg. */
const bitmapMagic = 1_681_511_377;
/** Begin a 32-bit bitmap: with containers of runs, and without. */
const runCookie = 12_347;
const plainCookie = 12_346;
/** Fewer containers than this have no offsets if there are runs. */
const offsetsMin = 4;
const arrayMax = 4096;
const bitsetBytes = 8192;

/** Calls `read`. An error becomes a `LogstrataError` (`damaged`) with the path. */
export function damagedAt<T>(path: string, read: () => T): T {
  try {
    return read();
  } catch (error) {
    const message = `${path} has deleted rows that can't be read: ${(error as Error).message}`;
    throw new LogstrataError('damaged', message, { path });
  }
}

/**
 * Reads a deletion vector as it lies in a file: its length, the vector, and its checksum
 * (https://github.com/delta-io/delta/blob/master/PROTOCOL.md#deletion-vector-format; Iceberg's `deletion-vector-v1` is the same). Throws an
 * `Error` for anything else. Takes time and memory in proportion to the bytes.
 */
export function readStoredVector(bytes: Uint8Array): Ranges {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  const length = bytes.length < 8 ? -1 : view.getInt32(0);
  if (length !== bytes.length - 8)
    throw new Error(`the length of a deletion vector is ${length}, not ${bytes.length - 8}`);
  const vector = bytes.subarray(4, 4 + length);
  if (crc32(vector) !== view.getUint32(4 + length))
    throw new Error('the checksum of a deletion vector is wrong');
  return readVector(vector);
}

/** Reads a deletion vector: a bitmap of 64-bit numbers in the portable form of Roaring bitmaps. */
export function readVector(bytes: Uint8Array): Ranges {
  const reader = new BitmapReader(bytes);
  if (reader.uint32() !== bitmapMagic) throw new Error('a deletion vector does not begin as one');
  const bitmaps = reader.uint32();
  if (reader.uint32() !== 0) throw new Error('a deletion vector has too many parts');
  let last = -1;
  for (let i = 0; i < bitmaps; i++) {
    const high = reader.uint32();
    // Such rows would be beyond what a file can have.
    if (high <= last || high > 0xfffff) throw new Error('the parts of a deletion vector are in no order');
    last = high;
    reader.bitmap(high * 2 ** 32);
  }
  if (reader.left > 0) throw new Error(`${reader.left} bytes follow a deletion vector`);
  return reader.ranges;
}

/** Reads bitmaps (https://github.com/RoaringBitmap/RoaringFormatSpec) as ranges, of which there are at most half as many as bits are stored. */
class BitmapReader {
  readonly ranges: Ranges = [];
  private readonly view: DataView;
  private at = 0;

  constructor(bytes: Uint8Array) {
    this.view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  }

  get left(): number {
    return this.view.byteLength - this.at;
  }

  uint32(): number {
    return this.view.getUint32(this.skip(4), true);
  }

  private uint16(): number {
    return this.view.getUint16(this.skip(2), true);
  }

  /** Returns the offset before the bytes that are skipped. */
  private skip(length: number): number {
    if (length > this.left) throw new Error(`a deletion vector ends ${length - this.left} bytes too early`);
    return (this.at += length) - length;
  }

  /** Reads the next bitmap; its numbers count from `base`. */
  bitmap(base: number): void {
    const cookie = this.uint32();
    const hasRuns = (cookie & 0xffff) === runCookie;
    if (!hasRuns && cookie !== plainCookie)
      throw new Error('a bitmap of a deletion vector does not begin as one');
    const count = hasRuns ? (cookie >>> 16) + 1 : this.uint32();
    const runsAt = this.skip(hasRuns ? (count + 7) >> 3 : 0);
    const headersAt = this.skip(4 * count);
    if (!hasRuns || count >= offsetsMin) this.skip(4 * count);
    let last = -1;
    for (let i = 0; i < count; i++) {
      const key = this.view.getUint16(headersAt + 4 * i, true);
      if (key <= last) throw new Error('the containers of a deletion vector are in no order');
      last = key;
      const start = base + key * 2 ** 16;
      const values = this.view.getUint16(headersAt + 4 * i + 2, true) + 1;
      if (hasRuns && (this.view.getUint8(runsAt + (i >> 3)) >> (i & 7)) & 1) this.runs(start);
      else if (values <= arrayMax) for (let n = 0; n < values; n++) this.add(start + this.uint16(), 1);
      else this.bitset(start);
    }
  }

  private runs(start: number): void {
    const count = this.uint16();
    for (let i = 0; i < count; i++) this.add(start + this.uint16(), this.uint16() + 1);
  }

  private bitset(start: number): void {
    const from = this.skip(bitsetBytes);
    for (let i = 0; i < bitsetBytes; i++) {
      const byte = this.view.getUint8(from + i);
      for (let bit = 0; bit < 8; bit++) if ((byte >> bit) & 1) this.add(start + 8 * i + bit, 1);
    }
  }

  private add(from: number, count: number): void {
    const last = this.ranges.at(-1);
    if (last !== undefined && from < last[1])
      throw new Error('the rows of a deletion vector are in no order');
    if (last?.[1] === from) last[1] += count;
    else this.ranges.push([from, from + count]);
  }
}

const digits = '0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#';

/** Decodes Z85 (https://rfc.zeromq.org/spec/32/): five characters for four bytes. */
export function decodeZ85(text: string): Uint8Array {
  const bytes = Buffer.alloc(Math.ceil(text.length / 5) * 4);
  for (let i = 0; i < text.length; i += 5) {
    let value = 0;
    for (let n = i; n < i + 5; n++) {
      const digit = digits.indexOf(text[n] ?? ' ');
      value = digit < 0 ? Infinity : value * 85 + digit;
    }
    if (value > 0xffff_ffff) throw new Error('a deletion vector is no text of Z85');
    bytes.writeUInt32BE(value, (i / 5) * 4);
  }
  return bytes;
}
