import { crc32 } from '../kernels/crc32.js';
import { FormatError, encoding, pageType } from '../parquet/format.js';
import { readThrift, type ThriftBounds, type ThriftFields } from '../parquet/thrift-reader.js';
import { LogstrataError } from '../core/errors.js';
import { headerBytesMax, foreignPageValuesMax, pageBytesMax } from '../core/limits.js';
import type { ForeignPlace } from '../objects/object-blocks.js';
import type { ForeignChunk } from './foreign-file.js';
import { missingBytesMax } from './chunk-bytes.js';
import { readForeignBytes } from './foreign-source.js';
import type { DecompressPage } from './page-codec.js';
import {
  bitPackedBytes,
  bitsOf,
  readBitPacked,
  readHybrid,
  decodeValues,
  prefixed,
  type StoredValues,
} from './stored-values.js';
import type { LeafType } from './schema-node.js';

/** The entries of a data page: one per value or missing value, with its levels. */
export interface LeafPage {
  readonly entries: number;
  /** Definition levels; null where every entry has a value. */
  readonly definitions: Uint16Array | null;
  /** Repetition levels; null where every entry is a row. */
  readonly repetitions: Uint16Array | null;
  /** The values of the entries that have one; with `codes`, the dictionary that these index. */
  readonly values: StoredValues;
  readonly codes: Uint32Array | null;
}

const headerBytesUsual = 16 * 1024;
/** Limit on structures and list elements in a header with statistics. */
const headerBounds: ThriftBounds = { valuesMax: 1000, handedOver: new Map() };

const noBytes = new Uint8Array(0);

/** Reads the pages of a column chunk in order. Methods throw `FormatError` with the offset in the file, and `io`. */
export class PageReader {
  readonly #end: number;
  #at: number;
  #dictionary: StoredValues | null = null;
  #dictionaryEntries = 0;

  constructor(
    private readonly place: ForeignPlace,
    { offset, bytes }: ForeignChunk,
    private readonly type: LeafType,
    private readonly decompress: DecompressPage,
  ) {
    this.#at = offset;
    this.#end = offset + bytes;
  }

  /** Reads the next data page; null after the last. */
  next(): LeafPage | null {
    while (this.#at < this.#end) {
      const begin = this.#at;
      try {
        const page = this.#readPage();
        if (page !== null) return page;
      } catch (error) {
        if (error instanceof FormatError) throw new FormatError(error.message, begin);
        throw error;
      }
    }
    return null;
  }

  /** Null for a page that is not a data page. A dictionary page is kept for the data pages after it. */
  #readPage(): LeafPage | null {
    const { fields, bodyAt } = this.#readHeader();
    const size = fields.size(3);
    const contentBytes = fields.size(2);
    if (size > this.#end + missingBytesMax - bodyAt)
      fields.fail(`the page has ${size} bytes and ends after the column chunk`);
    if (size > pageBytesMax || contentBytes > pageBytesMax)
      throw new LogstrataError(
        'limit',
        `the page has ${Math.max(size, contentBytes)} bytes, more than the maximum of ${pageBytesMax}`,
      );
    this.#at = bodyAt + size;
    const type = fields.size(1);
    if (type !== pageType.dataV1 && type !== pageType.dataV2 && type !== pageType.dictionary) return null;
    const body = this.#read(bodyAt, size);
    if (fields.has(4) && crc32(body) !== fields.integer(4) >>> 0)
      fields.fail('the page does not match its checksum');
    if (type === pageType.dataV1) return this.#readVersion1(fields.struct(5), body, contentBytes);
    if (type === pageType.dataV2) return this.#readVersion2(fields.struct(8), body, contentBytes);
    const entries = countOf(fields.struct(7), 1);
    this.#dictionary = decodeValues(encoding.plain, this.type, this.decompress(body, contentBytes), entries);
    this.#dictionaryEntries = entries;
    return null;
  }

