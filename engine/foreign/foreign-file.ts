import type { ForeignPlace } from '../objects/object-blocks.js';
import type { Column } from '../columns/column.js';
import type { FieldType } from '../core/schema.js';
import { FormatError } from '../parquet/format.js';
import { DamageError, LogstrataError } from '../core/errors.js';
import type { ParquetStorage, SchemaNode } from './parquet-schema.js';
import type { ForeignValues } from './stored-type.js';

/**
 * Description of a file that another program wrote: its columns and where their values are stored. Plain data that is sent
 * to threads and stored as JSON. It is made from the footer (for Arrow, also from the headers of batches) without decoding
 * values.
 */
export interface ForeignFile {
  readonly format: ForeignFormat;
  readonly rows: number;
  /** `xxh64:` and the XXH64 (hex) of what identifies the file, the same in every copy of it: see `isSameFooter`. */
  readonly footerHash: string;
  /** Set for an Arrow stream without an end-of-stream mark: its writer may still be appending. */
  readonly isOpen?: true;
  /** The program that wrote the file, as the file names it; empty where it does not. */
  readonly writtenBy: string;
  /** In the order of the file. A nested column is one entry, whose values are JSON text. */
  readonly columns: readonly ForeignColumn[];
  readonly rowGroups: readonly ForeignRowGroup[];
}

/** Format of a file. */
export type ForeignFormat = 'parquet' | 'arrow';

/** The decoder of a column: `fast` is our own kernels; `complete` reads every type, encoding and codec value by value, which is slower. */
export type ReadingWay = 'fast' | 'complete';

/** A column of a file, and how its values are read. */
export interface ForeignColumn {
  /** The name in the file; see `withDistinctNames` where several columns of the file have the same. */
  readonly name: string;
  /** Parquet's field id, by which some tables know their columns. */
  readonly id?: number;
  /** The field type that holds the column's values without loss where there is one; else `string`. */
  readonly type: FieldType;
  readonly way: ReadingWay;
  /** The type in the terms of its format, for display: `INT64 TIMESTAMP(MICROS)`. */
  readonly stored: string;
  /** Why the column is decoded in the complete way, for display: `nested`, `INT96`; empty for the fast way. */
  readonly reason: string;
  /** How a stored value is converted to a value of `type`. */
  readonly values: ForeignValues;
  /** Whether rows may be null. */
  readonly nullable: boolean;
  /**
   * Set for unsigned 64-bit integers. Their `type` is `int` where the file says that all of its values fit a signed 64-bit integer, which
   * only Parquet can say; else `string`.
   */
  readonly isUnsigned64?: true;
  /** Set where the file's schema says that all values are null, whatever type it gives. */
  readonly isNull?: true;
  /** How Parquet stores the values. Not set for Arrow and for nested columns. */
  readonly parquet?: ParquetStorage;
  /** The column's part of a Parquet schema, by which the complete way reads it. */
  readonly node?: SchemaNode;
  /** The fields of an Arrow structure. */
  readonly parts?: readonly ForeignColumn[];
  /** Of a part of a structure, the way to it from the column, and the number of the column's first leaf in a Parquet schema. */
  readonly inner?: { readonly path: readonly number[]; readonly firstLeaf: number };
}

/** A row group of Parquet, or a record batch of Arrow. */
export interface ForeignRowGroup {
  readonly rows: number;
  /** One per column of the file. */
  readonly chunks: readonly ForeignChunk[];
}

/** The column chunk: the values of a column in a row group. */
export interface ForeignChunk {
  /** Offset in the file of the first page, which may be the dictionary page. For an Arrow batch, the offset of its message. */
  readonly offset: number;
  /** Bytes of all pages with their headers. */
  readonly bytes: number;
  /** The codec's number in `CompressionCodec` of parquet.thrift; 0 for none. */
  readonly codec: number;
  /** As the file claims; no reader relies on it. */
  readonly uncompressedBytes: number;
  /** Number of null rows after conversion to `type`, where NaN and infinite floats become null. Null where it is not known. */
  readonly nullCount: number | null;
  /** Bounds, as values of the column's `type`, that are sure to enclose all values; null where none are known. */
  readonly min: ForeignBound | null;
  readonly max: ForeignBound | null;
  /** Parquet's split-block Bloom filter of the chunk, header included. `bytes` is 0 where the file does not give the length. */
  readonly bloomFilter: { readonly offset: number; readonly bytes: number } | null;
  /** Position of the chunk's `OffsetIndex` (parquet.thrift), which gives the offsets of its pages. */
  readonly offsetIndex?: { readonly offset: number; readonly bytes: number } | undefined;
  /** Of a nested Parquet column, the chunks of its leaves, which lie in the chunk. */
  readonly leaves?: readonly LeafChunk[];
}

/** Where the values of one leaf of the schema are. */
export type LeafChunk = Pick<ForeignChunk, 'offset' | 'bytes' | 'codec' | 'offsetIndex'>;

