import { codecNumber, FormatError } from '../parquet/format.js';
import { LogstrataError } from '../core/errors.js';
import { promises as fs } from 'node:fs';
import { foreignFootersMax, foreignPartsMax, metadataBytesMax } from '../core/limits.js';
import type { ForeignPlace } from '../objects/object-blocks.js';
import { withForeignSource, withOffset, type ForeignSource } from './foreign-source.js';
import { readArrowSchema, type ArrowField } from './arrow-schema.js';
import { FlatTable } from './flat-table.js';

/** A record batch, or the values of a dictionary. `offset` and `bodyAt` are offsets in the file. */
export interface ArrowBatch {
  readonly offset: number;
  readonly rows: number;
  /** Offset of the body, which buffer offsets are relative to. */
  readonly bodyAt: number;
  readonly bodyBytes: number;
  /** Length and null count of each field, depth first: each field before its children. */
  readonly nodes: readonly number[];
  /** Offset in the body and number of bytes of each buffer. */
  readonly buffers: readonly number[];
  /** In the numbers of Parquet's `CompressionCodec`. */
  readonly codec: number;
  /** For each column of views, the number of buffers that hold its bytes. */
  readonly viewBuffers: readonly number[];
}

/** A dictionary batch: a whole dictionary, or an addition to one. */
export interface ArrowDictionary {
  readonly id: bigint;
  /** Whether its values are appended to the dictionary's earlier ones instead of replacing them. */
  readonly isDelta: boolean;
  /** Number of the first batch that the dictionary applies to. */
  readonly firstBatch: number;
  readonly values: ArrowBatch;
}

/** Schema and positions of all batches of an Arrow file or stream. */
export interface ArrowIndex {
  readonly fields: readonly ArrowField[];
  readonly batches: readonly ArrowBatch[];
  readonly dictionaries: readonly ArrowDictionary[];
  /** Set for a stream without an end-of-stream mark: it may still be written, or its writer leaves the mark out, as the format allows. */
  readonly isOpen: boolean;
  /** The bytes of the footer or the schema, and of all batch headers. */
  readonly headers: readonly Uint8Array[];
}

const fileMagic = 'ARROW1';
/** Size of the footer's length and the magic number after it. */
const tailBytes = 4 + fileMagic.length;
/** Marker before the length of each message, since version 0.15 of the format. */
const continuation = 0xffff_ffff;
const headerKind = { schema: 1, dictionary: 2, batch: 3 } as const;
/** A `FieldNode` and a `Buffer` of Message.fbs are two 64-bit integers each. */
const nodeWords = 2;

/** The indexes that this thread has read, the least recently used first. */
const indexes = new Map<string, ArrowIndex>();

/**
 * Returns the index of an Arrow file (https://arrow.apache.org/docs/format/Columnar.html#ipc-file-format) or stream. A thread keeps
 * `foreignFootersMax` of them, until their files change. Throws `DamageError` with the path and offset, `unsupported`, `not_found`
 * and `io`.
 */
export async function arrowIndexOf(place: ForeignPlace): Promise<ArrowIndex> {
  const key = await keyOf(place);
  const index = indexes.get(key) ?? (await withForeignSource(place, readIndex));
  indexes.delete(key);
  indexes.set(key, index);
  for (const oldest of indexes.keys()) if (indexes.size > foreignFootersMax) indexes.delete(oldest);
  return index;
}

/** Identifies a file as it is now; reading a file that does not exist fails. The folder of an object's copy identifies its version. */
async function keyOf({ path, copy }: ForeignPlace): Promise<string> {
  if (copy !== undefined) return copy.folder;
  const stats = await fs.stat(path, { bigint: true }).catch(() => null);
  return `${stats?.size} ${stats?.mtimeNs} ${path}`;
}

async function readIndex(source: ForeignSource): Promise<ArrowIndex> {
  const { path, size } = source;
  if (size < 8) throw new FormatError(`the file has ${size} bytes, too few for an Arrow file or stream`, 0);
  const start = Buffer.from(await source.read(0, 8));
  if (start.toString('latin1', 0, 4) === 'FEA1')
    throw new LogstrataError(
      'unsupported',
      `${path} is a Feather file of version 1, which is not supported`,
      {
        path,
      },
    );
  const index = new IndexReader(source);
  return start.toString('latin1', 0, fileMagic.length) === fileMagic
    ? await index.readFile()
    : await index.readStream();
}

class IndexReader {
  #fields: readonly ArrowField[] | null = null;
  readonly #batches: ArrowBatch[] = [];
  readonly #dictionaries: ArrowDictionary[] = [];
  readonly #headers: Uint8Array[] = [];
  #headerBytes = 0;

  constructor(private readonly source: ForeignSource) {}

