import type { BytesColumn, Column, NumberColumn, PlainColumn, Validity } from '../columns/column.js';
import { nullColumn } from '../columns/convert-column.js';
import { addBits, bitmapBytes, setRange, countRange } from '../kernels/bitmap.js';
import type { Decompress } from '../parquet/compression.js';
import { FormatError, physicalType } from '../parquet/format.js';
import { LogstrataError } from '../core/errors.js';
import { dictionaryEntriesMax, foreignSpanBytesMax } from '../core/limits.js';
import {
  type DecodedSpan,
  type DecodedSpans,
  type ForeignColumn,
  type ForeignRead,
  withErrorsNamed,
} from './foreign-file.js';
import type { ParquetStorage } from './parquet-schema.js';
import { openPageDecompressor } from './page-codec.js';
import { ChunkBytes } from './chunk-bytes.js';
import {
  hasCodes,
  type SpanPages,
  findPages,
  withPageRoom,
  readDataPage,
  readDictionaryPage,
  type PageReading,
  type StoredPage,
} from './chunk-pages.js';
import {
  BoolPages,
  CodePages,
  convertNumbers,
  isBytes,
  mayDrop,
  NumberPages,
  pageValues,
  StringPages,
  validText,
} from './page-values.js';

/** The decoded rows of consecutive pages. */
interface DecodedPages {
  readonly column: Column;
  readonly replaced: number;
}

/** Parameters of decoding pages. */
interface Decoding {
  readonly column: ForeignColumn;
  readonly stored: ParquetStorage;
  readonly reading: PageReading;
}

/** Collects the values of pages. */
interface PageTarget {
  add(page: StoredPage, row: number): void;
}

/**
 * Decodes a column of a row group of a Parquet file with our own kernels: the pages that hold the wanted span, and all spans
 * that lie wholly in these pages. Where the page positions are unknown, the whole chunk is read once, and only then the
 * result has a checksum. Blocks while it reads and decodes: for worker threads. Throws `DamageError` with the path, offset,
 * row group and column, `unsupported` for a column that needs the complete way, `limit`, `not_found` and `io`.
 */
export async function decodeParquet(read: ForeignRead): Promise<DecodedSpans> {
  return await withErrorsNamed(read, async ({ chunk }) => {
    const decompress = await openPageDecompressor(chunk.codec);
    const bytes = new ChunkBytes(read, chunk);
    try {
      return decodeSpans(read, bytes, decompress);
    } finally {
      bytes.close();
    }
  });
}

function decodeSpans(read: ForeignRead, bytes: ChunkBytes, decompress: Decompress): DecodedSpans {
  const { column, spans, wanted, chunk } = read;
  const stored = column.parquet;
  if (stored === undefined) throw new LogstrataError('unsupported', 'the column is not a Parquet column');
  const span = spans[wanted]!;
  const { found, checksum } = findPages(bytes, read, true);
  const decoded = withPageRoom(found, 0, (room) => {
    const reading = {
      bytes,
      codec: chunk.codec,
      decompress,
      definitionMax: Number(column.nullable),
      repetitionMax: 0,
      room,
    };
    return decodePages(found, { column, stored, reading });
  });
  const firstRow = found.pages[0]?.firstRow ?? span.from;
  const slices: DecodedSpan[] = [];
  for (const [i, { from, to }] of spans.entries()) {
    if (from < firstRow || to > firstRow + decoded.column.length) continue;
    slices.push({ span: i, column: sliceRows(decoded.column, from - firstRow, to - firstRow) });
  }
  const { bytesRead } = bytes;
  return { spans: slices, pages: found.table, bytesRead, checksum, replaced: decoded.replaced };
}

function rowsOf({ pages }: SpanPages): number {
  return pages.reduce((sum, { header }) => sum + header.rows, 0);
}

/** Decodes all rows of the pages. */
function decodePages(found: SpanPages, decoding: Decoding): DecodedPages {
  const { stored, column } = decoding;
  const rows = rowsOf(found);
  if (rows === 0) return { column: nullColumn(column.type, 0), replaced: 0 };
  const pageBytes = found.pages.reduce((sum, { header }) => sum + header.uncompressedBytes, 0);
  // A number takes at most 8 bytes; a string takes its bytes and a 4-byte offset.
  if (Math.max(pageBytes, rows * 8) > foreignSpanBytesMax)
    throw new FormatError(
      `the pages of these rows have more than ${foreignSpanBytesMax} bytes`,
      found.pages[0]!.at,
    );
  if (stored.type === physicalType.boolean) {
    const target = new BoolPages(rows);
    const bits = addPages(found, rows, target, decoding);
    return { column: { ...target.column, validity: bits }, replaced: 0 };
  }
  const entries = dictionaryOf(found, decoding);
  const isCoded = found.pages.every(({ header }) => hasCodes(header.encoding));
  if (isCoded && entries !== null && entries.length > 0 && entries.length <= dictionaryEntriesMax) {
    const { column: own, replaced, dropped } = convertEntries(entries, decoding);
    if (dropped === 0) {
      const target = new CodePages(rows, own);
      const bits = addPages(found, rows, target, decoding);
      return { column: { ...target.column, validity: bits }, replaced };
    }
    // Some entries have no value of the column's type, so rows with them become null: decode without a dictionary.
    return decodePlain(found, rows, decoding, dictionaryOf(found, decoding));
  }
  return decodePlain(found, rows, decoding, entries);
}