/** A bound. Integers, times in milliseconds, and booleans as 0 and 1 are decimal text. */
export type ForeignBound =
  | { readonly kind: 'int'; readonly value: string }
  | { readonly kind: 'float'; readonly value: number }
  | { readonly kind: 'text'; readonly value: string };

/** Rows [from, to) of a row group. */
export interface RowSpan {
  readonly from: number;
  readonly to: number;
}

/**
 * The data pages of a chunk. `offsets` has the file offset of each page's header, then the end of the last page. `firstRows`
 * has the row of the row group that each page begins with, then the number of rows of the row group.
 */
export interface PageTable {
  readonly offsets: readonly number[];
  readonly firstRows: readonly number[];
}

/** A request to decode values. Plain data, since another thread decodes. */
export interface ForeignRead extends ForeignPlace {
  readonly format: ForeignFormat;
  /** Number of the column in the file, which the complete way finds it by. */
  readonly columnIndex: number;
  readonly column: ForeignColumn;
  readonly rowGroup: number;
  readonly rowGroupRows: number;
  readonly chunk: ForeignChunk;
  /** The spans that the row group is divided into, ascending and without gaps. */
  readonly spans: readonly RowSpan[];
  /** Index of the span that is wanted. Others that lie in the same pages may be returned with it. */
  readonly wanted: number;
  /** Where only some rows are wanted: their numbers in the row group, ascending. The result is one column of these, as the wanted span. */
  readonly rows?: Uint32Array | undefined;
  /** The pages as an earlier reading found them; null where none did. */
  readonly pages: PageTable | null;
  /**
   * Where `pages` is null: whether the file's own `OffsetIndex` may be used to find them. The chunk is then not read as a
   * whole, so the result has no checksum.
   */
  readonly takesOffsetIndex?: boolean | undefined;
}

/** The rows that are wanted, and those between them. */
export function wantedSpan({ rows, spans, wanted }: ForeignRead): RowSpan {
  return rows === undefined ? spans[wanted]! : { from: rows[0]!, to: rows.at(-1)! + 1 };
}

/** The result of a reading. */
export interface DecodedSpans {
  /** The wanted span and those that were decoded with it. The columns are dense (a null takes a slot) and on the heap. */
  readonly spans: readonly DecodedSpan[];
  /** The pages that were found, for the next reading; null where they are not known, or where the format has none. */
  readonly pages: PageTable | null;
  readonly bytesRead: number;
  /** crc32 of the whole chunk; null where only parts of it were read. */
  readonly checksum: number | null;
  /** Number of invalid UTF-8 sequences in strings that became U+FFFD. */
  readonly replaced: number;
}

/** The decoded rows of one span. */
export interface DecodedSpan {
  /** Index in `ForeignRead.spans`. */
  readonly span: number;
  readonly column: Column;
}

/**
 * Whether two `footerHash`es are of the same file. The hash of a Parquet footer is followed by `+` and a hash of some of the
 * values, because many files may have equal footers; of an object only where it has no bounds. Earlier versions did without, so it
 * is compared where both have it.
 */
export function isSameFooter(a: string, b: string): boolean {
  return a === b || a.startsWith(`${b}+`) || b.startsWith(`${a}+`);
}

/** Gives each column a name of its own: where several have the same, the second becomes `name_2`, unless another column is called so. */
export function withDistinctNames(columns: readonly ForeignColumn[]): ForeignColumn[] {
  const names = new Set(columns.map(({ name }) => name));
  const seen = new Map<string, number>();
  return columns.map((column) => {
    const before = seen.get(column.name);
    seen.set(column.name, before ?? 1);
    if (before === undefined) return column;
    let number = before + 1;
    while (names.has(`${column.name}_${number}`)) number++;
    seen.set(column.name, number);
    names.add(`${column.name}_${number}`);
    return { ...column, name: `${column.name}_${number}` };
  });
}

/**
 * Runs `decode`. Turns a `FormatError` into a `DamageError` with the path, offset, row group and column, and adds the path
 * to any other error that has none.
 */
export async function withErrorsNamed<T>(
  read: ForeignRead,
  decode: (read: ForeignRead) => Promise<T>,
): Promise<T> {
  try {
    return await decode(read);
  } catch (error) {
    const { path, column, rowGroup, chunk } = read;
    const place = `${path}: column "${column.name}" of row group ${rowGroup}`;
    if (error instanceof FormatError) {
      // A contradiction between parts of a column has no offset of its own: name the beginning of the chunk.
      const offset = Math.max(error.offset, chunk.offset);
      const message = `${place}, at byte ${offset}: ${error.message}`;
      throw new DamageError(message, { path, offset, rowGroup, column: column.name, cause: error });
    }
    if (!(error instanceof LogstrataError) || error.path !== undefined) throw error;
    throw new LogstrataError(error.code, `${place}: ${error.message}`, { path, cause: error });
  }
}