  async readFile(): Promise<ArrowIndex> {
    const { size } = this.source;
    const ending = Math.max(0, size - tailBytes);
    const tail = Buffer.from(await this.source.read(ending, Math.min(size, tailBytes)));
    if (tail.toString('latin1', 4) !== fileMagic)
      throw new FormatError(
        'the file does not end with "ARROW1": it is truncated or still being written',
        ending,
      );
    const length = tail.readUInt32LE(0);
    if (length > ending - 8)
      throw new FormatError(`the footer has ${length} bytes, but the file has only ${size}`, ending);
    const footer = await this.#readHeader(ending - length, length);
    const { fields, dictionaries, batches } = withOffset(ending - length, () => {
      const table = FlatTable.root(footer);
      const schema = table.table(1) ?? table.fail('the footer has no schema');
      const [dictionaries, batches] = [table.blockOffsets(2), table.blockOffsets(3)];
      return { fields: readArrowSchema(schema), dictionaries, batches };
    });
    this.#fields = fields;
    for (const offset of dictionaries) await this.#readMessage(offset, headerKind.dictionary);
    for (const offset of batches) await this.#readMessage(offset, headerKind.batch);
    // In a file, a dictionary applies to all batches, wherever it is stored.
    const forAll = this.#dictionaries.map((dictionary) => ({ ...dictionary, firstBatch: 0 }));
    return this.#index(forAll, false);
  }

  async readStream(): Promise<ArrowIndex> {
    let offset: number | null = 0;
    while (offset !== null && offset < this.source.size) offset = await this.#readMessage(offset, null);
    return this.#index(this.#dictionaries, offset !== null);
  }

  #index(dictionaries: readonly ArrowDictionary[], isOpen: boolean): ArrowIndex {
    if (this.#fields === null)
      throw new FormatError('the file has no schema: it is not an Arrow file or stream', 0);
    return { fields: this.#fields, batches: this.#batches, dictionaries, isOpen, headers: this.#headers };
  }

  /**
   * Reads the header of the message at `offset`. Returns the offset of the next message; null after the end-of-stream mark.
   *
   * @param expected for a file, the kind of message that the footer states
   */
  async #readMessage(offset: number, expected: number | null): Promise<number | null> {
    const { size } = this.source;
    const prefix = new DataView((await this.source.read(offset, Math.min(8, size - offset))).buffer);
    if (prefix.byteLength < 4) throw new FormatError('a message ends after the file', offset);
    const isMarked = prefix.getUint32(0, true) === continuation;
    if (isMarked && prefix.byteLength < 8) throw new FormatError('a message ends after the file', offset);
    const length = prefix.getUint32(isMarked ? 4 : 0, true);
    const headerAt = offset + (isMarked ? 8 : 4);
    if (length === 0) return null;
    if (length > size - headerAt)
      throw new FormatError(`a message has the impossible length ${length}`, offset);
    const header = await this.#readHeader(headerAt, length);
    return withOffset(headerAt, () =>
      this.#take(FlatTable.root(header), offset, headerAt + length, expected),
    );
  }

  #take(message: FlatTable, offset: number, bodyAt: number, expected: number | null): number {
    const kind = message.byte(1, 0);
    const content = message.table(2) ?? message.fail('a message has no content');
    const bodyBytes = message.size(3);
    if (bodyBytes > this.source.size - bodyAt)
      message.fail(`the file is too short for a message body of ${bodyBytes} bytes`);
    if (expected !== null && kind !== expected)
      message.fail(`a message has the kind ${kind}, expected ${expected}`);
    if (kind === headerKind.schema) this.#fields = readArrowSchema(content);
    if (kind === headerKind.batch) {
      this.#batches.push(readBatch(content, offset, bodyAt, bodyBytes));
      this.#bound(content);
    }
    if (kind === headerKind.dictionary) {
      const values = content.table(1) ?? content.fail('a dictionary has no values');
      this.#dictionaries.push({
        id: content.long(0),
        isDelta: content.bool(2, false),
        firstBatch: this.#batches.length,
        values: readBatch(values, offset, bodyAt, bodyBytes),
      });
    }
    return bodyAt + bodyBytes;
  }

  #bound(content: FlatTable): void {
    if (this.#batches.length * (this.#fields?.length ?? 0) > foreignPartsMax)
      content.fail(`the file has ${this.#batches.length} batches, more than can be read`);
  }

  async #readHeader(offset: number, length: number): Promise<Uint8Array> {
    this.#headerBytes += length;
    if (this.#headerBytes > metadataBytesMax)
      throw new FormatError(
        `the footer and the message headers have more than ${metadataBytesMax} bytes`,
        offset,
      );
    const header = await this.source.read(offset, length);
    this.#headers.push(header);
    return header;
  }
}

function readBatch(batch: FlatTable, offset: number, bodyAt: number, bodyBytes: number): ArrowBatch {
  const buffers = batch.sizes(2, nodeWords);
  for (let i = 0; i < buffers.length; i += nodeWords)
    if (buffers[i]! + buffers[i + 1]! > bodyBytes)
      batch.fail(`a buffer lies outside its message body of ${bodyBytes} bytes`);
  const compression = batch.table(3);
  const codec =
    compression === null
      ? codecNumber.none
      : [codecNumber.lz4Framed, codecNumber.zstd][compression.byte(0, 0)];
  return {
    offset,
    rows: batch.size(0),
    bodyAt,
    bodyBytes,
    nodes: batch.sizes(1, nodeWords),
    buffers,
    codec: codec ?? batch.fail('the compression is unknown'),
    viewBuffers: batch.sizes(4, 1),
  };
}
