import { crc32 } from '../kernels/crc32.js';
import { encoding, FormatError, codecNumber } from '../parquet/format.js';
import {
  readAnyHeader,
  type AnyDataPageHeader,
  type AnyDictionaryPageHeader,
  type AnyPageHeader,
} from '../parquet/page-header.js';
import { readThrift, type ThriftBounds } from '../parquet/thrift-reader.js';
import { headerBytesMax, foreignPagesMax, foreignPageValuesMax, pageBytesMax } from '../core/limits.js';
import type { ForeignRead, PageTable, RowSpan } from './foreign-file.js';
import type { ChunkBytes } from './chunk-bytes.js';
import { withKeptScratch } from '../core/scratch.js';
import type { Arena } from '../core/arena.js';
import { readOffsetIndex } from './offset-index.js';
import { bitmapBytes } from '../kernels/bitmap.js';
import { decodeLevels } from '../kernels/validity.js';
import type { Decompress } from '../parquet/compression.js';

/** Whether values in the encoding are codes, i.e. indexes of dictionary entries. */
export function hasCodes(pageEncoding: number): boolean {
  return pageEncoding === encoding.rleDictionary || pageEncoding === encoding.plainDictionary;
}

/** A page with its header. `at` and `bodyAt` are offsets in the file. */
export interface Page<H extends AnyPageHeader = AnyPageHeader> {
  readonly at: number;
  readonly bodyAt: number;
  readonly header: H;
}

/** A page with the entries of the chunk's dictionary. */
type DictionaryPage = Page<AnyDictionaryPageHeader>;

/** A data page, and the row of the row group that it begins with. */
export interface DataPage extends Page<AnyDataPageHeader> {
  readonly firstRow: number;
}

/** The pages that hold a span. */
export interface SpanPages {
  readonly dictionary: DictionaryPage | null;
  /** At least one; consecutive. */
  readonly pages: readonly DataPage[];
  /** All data pages of the chunk. */
  readonly table: PageTable;
}

/** Bytes that are read for a header at first. Most headers are smaller; for larger ones more is read. */
const headerBytesUsual = 4096;
/** Limit on structures and list elements in a header. */
const headerBounds: ThriftBounds = { valuesMax: 1000, handedOver: new Map() };

/**
 * Finds the pages of a span by reading the headers of all pages in turn. Throws `FormatError` with the offset in the file
 * for headers that contradict each other or the row group.
 */
function walkPages(bytes: ChunkBytes, { chunk, rowGroupRows }: ForeignRead, span: RowSpan): SpanPages {
  let dictionary: DictionaryPage | null = null;
  const pages: DataPage[] = [];
  const offsets: number[] = [];
  const firstRows: number[] = [];
  let row = 0;
  let at = chunk.offset;
  for (let count = 0; row < rowGroupRows; count++) {
    if (at >= bytes.end)
      throw new FormatError(`the pages have ${row} rows, but the row group has ${rowGroupRows}`, at);
    if (count === foreignPagesMax)
      throw new FormatError(`the column chunk has more than ${foreignPagesMax} pages`, at);
    const page = readPage(bytes, at);
    at = page.bodyAt + page.header.bytes;
    if (isDictionary(page)) {
      if (count > 0) throw new FormatError('a dictionary page follows another page', page.at);
      dictionary = page;
    } else if (isData(page) && page.header.rows > 0) {
      const end = row + page.header.rows;
      if (end > rowGroupRows)
        throw new FormatError(`the pages have more rows than the ${rowGroupRows} of the row group`, at);
      if (row < span.to && end > span.from) pages.push({ ...page, firstRow: row });
      offsets.push(page.at);
      firstRows.push(row);
      row = end;
    }
  }
  return { dictionary, pages, table: { offsets: [...offsets, at], firstRows: [...firstRows, row] } };
}

/** Finds the pages of a span by a known page table. Reads only their headers, and the dictionary page's. Throws as `walkPages` does. */
function pagesOfTable(bytes: ChunkBytes, { chunk }: ForeignRead, span: RowSpan, table: PageTable): SpanPages {
  const { offsets, firstRows } = table;
  const first = firstRows.findLastIndex((row) => row <= span.from);
  const last = firstRows.findIndex((row) => row >= span.to);
  if (first < 0 || last <= first) throw new FormatError('no page has the wanted rows', chunk.offset);
  const pages: DataPage[] = [];
  bytes.readAhead(offsets[first]!, offsets[last]!);
  for (let i = first; i < last; i++) {
    const firstRow = firstRows[i]!;
    const end = firstRows[i + 1]!;
    const page = readPage(bytes, offsets[i]!, offsets[i + 1]!);
    if (!isData(page) || page.header.rows !== end - firstRow)
      throw new FormatError(`expected a data page of ${end - firstRow} rows here, as before`, page.at);
    pages.push({ ...page, firstRow });
  }
  const hasOthers = chunk.offset < offsets[0]!;
  if (!hasOthers || !pages.some(({ header }) => hasCodes(header.encoding)))
    return { dictionary: null, pages, table };
  bytes.readAhead(chunk.offset, offsets[0]!);
  const page = readPage(bytes, chunk.offset, offsets[0]!);
  return { dictionary: isDictionary(page) ? page : null, pages, table };
}

