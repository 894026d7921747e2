import { crc32 } from '../kernels/crc32.js';
import { encoding, FormatError, codecNumber } from '../parquet/format.js';
import {
  readAnyHeader,
  type AnyDataPageHeader,
  type AnyDictionaryPageHeader,
  type AnyPageHeader,
} from '../parquet/page-header.js';
import { readThrift, type ThriftBounds } from '../parquet/thrift-reader.js';
import { LogstrataError } from '../core/errors.js';
import { headerBytesMax, foreignPagesMax, foreignPageValuesMax, pageBytesMax } from '../core/limits.js';
import {
  wantedSpan,
  type ForeignRead,
  type LeafChunk,
  type PageTable,
  type RowSpan,
} from './foreign-file.js';
import type { ChunkBytes } from './chunk-bytes.js';
import { withKeptScratch } from '../core/scratch.js';
import type { Arena } from '../core/arena.js';
import { pageRange, readOffsetIndex } from './offset-index.js';
import { bitmapBytes } from '../kernels/bitmap.js';
import { decodeHybrid, largestCode } from '../kernels/bit-packing.js';
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
  /** Number of rows, where a table of the pages gives it. */
  readonly rows?: number;
}

/** A page with the entries of the chunk's dictionary. */
export type DictionaryPage = Page<AnyDictionaryPageHeader>;

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
 * Reads the headers of all pages in turn. Throws `FormatError` with the offset in the file for headers that contradict each other.
 */
export function* eachPage(bytes: ChunkBytes): Generator<Page> {
  let at = bytes.begin;
  for (let count = 0; at < bytes.end; count++) {
    if (count === foreignPagesMax)
      throw new FormatError(`the column chunk has more than ${foreignPagesMax} pages`, at);
    const page = readPage(bytes, at);
    if (isDictionary(page) && count > 0)
      throw new FormatError('a dictionary page follows another page', page.at);
    yield page;
    at = page.bodyAt + page.header.bytes;
  }
}

/** Finds the pages of a span of a column that is not nested. Throws as `eachPage` does, and for pages that contradict the row group. */
function walkPages(bytes: ChunkBytes, { rowGroupRows }: ForeignRead, span: RowSpan): SpanPages {
  let dictionary: DictionaryPage | null = null;
  const pages: DataPage[] = [];
  const offsets: number[] = [];
  const firstRows: number[] = [];
  let row = 0;
  let at = bytes.begin;
  for (const page of rowGroupRows === 0 ? [] : eachPage(bytes)) {
    at = page.bodyAt + page.header.bytes;
    if (isDictionary(page)) dictionary = page;
    if (!isData(page) || page.header.rows === 0) continue;
    const end = row + page.header.rows;
    if (end > rowGroupRows)
      throw new FormatError(`the pages have more rows than the ${rowGroupRows} of the row group`, at);
    if (row < span.to && end > span.from) pages.push({ ...page, firstRow: row });
    offsets.push(page.at);
    firstRows.push(row);
    row = end;
    if (row === rowGroupRows) break;
  }
  if (row < rowGroupRows)
    throw new FormatError(`the pages have ${row} rows, but the row group has ${rowGroupRows}`, at);
  return { dictionary, pages, table: { offsets: [...offsets, at], firstRows: [...firstRows, row] } };
}

/** Finds the pages of a span by a known page table. Reads only their headers, and the dictionary page's. Throws as `walkPages` does. */
function pagesOfTable(bytes: ChunkBytes, span: RowSpan, table: PageTable): SpanPages {
  const pages = tabledPages(bytes, span, table);
  for (const { at, header, rows } of pages)
    if (header.rows !== rows)
      throw new FormatError(`expected a data page of ${rows} rows here, as before`, at);
  const isCoded = pages.some(({ header }) => hasCodes(header.encoding));
  return { dictionary: isCoded ? tabledDictionary(bytes, table) : null, pages, table };
}

/** The data pages that hold a span, and the number of rows that the table gives each. Throws as `walkPages` does. */
export function tabledPages(bytes: ChunkBytes, span: RowSpan, table: PageTable): DataPage[] {
  const { offsets, firstRows } = table;
  const range = pageRange(table, span);
  if (range === null) throw new FormatError('no page has the wanted rows', bytes.begin);
  const { first, last } = range;
  bytes.readAhead(offsets[first]!, offsets[last]!);
  return Array.from({ length: last - first }, (_, i) => {
    const page = readPage(bytes, offsets[first + i]!, offsets[first + i + 1]!);
    if (!isData(page)) throw new FormatError('expected a data page here, as before', page.at);
    const firstRow = firstRows[first + i]!;
    return { ...page, firstRow, rows: firstRows[first + i + 1]! - firstRow };
  });
}

/** The dictionary page of a chunk whose data pages are known; null where it has none. */
export function tabledDictionary(bytes: ChunkBytes, { offsets }: PageTable): DictionaryPage | null {
  if (bytes.begin >= offsets[0]!) return null;
  bytes.readAhead(bytes.begin, offsets[0]!);
  const page = readPage(bytes, bytes.begin, offsets[0]!);
  return isDictionary(page) ? page : null;
}