  #readHeader(): { fields: ThriftFields; bodyAt: number } {
    const rest = Math.min(this.#end - this.#at, headerBytesMax);
    for (let bytes = Math.min(rest, headerBytesUsual); ; bytes = rest) {
      try {
        const { fields, end } = readThrift(this.#read(this.#at, bytes), 0, headerBounds);
        return { fields, bodyAt: this.#at + end };
      } catch (error) {
        if (!(error instanceof FormatError) || bytes === rest) throw error;
      }
    }
  }

  #read(at: number, length: number): Uint8Array {
    const bytes = new Uint8Array(length);
    if (readForeignBytes(this.place, at, bytes) < length)
      throw new FormatError('the file ends here: it is shorter than before', at);
    return bytes;
  }

  #readVersion1(header: ThriftFields, body: Uint8Array, contentBytes: number): LeafPage {
    const { definitionMax, repetitionMax } = this.type;
    const entries = countOf(header, 1);
    const content = this.decompress(body, contentBytes);
    let at = 0;
    const levels = (max: number, levelEncoding: number): Uint16Array | null => {
      if (max === 0) return null;
      if (levelEncoding === encoding.bitPacked) {
        const bytes = bitPackedBytes(entries, bitsOf(max));
        if (bytes > content.length - at) header.fail('the levels are missing');
        at += bytes;
        return readBitPacked(content.subarray(at - bytes, at), bitsOf(max), new Uint16Array(entries), max);
      }
      const { content: packed, end } = prefixed(content, at);
      at = end;
      return readHybrid(packed, bitsOf(max), new Uint16Array(entries), max);
    };
    const repetitions = levels(repetitionMax, header.size(4));
    const definitions = levels(definitionMax, header.size(3));
    return this.#page(entries, definitions, repetitions, header.size(2), content.subarray(at));
  }

  #readVersion2(header: ThriftFields, body: Uint8Array, contentBytes: number): LeafPage {
    const { definitionMax, repetitionMax } = this.type;
    const entries = countOf(header, 1);
    const definitionBytes = header.size(5);
    const repetitionBytes = header.size(6);
    const levelBytes = definitionBytes + repetitionBytes;
    if (levelBytes > Math.min(body.length, contentBytes)) header.fail('the levels are missing');
    const levels = (max: number, from: number, to: number): Uint16Array | null =>
      max === 0 ? null : readHybrid(body.subarray(from, to), bitsOf(max), new Uint16Array(entries), max);
    const repetitions = levels(repetitionMax, 0, repetitionBytes);
    const definitions = levels(definitionMax, repetitionBytes, levelBytes);
    const rest = body.subarray(levelBytes);
    // Where all rows are null, some writers store no bytes although the header says that they are compressed.
    const isCompressed = header.bool(7, true) && rest.length > 0;
    const values = isCompressed ? this.decompress(rest, contentBytes - levelBytes) : rest;
    return this.#page(entries, definitions, repetitions, header.size(4), values);
  }

  #page(
    entries: number,
    definitions: Uint16Array | null,
    repetitions: Uint16Array | null,
    number: number,
    bytes: Uint8Array,
  ): LeafPage {
    let count = entries;
    if (definitions !== null)
      for (const definition of definitions) if (definition < this.type.definitionMax) count--;
    const levels = { entries, definitions, repetitions };
    if (number !== encoding.plainDictionary && number !== encoding.rleDictionary)
      return { ...levels, values: decodeValues(number, this.type, bytes, count), codes: null };
    if (count === 0)
      return { ...levels, values: decodeValues(encoding.plain, this.type, noBytes, 0), codes: null };
    if (this.#dictionary === null)
      throw new FormatError('the page refers to a dictionary, but there is none', 0);
    if (bytes.length === 0) throw new FormatError('the page has no dictionary codes', 0);
    const codes = readHybrid(
      bytes.subarray(1),
      bytes[0]!,
      new Uint32Array(count),
      this.#dictionaryEntries - 1,
    );
    return { ...levels, values: this.#dictionary, codes };
  }
}

/** Reads a field that gives a number of values. It is limited, because memory is allocated for them before they are read. */
function countOf(fields: ThriftFields, id: number): number {
  const count = fields.size(id);
  return count > foreignPageValuesMax
    ? fields.fail(`the page has ${count} values, which is too many`)
    : count;
}