function isDictionary(page: Page): page is DictionaryPage {
  return page.header.kind === 'dictionary';
}

function isData(page: Page): page is Page<AnyDataPageHeader> {
  return page.header.kind === 'data';
}

/** Reads the header of the page at offset `at`; header and body end at `end` at the latest. */
function readPage(bytes: ChunkBytes, at: number, end = bytes.end): Page {
  const most = Math.min(end - at, headerBytesMax);
  for (let length = Math.min(most, headerBytesUsual); ; length = Math.min(most, 2 * length)) {
    try {
      const { fields, end: headerBytes } = readThrift(bytes.bytesAt(at, length), 0, headerBounds);
      const header = readAnyHeader(fields, bytes.pagesEnd - at - headerBytes);
      checkClaims(header, at);
      return { at, bodyAt: at + headerBytes, header };
    } catch (error) {
      if (!(error instanceof FormatError)) throw error;
      if (length >= most) throw new FormatError(`the page header is malformed: ${error.message}`, at);
    }
  }
}

/** Throws `FormatError` for a page that claims more bytes or values than the limits, because decoding allocates what the header claims. */
function checkClaims(header: AnyPageHeader, at: number): void {
  const bytes = Math.max(header.bytes, header.uncompressedBytes);
  if (header.kind !== 'other' && bytes > pageBytesMax)
    throw new FormatError(`the page has ${bytes} bytes, more than the maximum of ${pageBytesMax}`, at);
  const values = header.kind === 'data' ? header.rows : header.kind === 'dictionary' ? header.entries : 0;
  if (values > foreignPageValuesMax)
    throw new FormatError(
      `the page has ${values} values, more than the maximum of ${foreignPageValuesMax}`,
      at,
    );
}

/** Returns the body of a page as stored. Throws `FormatError` where its crc32 differs from the header's. */
function bodyOf(bytes: ChunkBytes, { at, bodyAt, header }: Page): Uint8Array {
  const body = bytes.bytesAt(bodyAt, header.bytes);
  if (header.checksum !== null && crc32(body) !== header.checksum)
    throw new FormatError('the page does not match its checksum', at);
  return body;
}

/** The pages of the wanted span; and the crc32 of the whole chunk, null where it was not read or not asked for. */
export interface FoundPages {
  readonly found: SpanPages;
  readonly checksum: number | null;
}

/** Finds the pages of a reading. Where their positions are unknown, reads the whole chunk at once. Throws as `walkPages` does. */
export function findPages(bytes: ChunkBytes, read: ForeignRead, wantsChecksum: boolean): FoundPages {
  const span = read.spans[read.wanted]!;
  if (read.pages !== null) return { found: pagesOfTable(bytes, read, span, read.pages), checksum: null };
  const told = pagesAsTold(bytes, read, span);
  if (told !== null) return { found: told, checksum: null };
  const checksum = wantsChecksum ? bytes.readWhole() : null;
  if (!wantsChecksum) bytes.readAhead(read.chunk.offset, bytes.end);
  return { found: walkPages(bytes, read, span), checksum };
}

/**
 * Finds the pages of a span by the file's `OffsetIndex`. Null where there is none or it may not be used, where it would save
 * nothing (a single span), or where it does not agree with the pages.
 */
function pagesAsTold(bytes: ChunkBytes, read: ForeignRead, span: RowSpan): SpanPages | null {
  const { chunk, spans, rowGroupRows, takesOffsetIndex } = read;
  const place = chunk.offsetIndex;
  if (takesOffsetIndex !== true || place === undefined || spans.length < 2) return null;
  const table = readOffsetIndex(bytes.bytesBeside(place.offset, place.bytes), chunk, rowGroupRows);
  if (table === null) return null;
  try {
    return pagesOfTable(bytes, read, span, table);
  } catch (error) {
    if (!(error instanceof FormatError)) throw error;
    return null;
  }
}

/** Bytes that kernels need besides the page, per row: a value or code, and its end offset. */
const callBytesPerRow = 16;

/**
 * Calls `use` with an allocator of the buffer that each page is decompressed to. The buffer is in kernel memory where that
 * has room: kernels then need no copy of the page, and no memory is allocated from the system for each reading.
 * `besideBytes` is what kernel calls need beyond decoding.
 */
export function withPageRoom<T>(
  { pages, dictionary }: SpanPages,
  besideBytes: number,
  use: (room: Arena) => T,
): T {
  let bytes = dictionary?.header.uncompressedBytes ?? 0;
  let rows = dictionary?.header.entries ?? 0;
  for (const { header } of pages) {
    bytes = Math.max(bytes, header.uncompressedBytes);
    rows = Math.max(rows, header.rows);
  }
  return withKeptScratch(bytes, bytes + rows * callBytesPerRow + besideBytes, (kept) => {
    const room = kept ?? new Uint8Array(bytes);
    return use((length) => room.subarray(0, length));
  });
}

