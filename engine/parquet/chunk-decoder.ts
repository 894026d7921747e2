import {
  type BytesColumn,
  type Column,
  type DictionaryColumn,
  halvesOf,
  numberColumn,
  type PlainColumn,
  type Validity,
} from '../columns/column.js';
import { bufferBytes } from '../core/allocator.js';
import { int64sOf, uint16sOf, uint32sOf } from '../core/arena.js';
import { codeBits, decodeHybrid, largestCode } from '../kernels/bit-packing.js';
import { decodeDelta, decodeLengths } from '../kernels/delta.js';
import { decodePlainStrings } from '../kernels/plain-strings.js';
import { spreadCodes, spreadOffsets, spreadWords } from '../kernels/spread.js';
import { decodeLevels } from '../kernels/validity.js';
import { dictionaryEntriesMax, pageBytesMax } from '../core/limits.js';
import { heapSpace, type ColumnSpace } from './column-space.js';
import type { Decompress } from './compression.js';
import { contentFacts, type ChunkPlace, type ColumnContent } from './footer.js';
import { encoding, FormatError } from './format.js';
import { readPageHeader, type DataPageHeader } from './page-header.js';
import { bitmapBytes, spreadBits } from '../kernels/bitmap.js';

/** The encoded values of a page, without nulls. */
interface StoredValues {
  readonly bytes: Uint8Array;
  readonly isCompressed: boolean;
  /** Length of the values after decompression, in bytes. */
  readonly length: number;
  readonly content: ColumnContent;
  readonly present: number;
  readonly rows: number;
  /** Offset of the page in the chunk, for error messages. */
  readonly at: number;
}

/** What the pages of a chunk are decoded with. */
interface Decoding {
  readonly decompress: Decompress;
  readonly space: ColumnSpace;
}

/** The most arrays of a column: codes or offsets, values, offsets of the values, validity. */
const arraysMax = 4;

/** Scratch bytes that the kernels need to decode a chunk of `rows` rows that is in their memory. */
export function decodingScratchBytes(rows: number): number {
  return rows * 8 + 4096;
}

/** Bytes of the working space for a chunk while it is decoded, and for the scratch memory of that. */
export function readingBytesMax(chunk: ChunkPlace): number {
  return bufferBytes(chunk.bytes) + bufferBytes(decodingScratchBytes(chunk.rows));
}

/** The most bytes of its space that reading and decoding a chunk needs, including those that are only needed while decoding. */
export function decodingBytesMax(chunk: ChunkPlace, content: ColumnContent): number {
  const { rows, uncompressedBytes } = chunk;
  const isDictionary = chunk.dictionaryPageBytes > 0;
  const isString = contentFacts(content).column === 'bytes';
  const perRowBytes = isDictionary ? 2 : isString ? 4 : 8;
  // Numbers take eight bytes per row, which `perRowBytes` counts already. On disk, deltas may be shorter.
  const valuesBytes = isDictionary || isString ? uncompressedBytes : 0;
  const columnBytes =
    (rows + 1) * perRowBytes + valuesBytes + bitmapBytes(rows) + arraysMax * bufferBytes(64);
  // The decompressed pages of the dictionary and of the codes, or the only page of values.
  return columnBytes + readingBytesMax(chunk) + uncompressedBytes + 2 * bufferBytes(64);
}

/**
 * Decodes a column chunk of `rows` rows into `space`. The caller has verified its checksum. Throws `FormatError` where it is malformed.
 * Never reads or writes outside its buffers. The column shares no memory with the chunk.
 */
