import type { BytesColumn, Column, PlainColumn, Validity } from '../column.js';
import { bitmapBytes } from '../column.js';
import { codeBits, largestCode } from '../kernels/bit-packing.js';
import { unpackCodes } from '../kernels/simd/bit-packing.js';
import { decodeDelta } from '../kernels/simd/delta.js';
import { decodePlainStrings } from '../kernels/simd/plain-strings.js';
import { spreadCodes, spreadOffsets, spreadWords } from '../kernels/spread.js';
import { decodeLevels } from '../kernels/validity.js';
import { dictionaryEntriesMax, pageBytesMax } from '../limits.js';
import type { Decompress } from './compression.js';
import type { ColumnContent } from './footer.js';
import { encoding, FormatError } from './format.js';
import { readPageHeader, type DataPageHeader } from './page-header.js';
import { halvesOf } from './present-values.js';

/** The values of a page without nulls, at the front of arrays that have room for the rows of the chunk. */
interface PageValues {
  readonly bytes: Uint8Array;
  readonly content: ColumnContent;
  readonly present: number;
  readonly rows: number;
  /** Offset of the page in the chunk, for errors. */
  readonly at: number;
}

/**
 * Decodes a column chunk of `rows` rows, whose checksum has been compared. Throws `FormatError` for what is malformed;
 * never reads or writes outside its buffers.
 */
export function decodeChunk(
  chunk: Uint8Array,
  content: ColumnContent,
  rows: number,
  decompress: Decompress,
): Column {
  let page = readPageHeader(chunk, 0);
  let entries: PlainColumn | null = null;
  if (page.header.kind === 'dictionary') {
    const { header, bodyAt } = page;
    if (header.entries > dictionaryEntriesMax)
      throw new FormatError(`a dictionary of ${header.entries} entries`, 0);
    const body = chunk.subarray(bodyAt, bodyAt + header.bytes);
    const bytes = decompressed(body, header.uncompressedBytes, decompress, bodyAt);
    const count = header.entries;
    entries = decodePlain({ bytes, content, present: count, rows: count, at: bodyAt });
    page = readPageHeader(chunk, bodyAt + header.bytes);
  }
  const { header, bodyAt } = page;
  if (header.kind !== 'data') throw new FormatError('a second dictionary page', bodyAt);
  if (header.rows !== rows) throw new FormatError(`a page of ${header.rows} rows, expected ${rows}`, bodyAt);
  if (bodyAt + header.bytes !== chunk.length)
    throw new FormatError('bytes behind the last page', bodyAt + header.bytes);
  const { validity, present } = readLevels(chunk, bodyAt, header, content);
  const valuesAt = bodyAt + header.levelBytes;
  const stored = chunk.subarray(valuesAt, chunk.length);
  const bytes = header.compressed
    ? decompressed(stored, header.uncompressedBytes - header.levelBytes, decompress, valuesAt)
    : stored;
  const values = { bytes, content, present, rows, at: valuesAt };
  if (header.encoding === encoding.rleDictionary) {
    if (entries === null) throw new FormatError('codes without a dictionary', valuesAt);
    return decodeCodes(values, entries, validity);
  }
  if (entries !== null) throw new FormatError('a dictionary without codes', valuesAt);
  return withNulls(decodeValues(values, header.encoding), validity, present);
}

function decompressed(bytes: Uint8Array, length: number, decompress: Decompress, at: number): Uint8Array {
  if (length > pageBytesMax) throw new FormatError(`a page that claims ${length} bytes`, at);
  const result = decompress(bytes, length);
  if (result === null) throw new FormatError(`a page that does not decompress to ${length} bytes`, at);
  return result;
}

function readLevels(
  chunk: Uint8Array,
  at: number,
  header: DataPageHeader,
  content: ColumnContent,
): { validity: Validity; present: number } {
  const { rows } = header;
  if (content === 'cursor') {
    if (header.levelBytes !== 0) throw new FormatError('levels in a column without nulls', at);
    return { validity: null, present: rows };
  }
  const bits = new Uint8Array(bitmapBytes(rows));
  const present = decodeLevels(chunk, at, at + header.levelBytes, rows, bits);
  if (present !== rows - header.nullCount)
    throw new FormatError('levels that do not match the count of nulls', at);
  return { validity: present === rows ? null : bits, present };
}

function decodeValues(values: PageValues, valueEncoding: number): PlainColumn {
  switch (valueEncoding) {
    case encoding.plain:
      return decodePlain(values);
    case encoding.deltaBinaryPacked:
      return decodeDeltaValues(values);
    case encoding.deltaLengthByteArray:
      return decodeDeltaLengths(values);
    default:
      throw new FormatError(`unknown encoding ${valueEncoding}`, values.at);
  }
}