/** The values of a page as they are stored; null rows have none. */
export interface StoredPage {
  readonly rows: number;
  /** Number of rows that are not null. */
  readonly present: number;
  /** Validity bits, 1 = present; null where all rows are. */
  readonly bits: Uint8Array | null;
  readonly encoding: number;
  /** Decompressed. Valid only until the next page is read. */
  readonly values: Uint8Array;
  /** Offset of the page in the file, for errors. */
  readonly at: number;
}

/** Parameters of reading pages. */
export interface PageReading {
  readonly bytes: ChunkBytes;
  readonly codec: number;
  readonly decompress: Decompress;
  /** Whether pages have definition levels. */
  readonly isNullable: boolean;
  /** Allocates the buffer that a page is decompressed to. */
  readonly room: Arena;
}

/** Reads the entries of a dictionary page. Throws `FormatError` for a page that can't be read, or that contradicts its header. */
export function readDictionaryPage(page: DictionaryPage, reading: PageReading): StoredPage {
  const { entries, uncompressedBytes } = page.header;
  const values = decompressed(page, bodyOf(reading.bytes, page), uncompressedBytes, reading);
  return { rows: entries, present: entries, bits: null, encoding: encoding.plain, values, at: page.at };
}

/** Reads the values of a data page. Throws `FormatError` for a page that can't be read, or that contradicts its header. */
export function readDataPage(page: DataPage, reading: PageReading): StoredPage {
  const { header, at } = page;
  const body = bodyOf(reading.bytes, page);
  const { rows } = header;
  const common = { rows, encoding: header.encoding, at };
  if (header.version === 2) {
    const { repetitionBytes } = header;
    const levelsEnd = repetitionBytes + header.levelBytes;
    const { bits, present } = reading.isNullable
      ? readLevels(body, repetitionBytes, levelsEnd, rows, at)
      : allPresent(rows);
    const stored = body.subarray(levelsEnd);
    // Where all rows are null, some writers store no bytes although the header says that they are compressed.
    const isCompressed = header.compressed && stored.length > 0;
    const values = isCompressed
      ? decompressed(page, stored, header.uncompressedBytes - levelsEnd, reading)
      : stored;
    return { ...common, bits, present, values };
  }
  const content = decompressed(page, body, header.uncompressedBytes, reading);
  if (!reading.isNullable) return { ...common, ...allPresent(rows), values: content };
  const [from, to] = levelsRange(content, header.levelEncoding, rows, at);
  const { bits, present } =
    header.levelEncoding === encoding.bitPacked
      ? readBitPacked(content.subarray(from, to), rows)
      : readLevels(content, from, to, rows, at);
  return { ...common, bits, present, values: content.subarray(to) };
}

function decompressed(
  { at }: { readonly at: number },
  stored: Uint8Array,
  length: number,
  { codec, decompress, room }: PageReading,
): Uint8Array {
  if (codec === codecNumber.none) return stored;
  const target = room(length);
  if (!decompress(stored, target))
    throw new FormatError(`the page does not decompress to ${length} bytes`, at);
  return target;
}

function allPresent(rows: number): { bits: null; present: number } {
  return { bits: null, present: rows };
}

/** Byte range of the definition levels in a page of version 1. */
function levelsRange(
  content: Uint8Array,
  levelEncoding: number,
  rows: number,
  at: number,
): [from: number, to: number] {
  const view = new DataView(content.buffer, content.byteOffset, content.length);
  const isBitPacked = levelEncoding === encoding.bitPacked;
  const from = isBitPacked ? 0 : 4;
  const length = isBitPacked ? (rows + 7) >> 3 : content.length < 4 ? Infinity : view.getUint32(0, true);
  if (length > content.length - from) throw new FormatError('the levels are longer than their page', at);
  return [from, from + length];
}

function readLevels(
  source: Uint8Array,
  from: number,
  to: number,
  rows: number,
  at: number,
): { bits: Uint8Array | null; present: number } {
  const bits = new Uint8Array(bitmapBytes(rows));
  const present = decodeLevels(source, from, to, rows, bits);
  if (present < 0) throw new FormatError('the levels are malformed', at);
  return { bits: present === rows ? null : bits, present };
}

/** Decodes definition levels in the older encoding BIT_PACKED, most significant bit first. */
function readBitPacked(source: Uint8Array, rows: number): { bits: Uint8Array | null; present: number } {
  const bits = new Uint8Array(bitmapBytes(rows));
  let present = 0;
  for (let row = 0; row < rows; row++) {
    const bit = (source[row >> 3]! >> (7 - (row & 7))) & 1;
    bits[row >> 3]! |= bit << (row & 7);
    present += bit;
  }
  return { bits: present === rows ? null : bits, present };
}