export function decodeChunk(
  chunk: Uint8Array,
  content: ColumnContent,
  rows: number,
  decompress: Decompress,
  space: ColumnSpace = heapSpace,
): Column {
  const decoding = { decompress, space };
  let page = readPageHeader(chunk, 0);
  let entries: PlainColumn | null = null;
  if (page.header.kind === 'dictionary') {
    const { header, bodyAt } = page;
    if (header.entries > dictionaryEntriesMax)
      throw new FormatError(`the dictionary has ${header.entries} entries, which is too many`, 0);
    const bytes = chunk.subarray(bodyAt, bodyAt + header.bytes);
    const length = header.uncompressedBytes;
    const count = header.entries;
    const stored = { bytes, isCompressed: true, length, content, present: count, rows: count, at: bodyAt };
    entries = decodePlain(stored, decoding);
    page = readPageHeader(chunk, bodyAt + header.bytes);
  }
  const { header, bodyAt } = page;
  if (header.kind !== 'data') throw new FormatError('there is a second dictionary page', bodyAt);
  if (header.rows !== rows)
    throw new FormatError(`the page has ${header.rows} rows, expected ${rows}`, bodyAt);
  if (bodyAt + header.bytes !== chunk.length)
    throw new FormatError('there are bytes after the last page', bodyAt + header.bytes);
  const { validity, present } = readLevels(chunk, bodyAt, header, content, space);
  const at = bodyAt + header.levelBytes;
  const bytes = chunk.subarray(at, chunk.length);
  const isCompressed = header.compressed;
  const length = isCompressed ? header.uncompressedBytes - header.levelBytes : bytes.length;
  const stored = { bytes, isCompressed, length, content, present, rows, at };
  if (header.encoding === encoding.rleDictionary) {
    if (entries === null)
      throw new FormatError('the page has dictionary codes, but there is no dictionary', at);
    return decodeCodes(stored, decoding, entries, validity);
  }
  if (entries !== null) throw new FormatError('there is a dictionary, but the page has no codes', at);
  if (contentFacts(content).isBits === true) return decodeBits(stored, header.encoding, decoding, validity);
  return withNulls(decodeValues(stored, header.encoding, decoding), validity, present);
}

/** Decompresses the values to `target`, whose length is `stored.length`. */
function decompressTo(stored: StoredValues, target: Uint8Array, decompress: Decompress): void {
  if (!stored.isCompressed) target.set(stored.bytes);
  else if (!decompress(stored.bytes, target))
    throw new FormatError(`the page does not decompress to ${stored.length} bytes`, stored.at);
}

/** The decompressed values, in memory that is valid while the chunk is decoded. */
function decompressed(stored: StoredValues, { decompress, space }: Decoding): Uint8Array {
  if (!stored.isCompressed) return stored.bytes;
  checkLength(stored);
  const target = space.working(stored.length);
  decompressTo(stored, target, decompress);
  return target;
}

function checkLength({ length, at }: StoredValues): void {
  if (length < 0 || length > pageBytesMax)
    throw new FormatError(`the page claims an impossible size of ${length} bytes`, at);
}

function readLevels(
  chunk: Uint8Array,
  at: number,
  header: DataPageHeader,
  content: ColumnContent,
  space: ColumnSpace,
): { validity: Validity; present: number } {
  const { rows } = header;
  if (content === 'cursor') {
    if (header.levelBytes !== 0) throw new FormatError('a column without nulls has levels', at);
    return { validity: null, present: rows };
  }
  const sizeBytes = bitmapBytes(rows);
  const bits = header.nullCount === 0 ? new Uint8Array(sizeBytes) : space.kept(sizeBytes).fill(0);
  const present = decodeLevels(chunk, at, at + header.levelBytes, rows, bits);
  if (present !== rows - header.nullCount)
    throw new FormatError('the levels do not match the number of nulls', at);
  return { validity: present === rows ? null : bits, present };
}

function decodeValues(stored: StoredValues, valueEncoding: number, decoding: Decoding): PlainColumn {
  switch (valueEncoding) {
    case encoding.plain:
      return decodePlain(stored, decoding);
    case encoding.deltaBinaryPacked:
      return decodeDeltaValues(stored, decoding);
    case encoding.deltaLengthByteArray:
      return decodeDeltaLengths(stored, decoding);
    default:
      throw new FormatError(`the encoding ${valueEncoding} is unknown`, stored.at);
  }
}

function decodePlain(stored: StoredValues, decoding: Decoding): PlainColumn {
  const { present, rows, length } = stored;
  const { column: kind } = contentFacts(stored.content);
  if (kind === 'bytes') return decodePlainBytes(stored, decoding);
  if (length !== present * 8)
    throw new FormatError(`the page has ${length} bytes for ${present} numbers`, stored.at);
  const { space } = decoding;
  const values = space.kept(rows * 8);
  decompressTo(stored, values.subarray(0, length), decoding.decompress);
  return numberColumn(kind, rows, values.buffer, values.byteOffset, null);
}

