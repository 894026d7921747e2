import { assert } from '../core/errors.js';
import type { BytesColumn, PlainColumn } from '../columns/column.js';
import { copyBytes } from '../kernels/copy.js';
import { crc32 } from '../kernels/crc32.js';
import { encodeDelta } from '../kernels/delta.js';
import { encodeLevels, levelBytesMax } from '../kernels/validity.js';
import type { Compress } from './compression.js';
import type { Arena } from '../core/arena.js';
import type { EncodeSpace } from './column-space.js';
import { encoding } from './format.js';
import { writeDataPageHeader, writeDictionaryPageHeader } from './page-header.js';
import {
  presentValues,
  encodeBits,
  encodeCodes,
  encodeDeltaLengths,
  encodePlain,
  distinctValues,
  type DistinctValues,
} from './value-encoder.js';
import { boundsOf, type Bounds } from './statistics.js';

/** A column chunk in the form that it has in the file: an optional dictionary page, then one data page, each after its header. */
export interface EncodedChunk {
  readonly bytes: Uint8Array;
  /** Bytes of the dictionary page with its header; 0 where there is none. */
  readonly dictionaryPageBytes: number;
  readonly uncompressedBytes: number;
  readonly dataEncoding: number;
  readonly rows: number;
  readonly nullCount: number;
  readonly bounds: Bounds | null;
  /** CRC-32 of `bytes`. */
  readonly checksum: number;
}

/**
 * How the values of a chunk are encoded.
 * - `ascending`: DELTA_BINARY_PACKED, for integers that grow from row to row (`_cursor`, time).
 * - `bits`: PLAIN bits, for integers that are 0 or 1 and stand for false and true.
 * - `any`: a dictionary where values repeat, else PLAIN or DELTA_LENGTH_BYTE_ARRAY.
 */
export type ChunkEncoding = 'ascending' | 'bits' | 'any';

/**
 * Number of first rows by which the encoding of strings is chosen. Four times as many rows never led to another choice, and took a tenth of
 * the time of the LZ4 compression.
 */
const sampleRows = 1024;

interface Page {
  readonly header: Uint8Array;
  /** The pieces of the body, in order. */
  readonly body: readonly Uint8Array[];
  /** Bytes of the header and the decompressed body. */
  readonly uncompressedBytes: number;
}

interface EncodedValues {
  /** In the `page` buffer of the encode space. */
  readonly bytes: Uint8Array;
  readonly encoding: number;
}

/** What a chunk is encoded with. */
interface Encoder {
  readonly compress: Compress;
  readonly space: EncodeSpace;
}

/**
 * Encodes the rows of a column. `optional` columns get definition levels; others must have no nulls. Pages are built in `space`; the result
 * is in memory of `space.output`.
 */
export function encodeChunk(
  column: PlainColumn,
  as: ChunkEncoding,
  optional: boolean,
  compress: Compress,
  space: EncodeSpace,
): EncodedChunk {
  const encoder = { compress, space };
  const rows = column.length;
  const present = presentValues(column);
  const nullCount = rows - present.length;
  assert(optional || nullCount === 0, 'a required column has no nulls');
  const levels = optional ? levelsOf(column, nullCount) : new Uint8Array(0);
  const distinct = as === 'any' && present.length > 0 ? distinctValues(present) : null;
  const dictionary = distinct === null ? null : dictionaryPage(distinct.entries, encoder);
  const values = distinct === null ? encodeValues(present, as, encoder) : encodeDistinct(distinct, encoder);
  const data = dataPage(levels, values, rows, nullCount, encoder);
  const bytes = joinPages(dictionary === null ? [data] : [dictionary, data], space.output);
  return {
    bytes,
    dictionaryPageBytes: dictionary === null ? 0 : pageBytes(dictionary),
    uncompressedBytes: (dictionary?.uncompressedBytes ?? 0) + data.uncompressedBytes,
    dataEncoding: values.encoding,
    rows,
    nullCount,
    bounds: boundsOf(distinct?.entries ?? present, as === 'bits' ? 1 : 8),
    checksum: crc32(bytes),
  };
}

function dictionaryPage(entries: PlainColumn, { compress, space: { page, packed } }: Encoder): Page {
  const plain = page.subarray(0, encodePlain(entries, entries.length, page));
  const body = [compress(plain, packed).slice()];
  const header = writeDictionaryPageHeader(body, plain.length, entries.length);
  return { header, body, uncompressedBytes: header.length + plain.length };
}

function encodeDistinct(distinct: DistinctValues, { space: { page } }: Encoder): EncodedValues {
  return { bytes: page.subarray(0, encodeCodes(distinct, page)), encoding: encoding.rleDictionary };
}

function encodeValues(column: PlainColumn, as: ChunkEncoding, encoder: Encoder): EncodedValues {
  const { page } = encoder.space;
  const rows = column.length;
  let end: number;
  let used: number = encoding.plain;
  if (as === 'bits') {
    assert(column.kind === 'int64', 'only integers are written as bits');
    end = encodeBits(column, page);
  } else if (rows > 0 && as === 'ascending') {
    assert(column.kind === 'int64', 'only integers are delta encoded');
    end = encodeDelta(column.values, rows, page, 0);
    used = encoding.deltaBinaryPacked;
  } else if (rows > 0 && column.kind === 'bytes' && lengthsApartAreSmaller(column, encoder)) {
    end = encodeDeltaLengths(column, rows, page);
    used = encoding.deltaLengthByteArray;
  } else {
    end = encodePlain(column, rows, page);
  }
  return { bytes: page.subarray(0, end), encoding: used };
}

function lengthsApartAreSmaller(
  column: BytesColumn,
  { compress, space: { page, packed } }: Encoder,
): boolean {
  const rows = Math.min(sampleRows, column.length);
  const plainBytes = compress(page.subarray(0, encodePlain(column, rows, page)), packed).length;
  return compress(page.subarray(0, encodeDeltaLengths(column, rows, page)), packed).length < plainBytes;
}

function dataPage(
  levels: Uint8Array,
  values: EncodedValues,
  rows: number,
  nullCount: number,
  { compress, space }: Encoder,
): Page {
  // A page without values stays uncompressed: DuckDB and other readers fail on an empty LZ4 block.
  const packed = values.bytes.length === 0 ? values.bytes : compress(values.bytes, space.packed);
  const compressed = packed.length < values.bytes.length;
  const body = [levels, compressed ? packed : values.bytes];
  const header = writeDataPageHeader(body, {
    uncompressedBytes: levels.length + values.bytes.length,
    rows,
    nullCount,
    encoding: values.encoding,
    levelBytes: levels.length,
    compressed,
  });
  return { header, body, uncompressedBytes: header.length + levels.length + values.bytes.length };
}

function levelsOf(column: PlainColumn, nullCount: number): Uint8Array {
  const target = new Uint8Array(levelBytesMax(column.length));
  return target.subarray(0, encodeLevels(nullCount === 0 ? null : column.validity, column.length, target));
}

/** Bytes of header and body. */
function pageBytes({ header, body }: Page): number {
  return body.reduce((sum, { length }) => sum + length, header.length);
}

function joinPages(pages: readonly Page[], arena: Arena): Uint8Array {
  const bytes = arena(pages.reduce((sum, page) => sum + pageBytes(page), 0));
  let at = 0;
  for (const { header, body } of pages) {
    for (const piece of [header, ...body]) {
      copyBytes(piece, 0, piece.length, bytes, at);
      at += piece.length;
    }
  }
  return bytes;
}
