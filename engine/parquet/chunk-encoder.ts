import { assert } from '../terms/assert.js';
import { plainColumn } from '../columns/take.js';
import type { BytesColumn, Column, PlainColumn } from '../columns/column.js';
import { copyBytes } from '../kernels/copy.js';
import { crc32 } from '../kernels/crc32.js';
import { encodeDelta } from '../kernels/delta.js';
import { encodeLevels, levelBytesMax } from '../kernels/validity.js';
import type { Compress } from './compression.js';
import { heapRoom, type Room } from '../memory/room.js';
import type { EncodeSpace } from './encode-space.js';
import { encoding } from './format.js';
import { writeDataPageHeader, writeDictionaryPageHeader } from './page-header.js';
import { presentValues } from './present-values.js';
import { boundsOf, type Bounds } from './statistics.js';
import {
  encodeBits,
  encodeCodes,
  encodedBytesMax,
  encodeDeltaLengths,
  encodePlain,
  numberColumn,
  renumberColumn,
  type NumberedColumn,
} from './value-encoder.js';

/** A column chunk as it lies in the file: at most a dictionary page, then one data page, each behind its header. */
export interface EncodedChunk {
  readonly bytes: Uint8Array;
  /** Bytes of the dictionary page and its header; 0 for none. */
  readonly dictionaryPageBytes: number;
  readonly uncompressedBytes: number;
  readonly dataEncoding: number;
  readonly rows: number;
  readonly nullCount: number;
  readonly bounds: Bounds | null;
  /** crc32 of `bytes`. */
  readonly checksum: number;
}

/**
 * - `ascending`: DELTA_BINARY_PACKED, for integers that grow from row to row (`_cursor`, time).
 * - `bits`: PLAIN bits, for integers that are 0 or 1 and stand for false and true.
 * - `any`: a dictionary where values repeat, else PLAIN or DELTA_LENGTH_BYTE_ARRAY.
 */
export type ChunkEncoding = 'ascending' | 'bits' | 'any';

/** Rows that decide between the encodings of long strings. Four times as many never decided otherwise, and took a tenth of all LZ4. */
const sampleRows = 1024;

interface Page {
  readonly header: Uint8Array;
  /** One behind another. */
  readonly body: readonly Uint8Array[];
  /** Header and decompressed body. */
  readonly uncompressedBytes: number;
}

interface EncodedValues {
  /** A view of the scratch buffer. */
  readonly bytes: Uint8Array;
  readonly encoding: number;
}

/** Encodes column chunks. Keeps a scratch buffer as large as the largest page so far, so one encoder serves one file. */
export class ChunkEncoder {
  readonly #compressor: Compress;
  #scratch = new Uint8Array(64 * 1024);
  #space: EncodeSpace | null = null;

  constructor(compressor: Compress) {
    this.#compressor = compressor;
  }

  /**
   * Encodes the rows of a column. `optional` columns get definition levels; the others must have no nulls. With `space`,
   * pages are made there.
   */
  encode(
    column: Column,
    as: ChunkEncoding,
    optional: boolean,
    space: EncodeSpace | null = null,
  ): EncodedChunk {
    this.#space = space;
    try {
      return this.#encode(column, as, optional);
    } finally {
      this.#space = null;
    }
  }

  #encode(column: Column, as: ChunkEncoding, optional: boolean): EncodedChunk {
    const rows = column.length;
    const present = presentValues(column);
    const nullCount = rows - present.length;
    assert(optional || nullCount === 0, 'a required column has no nulls');
    const levels = optional ? levelsOf(column, nullCount) : new Uint8Array(0);
    const numbered = as === 'any' ? number(present) : null;
    const dictionaryPage = numbered === null ? null : this.#dictionaryPage(numbered.entries);
    const values = numbered === null ? this.#plainValues(plainColumn(present), as) : this.#codes(numbered);
    const dataPage = this.#dataPage(levels, values, rows, nullCount);
    const bytes = joinPages(dictionaryPage, dataPage, this.#space?.output ?? heapRoom);
    return {
      bytes,
      dictionaryPageBytes: dictionaryPage === null ? 0 : pageBytes(dictionaryPage),
      uncompressedBytes: (dictionaryPage?.uncompressedBytes ?? 0) + dataPage.uncompressedBytes,
      dataEncoding: values.encoding,
      rows,
      nullCount,
      bounds: boundsOf(numbered?.entries ?? plainColumn(present), as === 'bits' ? 1 : 8),
      checksum: crc32(bytes),
    };
  }