function decodePlainBytes(stored: StoredValues, decoding: Decoding): BytesColumn {
  const { present, rows } = stored;
  const source = decompressed(stored, decoding);
  const offsets = uint32sOf(decoding.space.kept, rows + 1);
  const bytes = decoding.space.kept(Math.max(0, source.length - present * 4));
  if (decodePlainStrings(source, present, bytes, offsets) < 0)
    throw new FormatError('the strings do not fill their page', stored.at);
  return { kind: 'bytes', length: rows, offsets, bytes, validity: null };
}

/** Decodes the bits of a BOOLEAN column as a dictionary of 0 and 1. */
function decodeBits(
  stored: StoredValues,
  valueEncoding: number,
  decoding: Decoding,
  validity: Validity,
): DictionaryColumn {
  const { present, rows, at } = stored;
  if (valueEncoding !== encoding.plain)
    throw new FormatError(`the encoding ${valueEncoding} is not supported for booleans`, at);
  if (stored.length !== (present + 7) >> 3)
    throw new FormatError(`the page has ${stored.length} bytes for ${present} bits`, at);
  const bits = decompressed(stored, decoding);
  const codes = decoding.space.kept(rows);
  spreadBits(bits, present, codes);
  if (validity !== null) spreadCodes(codes, validity, rows, present);
  const values = int64sOf(decoding.space.kept, 2);
  values.set([0n, 1n]);
  return {
    kind: 'dictionary',
    length: rows,
    codes,
    values: { kind: 'int64', length: 2, values, validity: null },
    validity,
  };
}

function decodeDeltaValues(stored: StoredValues, decoding: Decoding): PlainColumn {
  if (contentFacts(stored.content).column !== 'int64')
    throw new FormatError('the page has delta-encoded integers, but the column has another type', stored.at);
  const source = decompressed(stored, decoding);
  const values = int64sOf(decoding.space.kept, stored.rows);
  if (decodeDelta(source, 0, values, stored.present) !== source.length) {
    throw new FormatError('the delta-encoded integers are malformed', stored.at);
  }
  return { kind: 'int64', length: stored.rows, values, validity: null };
}

/** The page has the strings' bytes one after another, like the column. So it is decompressed directly into the column's memory. */
function decodeDeltaLengths(stored: StoredValues, { decompress, space }: Decoding): PlainColumn {
  if (contentFacts(stored.content).column !== 'bytes')
    throw new FormatError('the page has encoded strings, but the column has another type', stored.at);
  checkLength(stored);
  const page = space.kept(stored.length);
  decompressTo(stored, page, decompress);
  const offsets = uint32sOf(space.kept, stored.rows + 1);
  const bytesAt = decodeLengths(page, stored.present, offsets);
  if (bytesAt < 0) throw new FormatError('the lengths do not match the strings', stored.at);
  const bytes = page.subarray(bytesAt);
  return { kind: 'bytes', length: stored.rows, offsets, bytes, validity: null };
}

/** Decodes the RLE/bit-packing hybrid, which follows the width of the codes. */
function decodeCodes(
  page: StoredValues,
  decoding: Decoding,
  entries: PlainColumn,
  validity: Validity,
): Column {
  const { present, rows } = page;
  const { space } = decoding;
  const bytes = decompressed(page, decoding);
  const width = bytes[0] ?? -1;
  if (width !== codeBits(entries.length))
    throw new FormatError(`the dictionary codes have the wrong width of ${width} bits`, page.at);
  const codes = entries.length <= 256 ? space.kept(rows) : uint16sOf(space.kept, rows);
  if (decodeHybrid(bytes, 1, present, width, codes) !== bytes.length)
    throw new FormatError('the dictionary codes are malformed', page.at);
  if (largestCode(codes, present) >= entries.length)
    throw new FormatError('a code is beyond the end of the dictionary', page.at);
  if (validity !== null) spreadCodes(codes, validity, rows, present);
  return { kind: 'dictionary', length: rows, codes, values: entries, validity };
}

function withNulls(column: PlainColumn, validity: Validity, present: number): PlainColumn {
  if (validity === null) return column;
  if (column.kind === 'bytes') spreadOffsets(column.offsets, validity, column.length, present);
  else spreadWords(halvesOf(column.values), validity, column.length, present);
  return { ...column, validity };
}
