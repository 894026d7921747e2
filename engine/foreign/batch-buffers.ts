import { crc32 } from '../kernels/crc32.js';
import type { Decompress } from '../parquet/compression.js';
import { codecNumber, FormatError } from '../parquet/format.js';
import { LogstrataError } from '../core/errors.js';
import { foreignSpanBytesMax } from '../core/limits.js';
import type { ForeignPlace } from '../objects/object-blocks.js';
import { decompressLz4Frame, openPageDecompressor } from './page-codec.js';
import { readForeignBytes } from './foreign-source.js';
import type { ArrowBatch } from './arrow-index.js';
import type { ArrowField, ArrowType } from './arrow-schema.js';

/** Counts what a reading has read and allocated so far. */
export class ReadingTally {
  /** Bytes read from the file. */
  bytesRead = 0;
  /** crc32 of these bytes, in the order in which they were read. */
  checksum = 0;
  /** Bytes of memory. */
  #contentBytes = 0;

  /** Counts bytes before they are allocated. Throws `limit` when they exceed `foreignSpanBytesMax`. */
  count(contentBytes: number): void {
    this.#contentBytes += contentBytes;
    if (this.#contentBytes > foreignSpanBytesMax)
      throw new LogstrataError('limit', `the buffers have more than ${foreignSpanBytesMax} bytes`);
  }
}

/** Reads the buffers of a batch. */
export class BatchBuffers {
  private constructor(
    private readonly place: ForeignPlace,
    readonly batch: ArrowBatch,
    private readonly tally: ReadingTally,
    private readonly decompress: Decompress,
  ) {}

  /** Opens the buffers of a batch. Loads the decompressor of its codec if needed. */
  static async open(place: ForeignPlace, batch: ArrowBatch, tally: ReadingTally): Promise<BatchBuffers> {
    // Parquet's older LZ4 has other forms too.
    const isFrame = batch.codec === codecNumber.lz4Framed;
    const decompress = isFrame ? decompressLz4Frame : await openPageDecompressor(batch.codec);
    return new BatchBuffers(place, batch, tally, decompress);
  }

  /** Bytes of a buffer as stored; 0 for one that the writer left out. */
  storedBytes(buffer: number): number {
    return this.batch.buffers[2 * buffer + 1]!;
  }

  /** Returns the bytes [from, to) of a buffer's content; up to its end without `to`. Throws `FormatError`, `limit` and `io`. */
  read(buffer: number, from = 0, to?: number): Uint8Array {
    const { batch } = this;
    const at = batch.bodyAt + batch.buffers[2 * buffer]!;
    const bytes = this.storedBytes(buffer);
    if (batch.codec === codecNumber.none || bytes === 0) {
      const end = to ?? bytes;
      if (from > end || end > bytes)
        throw new FormatError(`a buffer has ${bytes} bytes, expected ${end}`, at);
      return this.#readFile(at + from, end - from);
    }
    const content = this.#content(this.#readFile(at, bytes), at);
    const end = to ?? content.length;
    if (from > end || end > content.length)
      throw new FormatError(`a buffer has ${content.length} bytes, expected ${end}`, at);
    return content.subarray(from, end);
  }

  /** Decompresses a buffer. It begins with the length of its content, which is -1 where this buffer is stored uncompressed. */
  #content(stored: Uint8Array, at: number): Uint8Array {
    if (stored.length < 8) throw new FormatError('a compressed buffer does not begin with its length', at);
    const length = Number(new DataView(stored.buffer, stored.byteOffset).getBigInt64(0, true));
    if (length === -1) return stored.subarray(8);
    if (length < 0) throw new FormatError(`a buffer has the impossible length ${length}`, at);
    this.tally.count(length);
    const content = new Uint8Array(length);
    if (length > 0 && !this.decompress(stored.subarray(8), content))
      throw new FormatError(`a buffer does not decompress to ${length} bytes`, at);
    return content;
  }

  #readFile(at: number, length: number): Uint8Array {
    this.tally.count(length);
    const bytes = new Uint8Array(length);
    if (readForeignBytes(this.place, at, bytes) < length)
      throw new FormatError('the file ends here: it is shorter than before', at);
    this.tally.bytesRead += length;
    this.tally.checksum = crc32(bytes, this.tally.checksum);
    return bytes;
  }
}

/** Position of a field in a batch: its node and its buffers. The positions of its children follow. */
export interface FieldPlace {
  readonly field: ArrowField;
  /** Type of the values; with a dictionary, type of the codes. */
  readonly type: ArrowType;
  readonly rows: number;
  readonly nullCount: number;
  /** Number of its first buffer, and the count of its own buffers (without its children's). */
  readonly buffer: number;
  readonly buffers: number;
  readonly children: readonly FieldPlace[];
}

/** Positions of the fields in a batch. Throws `FormatError` for a batch that lacks some. */
export function fieldPlaces(fields: readonly ArrowField[], batch: ArrowBatch): FieldPlace[] {
  let node = 0;
  let buffer = 0;
  let views = 0;
  const place = (field: ArrowField): FieldPlace => {
    const { dictionary } = field;
    const type = dictionary?.codes ?? field.type;
    const at = 2 * node++;
    const viewBuffers = type.kind === 'bytes view' ? (batch.viewBuffers[views++] ?? 0) : 0;
    const first = buffer;
    const count = buffersOf(type) + viewBuffers;
    if (at + 2 > batch.nodes.length || first + count > batch.buffers.length / 2)
      throw new FormatError(`a batch lacks parts of the field "${field.name}"`, batch.offset);
    buffer += count;
    const children = dictionary === null ? field.children.map(place) : [];
    return {
      field,
      type,
      rows: batch.nodes[at]!,
      nullCount: batch.nodes[at + 1]!,
      buffer: first,
      buffers: count,
      children,
    };
  };
  return fields.map(place);
}

/**
 * Number of a field's own buffers, including the validity bitmap
 * (https://arrow.apache.org/docs/format/Columnar.html#buffer-listing-for-each-layout).
 */
function buffersOf(type: ArrowType): number {
  switch (type.kind) {
    case 'null':
    case 'run end encoded':
      return 0;
    case 'struct':
    case 'fixed list':
      return 1;
    case 'bytes':
    case 'list view':
      return 3;
    case 'union':
      return type.isDense ? 2 : 1;
    default:
      return 2;
  }
}

/** Bytes of the buffers of a field and its children. */
export function placeBytes(place: FieldPlace, batch: ArrowBatch): number {
  let bytes = 0;
  for (let i = place.buffer; i < place.buffer + place.buffers; i++) bytes += batch.buffers[2 * i + 1]!;
  return place.children.reduce((sum, child) => sum + placeBytes(child, batch), bytes);
}
