import { crc32 } from '../../kernels/crc32.js';
import { encoding, FormatError } from '../../parquet/format.js';
import {
  readAnyHeader,
  type AnyDataPageHeader,
  type AnyDictionaryPageHeader,
  type AnyPageHeader,
} from '../../parquet/page-header.js';
import { readThrift, type ThriftBounds } from '../../parquet/thrift-reader.js';
import { headerBytesMax, foreignPagesMax, foreignPageValuesMax, pageBytesMax } from '../../terms/limits.js';
import type { ForeignRead, PageTable, RowSpan } from '../foreign-file.js';
import type { ChunkBytes } from './chunk-bytes.js';

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
 * Finds the pages of a span by reading the headers of all pages in turn. Throws `FormatError` with the offset in the file
 * for headers that contradict each other or the row group.
 */
export function walkPages(bytes: ChunkBytes, { chunk, rowGroupRows }: ForeignRead, span: RowSpan): SpanPages {
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
export function pagesOfTable(
  bytes: ChunkBytes,
  { chunk }: ForeignRead,
  span: RowSpan,
  table: PageTable,
): SpanPages {
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
export function bodyOf(bytes: ChunkBytes, { at, bodyAt, header }: Page): Uint8Array {
  const body = bytes.bytesAt(bodyAt, header.bytes);
  if (header.checksum !== null && crc32(body) !== header.checksum)
    throw new FormatError('the page does not match its checksum', at);
  return body;
}