function decodePlain(page: PageValues): PlainColumn {
  const { bytes, present, rows } = page;
  if (page.content === 'string') return decodePlainBytes(page);
  if (bytes.length !== present * 8)
    throw new FormatError(`${bytes.length} bytes for ${present} numbers`, page.at);
  const values = page.content === 'float' ? new Float64Array(rows) : new BigInt64Array(rows);
  new Uint8Array(values.buffer).set(bytes);
  return values instanceof Float64Array
    ? { kind: 'float64', length: rows, values, validity: null }
    : { kind: 'int64', length: rows, values, validity: null };
}

function decodePlainBytes(page: PageValues): BytesColumn {
  const { bytes: source, present, rows } = page;
  const offsets = new Uint32Array(rows + 1);
  const bytes = new Uint8Array(Math.max(0, source.length - present * 4));
  if (decodePlainStrings(source, present, bytes, offsets) < 0)
    throw new FormatError('strings that do not fill their page', page.at);
  return { kind: 'bytes', length: rows, offsets, bytes, validity: null };
}

function decodeDeltaValues(page: PageValues): PlainColumn {
  if (page.content === 'string' || page.content === 'float')
    throw new FormatError('deltas of no integers', page.at);
  const values = new BigInt64Array(page.rows);
  if (decodeDelta(page.bytes, 0, values, page.present) !== page.bytes.length) {
    throw new FormatError('malformed deltas', page.at);
  }
  return { kind: 'int64', length: page.rows, values, validity: null };
}

function decodeDeltaLengths(page: PageValues): PlainColumn {
  if (page.content !== 'string') throw new FormatError('lengths of no strings', page.at);
  const lengths = new BigInt64Array(page.present);
  const bytesAt = decodeDelta(page.bytes, 0, lengths, page.present);
  if (bytesAt < 0) throw new FormatError('malformed lengths', page.at);
  const bytes = page.bytes.subarray(bytesAt);
  const halves = halvesOf(lengths);
  const offsets = new Uint32Array(page.rows + 1);
  let end = 0;
  for (let row = 0; row < page.present; row++) {
    const length = halves[2 * row]! >>> 0;
    end += length;
    if (halves[2 * row + 1] !== 0 || end > bytes.length)
      throw new FormatError('a string that does not fit', page.at);
    offsets[row + 1] = end;
  }
  if (end !== bytes.length) throw new FormatError('bytes behind the last string', page.at);
  return { kind: 'bytes', length: page.rows, offsets, bytes, validity: null };
}

/** Decodes the RLE/bit-packing hybrid behind the width of the codes. */
function decodeCodes(page: PageValues, entries: PlainColumn, validity: Validity): Column {
  const { bytes, present, rows } = page;
  const width = bytes[0] ?? -1;
  if (width !== codeBits(entries.length)) throw new FormatError(`codes of ${width} bits`, page.at);
  const codes = entries.length <= 256 ? new Uint8Array(rows) : new Uint16Array(rows);
  let at = 1;
  let row = 0;
  while (row < present) {
    const run = readRunHeader(bytes, at, page.at);
    at = run.at;
    if (run.length === 0) throw new FormatError('an empty run', page.at);
    if (run.packed) {
      const count = Math.min(run.length * 8, present - row);
      if (run.length * 8 - count > 7 || run.length * width > bytes.length - at)
        throw new FormatError('a run too long', page.at);
      unpackCodes(bytes, at, count, width, codes, row);
      at += run.length * width;
      row += count;
    } else {
      const valueBytes = Math.ceil(width / 8);
      if (run.length > present - row || valueBytes > bytes.length - at)
        throw new FormatError('a run too long', page.at);
      const code = valueBytes === 0 ? 0 : bytes[at]! | (valueBytes === 2 ? bytes[at + 1]! << 8 : 0);
      codes.fill(code, row, row + run.length);
      at += valueBytes;
      row += run.length;
    }
  }
  if (at !== bytes.length) throw new FormatError('bytes behind the last code', page.at);
  if (largestCode(codes, present) >= entries.length)
    throw new FormatError('a code beyond the dictionary', page.at);
  if (validity !== null) spreadCodes(codes, validity, rows, present);
  return { kind: 'dictionary', length: rows, codes, values: entries, validity };
}

function readRunHeader(
  bytes: Uint8Array,
  at: number,
  pageAt: number,
): { length: number; packed: boolean; at: number } {
  let header = 0;
  let factor = 1;
  for (;;) {
    if (at >= bytes.length || factor > 0x10000000) throw new FormatError('a malformed run', pageAt);
    const byte = bytes[at++]!;
    header += (byte & 127) * factor;
    factor *= 128;
    if (byte < 128) return { length: Math.floor(header / 2), packed: header % 2 === 1, at };
  }
}

function withNulls(column: PlainColumn, validity: Validity, present: number): PlainColumn {
  if (validity === null) return column;
  if (column.kind === 'bytes') spreadOffsets(column.offsets, validity, column.length, present);
  else spreadWords(halvesOf(column.values), validity, column.length, present);
  return { ...column, validity };
}