/** Whether a page holds the entries of the chunk's dictionary. */
export function isDictionary(page: Page): page is DictionaryPage {
  return page.header.kind === 'dictionary';
}

/** Whether a page holds values. */
export function isData(page: Page): page is Page<AnyDataPageHeader> {
  return page.header.kind === 'data';
}

/** Reads the header of the page at offset `at`; header and body end at `end` at the latest. */
function readPage(bytes: ChunkBytes, at: number, end = bytes.end): Page {
  const most = Math.min(end - at, headerBytesMax);
  for (let length = Math.min(most, headerBytesUsual); ; length = Math.min(most, 2 * length)) {
    try {
      const { fields, end: headerBytes } = readThrift(bytes.bytesAt(at, length), 0, headerBounds);
      const header = readAnyHeader(fields, bytes.pagesEnd - at - headerBytes);
      checkClaims(header, at, bytes.isCompressed);
      return { at, bodyAt: at + headerBytes, header };
    } catch (error) {
      if (!(error instanceof FormatError)) throw error;
      if (length >= most) throw new FormatError(`the page header is malformed: ${error.message}`, at);
    }
  }
}

/**
 * Throws `limit` for a page that claims more bytes than the limit, and `FormatError` where an uncompressed one does, or for too
 * many values, because decoding allocates what the header claims.
 */
function checkClaims(header: AnyPageHeader, at: number, isCompressed: boolean): void {
  const bytes = Math.max(header.bytes, header.uncompressedBytes);
  if (header.kind !== 'other' && bytes > pageBytesMax) {
    const message = `the page has ${bytes} bytes, more than the maximum of ${pageBytesMax}`;
    throw isCompressed ? new LogstrataError('limit', message) : new FormatError(message, at);
  }
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
  const span = wantedSpan(read);
  if (read.pages !== null) return { found: pagesOfTable(bytes, span, read.pages), checksum: null };
  const told = pagesAsTold(bytes, read, span);
  if (told !== null) return { found: told, checksum: null };
  const checksum = wantsChecksum ? bytes.readWhole() : null;
  if (!wantsChecksum) bytes.readAhead(read.chunk.offset, bytes.end);
  return { found: walkPages(bytes, read, span), checksum };
}

/**
 * Finds the pages of a span by the file's `OffsetIndex`. Null where there is none or it may not be used, where it would save
 * nothing (all rows), or where it does not agree with the pages.
 */
function pagesAsTold(bytes: ChunkBytes, read: ForeignRead, span: RowSpan): SpanPages | null {
  const { chunk, rowGroupRows, takesOffsetIndex } = read;
  if (takesOffsetIndex !== true || span.to - span.from === rowGroupRows) return null;
  const table = tableAsTold(bytes, chunk, rowGroupRows);
  if (table === null) return null;
  try {
    return pagesOfTable(bytes, span, table);
  } catch (error) {
    if (!(error instanceof FormatError)) throw error;
    return null;
  }
}

/** The table of pages that the file's `OffsetIndex` gives; null where there is none that may be right. */
export function tableAsTold(bytes: ChunkBytes, chunk: LeafChunk, rowGroupRows: number): PageTable | null {
  const place = chunk.offsetIndex;
  if (place === undefined) return null;
  return readOffsetIndex(bytes.bytesBeside(place.offset, place.bytes), chunk, rowGroupRows);
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
  /** The largest levels. Without levels, an entry is a row, and has a value. */
  readonly definitionMax: number;
  readonly repetitionMax: number;
  /** Allocates the buffer that a page is decompressed to. */
  readonly room: Arena;
}

/** Reads the entries of a dictionary page. Throws `FormatError` for a page that can't be read, or that contradicts its header. */
export function readDictionaryPage(page: DictionaryPage, reading: PageReading): StoredPage {
  const { entries, uncompressedBytes } = page.header;
  const values = decompressed(page, bodyOf(reading.bytes, page), uncompressedBytes, reading);
  return { rows: entries, present: entries, bits: null, encoding: encoding.plain, values, at: page.at };
}

/** Reads the values of a data page of a column that is not nested. Throws as `readDictionaryPage` does. */
export function readDataPage(page: Page<AnyDataPageHeader>, reading: PageReading): StoredPage {
  const { header, at } = page;
  const { rows } = header;
  const { definitions, values } = partsOf(page, reading);
  const bits = definitions === null ? null : new Uint8Array(bitmapBytes(rows));
  let present = rows;
  if (definitions?.isBitPacked === true) {
    present = 0;
    for (const [row, level] of levelsOf(definitions, 1, rows, at).entries()) {
      bits![row >> 3]! |= level << (row & 7);
      present += level;
    }
  } else if (definitions !== null) {
    present = decodeLevels(definitions.bytes, 0, definitions.bytes.length, rows, bits!);
    if (present < 0) throw new FormatError('the levels are malformed', at);
  }
  const own = { encoding: header.encoding, values: values(), at };
  return { rows, present, bits: present === rows ? null : bits, ...own };
}

