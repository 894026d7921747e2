import { bitmapBytes } from '../../kernels/bitmap.js';
import { decodeLevels } from '../../kernels/validity.js';
import type { Arena } from '../../memory/arena.js';
import type { Decompress } from '../../parquet/compression.js';
import { codecNumber, encoding, FormatError } from '../../parquet/format.js';
import { bodyOf, type DataPage, type DictionaryPage } from './chunk-pages.js';
import type { ChunkBytes } from './chunk-bytes.js';

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
