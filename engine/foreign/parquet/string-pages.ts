import type { BytesColumn } from '../../columns/column.js';
import { takeColumn } from '../../columns/take.js';
import { copyFromShared, copyShifted } from '../../kernels/copy.js';
import { decodeLengths, decodePrefixed } from '../../kernels/delta.js';
import { decodePlainStrings } from '../../kernels/plain-strings.js';
import { spreadOffsets } from '../../kernels/spread.js';
import { joinStreams } from '../../kernels/stored-numbers.js';
import { encoding, FormatError, physicalType } from '../../parquet/format.js';
import { foreignSpanBytesMax } from '../../terms/limits.js';
import type { ParquetStorage } from '../foreign-file.js';
import { decodeEntryCodes } from './code-pages.js';
import type { StoredPage } from './stored-page.js';

/** Bytes of the length before each string in PLAIN. */
const lengthBytes = 4;

/** Collects the strings of consecutive pages in one byte array. */
export class StringPages {
  readonly #rows: number;
  readonly #offsets: Uint32Array;
  /** Bytes per value of a FIXED_LEN_BYTE_ARRAY; else 0. */
  readonly #valueBytes: number;
  readonly #entries: BytesColumn | null;
  #bytes: Uint8Array;
  #end = 0;

  /**
   * @param bytes estimate of the strings' total size
   * @param entries the dictionary's entries, as stored
   */
  constructor(
    rows: number,
    bytes: number,
    { type, valueBytes }: ParquetStorage,
    entries: BytesColumn | null,
  ) {
    this.#rows = rows;
    this.#offsets = new Uint32Array(rows + 1);
    this.#valueBytes = type === physicalType.fixedLengthBytes ? valueBytes : 0;
    this.#entries = entries;
    this.#bytes = new Uint8Array(bytes);
  }

  /** The strings as stored, which need not be UTF-8. */
  get column(): BytesColumn {
    const bytes = this.#bytes.subarray(0, this.#end);
    return { kind: 'bytes', length: this.#rows, offsets: this.#offsets, bytes, validity: null };
  }

  /** Adds the rows of a page, from row `row` on. Throws `FormatError`. */
  add(page: StoredPage, row: number): void {
    const { present, rows, bits } = page;
    const offsets = this.#offsets.subarray(row, row + rows + 1);
    const from = this.#end;
    if (present > 0) this.#decode(page, offsets.subarray(0, present + 1));
    if (from > 0) {
      offsets[0] = 0;
      copyShifted(offsets, 0, present + 1, from, offsets, 0);
    }
    if (bits !== null) spreadOffsets(offsets, bits, rows, present);
  }

  /** Decodes the strings of a page. Writes offsets relative to the page's first string. */
  #decode(page: StoredPage, offsets: Uint32Array): void {
    const { present, values, at } = page;
    switch (page.encoding) {
      case encoding.plain: {
        if (this.#valueBytes > 0) {
          this.#append(values.subarray(0, this.#fixedBytes(page, offsets)), at);
          return;
        }
        const target = this.#room(Math.max(0, values.length - present * lengthBytes), at);
        const written = decodePlainStrings(values, present, target, offsets);
        if (written < 0) throw new FormatError('the strings do not fill their page', at);
        this.#end += written;
        return;
      }
      case encoding.deltaLengthByteArray: {
        const bytesAt = decodeLengths(values, present, offsets);
        if (bytesAt < 0) throw new FormatError('the lengths do not match the strings', at);
        this.#append(values.subarray(bytesAt), at);
        this.#checkFixed(page, offsets);
        return;
      }
      case encoding.deltaByteArray: {
        const bytes = decodePrefixed(values, present, foreignSpanBytesMax - this.#end, offsets);
        if (bytes === null) throw new FormatError('the strings are malformed or too long', at);
        this.#append(bytes, at);
        this.#checkFixed(page, offsets);
        return;
      }
      case encoding.byteStreamSplit: {
        if (this.#valueBytes === 0)
          throw new FormatError('strings are stored in an encoding for numbers', at);
        const bytes = this.#fixedBytes(page, offsets);
        joinStreams(values, 0, present, this.#valueBytes, this.#room(bytes, at));
        this.#end += bytes;
        return;
      }
      case encoding.plainDictionary:
      case encoding.rleDictionary:
        this.#takeEntries(page, offsets);
        return;
      default:
        throw new FormatError(`the encoding ${page.encoding} is not supported for strings`, at);
    }
  }

  #takeEntries(page: StoredPage, offsets: Uint32Array): void {
    const entries = this.#entries;
    if (entries === null)
      throw new FormatError('the page has dictionary codes, but there is no dictionary', page.at);
    const codes = decodeEntryCodes(page, entries.length);
    let sum = 0;
    for (const code of codes) sum += entries.offsets[code + 1]! - entries.offsets[code]!;
    this.#checkRoom(sum, page.at);
    const taken = takeColumn(entries, codes) as BytesColumn;
    offsets.set(taken.offsets);
    this.#append(taken.bytes, page.at);
  }

  /** Writes the offsets of fixed-length values. Returns their total bytes, after checking that the page has them. */
  #fixedBytes({ present, values, at }: StoredPage, offsets: Uint32Array): number {
    const bytes = present * this.#valueBytes;
    if (bytes > values.length)
      throw new FormatError(`the page has ${values.length} bytes for ${present} values`, at);
    for (let i = 0; i <= present; i++) offsets[i] = i * this.#valueBytes;
    return bytes;
  }

  #checkFixed({ present, at }: StoredPage, offsets: Uint32Array): void {
    if (this.#valueBytes === 0) return;
    for (let i = 0; i < present; i++)
      if (offsets[i + 1]! - offsets[i]! !== this.#valueBytes)
        throw new FormatError(`a value does not have ${this.#valueBytes} bytes`, at);
  }

  #append(bytes: Uint8Array, at: number): void {
    copyFromShared(bytes, this.#room(bytes.length, at), 0);
    this.#end += bytes.length;
  }

  /** The free part of the buffer, which is enlarged to at least `bytes`. */
  #room(bytes: number, at: number): Uint8Array {
    this.#checkRoom(bytes, at);
    const needed = this.#end + bytes;
    if (needed > this.#bytes.length) {
      const larger = new Uint8Array(Math.min(foreignSpanBytesMax, Math.max(needed, 2 * this.#bytes.length)));
      larger.set(this.#bytes.subarray(0, this.#end));
      this.#bytes = larger;
    }
    return this.#bytes.subarray(this.#end);
  }

  #checkRoom(bytes: number, at: number): void {
    if (bytes > foreignSpanBytesMax - this.#end)
      throw new FormatError(
        `the strings of neighbouring pages have more than ${foreignSpanBytesMax} bytes`,
        at,
      );
  }
}