/** The entries of a data page: one for each value and each missing value, with its levels. */
export interface EntryPage {
  readonly entries: number;
  /** Definition levels; null where every entry has a value. */
  readonly definitions: Uint16Array | null;
  /** Repetition levels; null where every entry is a row. */
  readonly repetitions: Uint16Array | null;
  /** Gives the values of the entries that have one. In pages of version 2 only these are compressed. */
  readonly stored: () => StoredPage;
}

/** Reads the entries of a data page of any column. Throws as `readDictionaryPage` does. */
export function readEntryPage(page: Page<AnyDataPageHeader>, reading: PageReading): EntryPage {
  const { header, at } = page;
  const { definitionMax, repetitionMax } = reading;
  const parts = partsOf(page, reading);
  const levels = (stored: StoredLevels | null, max: number): Uint16Array | null =>
    stored === null ? null : levelsOf(stored, max, header.rows, at);
  const repetitions = levels(parts.repetitions, repetitionMax);
  const definitions = levels(parts.definitions, definitionMax);
  const stored = (): StoredPage => {
    let present = 0;
    if (definitions === null) present = header.rows;
    else for (let i = 0; i < header.rows; i++) present += Number(definitions[i] === definitionMax);
    const own = present === 0 ? encoding.plain : header.encoding;
    return { rows: present, present, bits: null, encoding: own, values: parts.values(), at };
  };
  return { entries: header.rows, definitions, repetitions, stored };
}

/** Levels as they are stored: in the RLE/bit-packing hybrid, or in the older encoding BIT_PACKED. */
interface StoredLevels {
  readonly bytes: Uint8Array;
  readonly isBitPacked: boolean;
}

interface PageParts {
  readonly repetitions: StoredLevels | null;
  readonly definitions: StoredLevels | null;
  readonly values: () => Uint8Array;
}

function partsOf(page: Page<AnyDataPageHeader>, reading: PageReading): PageParts {
  const { header, at } = page;
  const { definitionMax, repetitionMax } = reading;
  const body = bodyOf(reading.bytes, page);
  if (header.version === 2) {
    const { repetitionBytes } = header;
    const levelsEnd = repetitionBytes + header.levelBytes;
    const part = (max: number, from: number, to: number): StoredLevels | null =>
      max === 0 ? null : { bytes: body.subarray(from, to), isBitPacked: false };
    const stored = body.subarray(levelsEnd);
    // Where all rows are null, some writers store no bytes although the header says that they are compressed.
    const isCompressed = header.compressed && stored.length > 0;
    return {
      repetitions: part(repetitionMax, 0, repetitionBytes),
      definitions: part(definitionMax, repetitionBytes, levelsEnd),
      values: () =>
        isCompressed ? decompressed(page, stored, header.uncompressedBytes - levelsEnd, reading) : stored,
    };
  }
  const content = decompressed(page, body, header.uncompressedBytes, reading);
  let end = 0;
  const part = (max: number, levelEncoding: number): StoredLevels | null => {
    if (max === 0) return null;
    const isBitPacked = levelEncoding === encoding.bitPacked;
    const from = isBitPacked ? end : end + 4;
    const bytes = isBitPacked
      ? Math.ceil((header.rows * bitsOf(max)) / 8)
      : from > content.length
        ? Infinity
        : new DataView(content.buffer, content.byteOffset).getUint32(end, true);
    if (bytes > content.length - from) throw new FormatError('the levels are longer than their page', at);
    end = from + bytes;
    return { bytes: content.subarray(from, end), isBitPacked };
  };
  const repetitions = part(repetitionMax, header.repetitionEncoding);
  const definitions = part(definitionMax, header.levelEncoding);
  return { repetitions, definitions, values: () => content.subarray(end) };
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

/** Number of bits that integers up to `max` need. */
function bitsOf(max: number): number {
  return 32 - Math.clz32(max);
}

/** Decodes `count` levels. Throws `FormatError` for malformed ones, and for one above `max`. */
function levelsOf({ bytes, isBitPacked }: StoredLevels, max: number, count: number, at: number): Uint16Array {
  const levels = new Uint16Array(count);
  const width = bitsOf(max);
  let isValid = true;
  // The older encoding begins with the most significant bit.
  if (isBitPacked)
    for (let i = 0, bit = 0; i < count; i++)
      for (const end = bit + width; bit < end; bit++)
        levels[i] = 2 * levels[i]! + ((bytes[bit >> 3]! >>> (7 - (bit & 7))) & 1);
  else isValid = decodeHybrid(bytes, 0, count, width, levels) >= 0;
  if (!isValid || largestCode(levels, count) > max) throw new FormatError('the levels are malformed', at);
  return levels;
}