/** The dictionary's entries as stored; null where no page refers to them. */
function dictionaryOf({ dictionary, pages }: SpanPages, { stored, reading }: Decoding): PlainColumn | null {
  if (dictionary === null || !pages.some(({ header }) => hasCodes(header.encoding))) return null;
  return pageValues(readDictionaryPage(dictionary, reading), stored) as PlainColumn;
}

/** Converts entries to the column's type. `dropped` is the number of entries that have no value of that type. */
function convertEntries(
  entries: PlainColumn,
  { column, stored }: Decoding,
): { column: PlainColumn; replaced: number; dropped: number } {
  if (entries.kind === 'bytes') return { ...validText(entries), dropped: 0 };
  const bits = mayDrop(column, stored) ? new Uint8Array(bitmapBytes(entries.length)) : null;
  return { ...convertNumbers(entries, column, stored, bits), replaced: 0 };
}

/** Decodes all rows into a column without a dictionary. `entries` are as stored. */
function decodePlain(
  found: SpanPages,
  rows: number,
  decoding: Decoding,
  entries: PlainColumn | null,
): DecodedPages {
  const { stored, column } = decoding;
  if (isBytes(stored)) {
    const pageBytes = found.pages.reduce((sum, { header }) => sum + header.uncompressedBytes, 0);
    const target = new StringPages(rows, pageBytes, stored, entries as BytesColumn | null);
    const bits = addPages(found, rows, target, decoding);
    const text = validText(target.column);
    return { column: { ...text.column, validity: bits }, replaced: text.replaced };
  }
  const target = new NumberPages(rows, stored, entries as NumberColumn | null);
  const bits = addPages(found, rows, target, decoding);
  const numbers = convertNumbers(target.column, column, stored, bits).column;
  return { column: { ...numbers, validity: bits }, replaced: 0 };
}

/** Decodes all pages into the target. Returns the validity bits, 1 = present; null where no row can be null. */
function addPages(
  { pages }: SpanPages,
  rows: number,
  target: PageTarget,
  { column, stored, reading }: Decoding,
): Uint8Array | null {
  const bits = column.nullable || mayDrop(column, stored) ? new Uint8Array(bitmapBytes(rows)) : null;
  let row = 0;
  for (const page of pages) {
    const values = readDataPage(page, reading);
    target.add(values, row);
    if (bits !== null && values.bits === null) setRange(bits, row, row + values.rows);
    else if (bits !== null) addBits(bits, row, values.bits!, 0, (values.rows + 7) >> 3);
    row += values.rows;
  }
  return bits;
}

/** Returns the rows [from, to) of a column. Shares its memory, except for offsets and bits that have to be shifted. */
function sliceRows(column: Column, from: number, to: number): Column {
  const rows = { length: to - from, validity: sliceBits(column.validity, from, to) };
  if (column.kind === 'dictionary') return { ...column, ...rows, codes: column.codes.subarray(from, to) };
  return { ...slicePlain(column, from, to), ...rows };
}

function slicePlain(column: PlainColumn, from: number, to: number): PlainColumn {
  switch (column.kind) {
    case 'int64':
      return { ...column, values: column.values.subarray(from, to) };
    case 'float64':
      return { ...column, values: column.values.subarray(from, to) };
    case 'bytes': {
      const offsets = column.offsets.subarray(from, to + 1);
      const begin = offsets[0]!;
      const bytes = column.bytes.subarray(begin, offsets[to - from]);
      return { ...column, bytes, offsets: begin === 0 ? offsets : offsets.map((offset) => offset - begin) };
    }
  }
}

/** The validity bits of the rows; null where all are present. */
function sliceBits(bits: Validity, from: number, to: number): Validity {
  if (bits === null || countRange(bits, from, to) === to - from) return null;
  const slice = new Uint8Array(bitmapBytes(to - from));
  const shift = from & 7;
  const bytes = (to - from + 7) >> 3;
  for (let i = 0, at = from >> 3; i < bytes; i++, at++)
    slice[i] = (bits[at]! >> shift) | ((bits[at + 1] ?? 0) << (8 - shift));
  if (((to - from) & 7) !== 0) slice[bytes - 1]! &= (1 << ((to - from) & 7)) - 1;
  return slice;
}