  #dictionaryPage(entries: PlainColumn): Page {
    const scratch = this.#room(encodedBytesMax(entries, entries.length));
    const plain = scratch.subarray(0, encodePlain(entries, entries.length, scratch));
    const body = [this.#compress(plain).slice()];
    const header = writeDictionaryPageHeader(body, plain.length, entries.length);
    return { header, body, uncompressedBytes: header.length + plain.length };
  }

  #codes(numbered: NumberedColumn): EncodedValues {
    const scratch = this.#room(numbered.rows * 2 + 64);
    return { bytes: scratch.subarray(0, encodeCodes(numbered, scratch)), encoding: encoding.rleDictionary };
  }

  #plainValues(column: PlainColumn, as: ChunkEncoding): EncodedValues {
    const rows = column.length;
    const scratch = this.#room(encodedBytesMax(column, rows));
    if (rows > 0 && as === 'ascending') {
      assert(column.kind === 'int64', 'only integers are delta encoded');
      const end = encodeDelta(column.values, rows, scratch, 0);
      return { bytes: scratch.subarray(0, end), encoding: encoding.deltaBinaryPacked };
    }
    if (as === 'bits') {
      assert(column.kind === 'int64', 'only integers are written as bits');
      return { bytes: scratch.subarray(0, encodeBits(column, scratch)), encoding: encoding.plain };
    }
    if (rows > 0 && column.kind === 'bytes' && this.#lengthsApartAreSmaller(column)) {
      const end = encodeDeltaLengths(column, rows, scratch);
      return { bytes: scratch.subarray(0, end), encoding: encoding.deltaLengthByteArray };
    }
    return { bytes: scratch.subarray(0, encodePlain(column, rows, scratch)), encoding: encoding.plain };
  }

  #lengthsApartAreSmaller(column: BytesColumn): boolean {
    const rows = Math.min(sampleRows, column.length);
    const scratch = this.#room(encodedBytesMax(column, rows));
    const plainBytes = this.#compress(scratch.subarray(0, encodePlain(column, rows, scratch))).length;
    return this.#compress(scratch.subarray(0, encodeDeltaLengths(column, rows, scratch))).length < plainBytes;
  }

  #dataPage(levels: Uint8Array, values: EncodedValues, rows: number, nullCount: number): Page {
    // A page without values stays uncompressed: DuckDB and ClickHouse fail on an LZ4 buffer of no bytes.
    const packed = values.bytes.length === 0 ? values.bytes : this.#compress(values.bytes);
    const compressed = packed.length < values.bytes.length;
    const content = compressed ? packed : values.bytes;
    const body = [levels, content];
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

  #compress(bytes: Uint8Array): Uint8Array {
    return this.#compressor(bytes, this.#space?.packed);
  }

  #room(bytes: number): Uint8Array {
    if (this.#space !== null && this.#space.page.length >= bytes) return this.#space.page;
    if (this.#scratch.length < bytes) this.#scratch = new Uint8Array(bytes);
    return this.#scratch;
  }
}

function levelsOf(column: Column, nullCount: number): Uint8Array {
  const target = new Uint8Array(levelBytesMax(column.length));
  return target.subarray(0, encodeLevels(nullCount === 0 ? null : column.validity, column.length, target));
}

function number(column: Column): NumberedColumn | null {
  if (column.length === 0) return null;
  return column.kind === 'dictionary' ? renumberColumn(column) : numberColumn(column);
}

/** Header and body. */
function pageBytes({ header, body }: Page): number {
  return body.reduce((sum, { length }) => sum + length, header.length);
}

function joinPages(first: Page | null, second: Page, room: Room): Uint8Array {
  const pages = first === null ? [second] : [first, second];
  const bytes = room(pages.reduce((sum, page) => sum + pageBytes(page), 0));
  let at = 0;
  for (const { header, body } of pages) {
    for (const piece of [header, ...body]) {
      copyBytes(piece, 0, piece.length, bytes, at);
      at += piece.length;
    }
  }
  return bytes;
}
