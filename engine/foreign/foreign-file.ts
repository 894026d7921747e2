import type { Column } from '../columns/column.js';
import type { FieldType } from '../terms/schema.js';

/**
 * What a file that another program wrote says of itself: its columns and where their values lie. Plain data, which is sent to threads and
 * stored as JSON. Reading it reads the footer alone.
 */
export interface ForeignFile {
  readonly format: ForeignFormat;
  readonly rows: number;
  /** `xxh64:` and the XXH64 (hex) of the footer's bytes: the same in every copy of the file. */
  readonly footerHash: string;
  /** A stream without a mark at its end, which may go on. */
  readonly isOpen?: true;
  /** The program that wrote the file, as it calls itself; empty where it does not say. */
  readonly writtenBy: string;
  /** In the order of the file. A nested column is one of these: its values are JSON text. */
  readonly columns: readonly ForeignColumn[];
  readonly rowGroups: readonly ForeignRowGroup[];
}

export type ForeignFormat = 'parquet' | 'arrow';

/** Who decodes a column: our own kernels, or a library that reads everything and takes longer. */
export type ReadingWay = 'fast' | 'complete';

export interface ForeignColumn {
  /** As the file names it. */
  readonly name: string;
  /** The type of field that takes its values without loss, where there is one. */
  readonly type: FieldType;
  readonly way: ReadingWay;
  /** Its type as its format calls it, for people: `INT64 TIMESTAMP(MICROS)`. */
  readonly stored: string;
  /** Why it is read the complete way, for people: `nested`, `INT96`; empty for the fast way. */
  readonly reason: string;
  /** How a stored value becomes a value of `type`. */
  readonly values: ForeignValues;
  /** Whether rows may lack a value. */
  readonly nullable: boolean;
  /** Integers of 64 bits without a sign. Its `type` is `int` in a file whose values all fit into that, else `string`. */
  readonly isUnsigned64?: true;
  /** How Parquet stores its values; not there for Arrow, nor for a nested column. */
  readonly parquet?: ParquetStorage;
}

/** How Parquet stores the values of a column that is not nested. */
export interface ParquetStorage {
  /** Number of the physical type (`Type` of parquet.thrift). */
  readonly type: number;
  /** Bytes of each value of a FIXED_LEN_BYTE_ARRAY; else 0. */
  readonly valueBytes: number;
  /** Whether integers have no sign. */
  readonly isUnsigned: boolean;
  /** Decimal digits behind the point of a DECIMAL that is stored as an integer; else 0. */
  readonly scale: number;
}

/**
 * How stored values become ours. `ticks` are integers since the epoch, `perMs` of them a millisecond, or `ms` milliseconds each: times are
 * rounded down to milliseconds. A time without a zone is taken for UTC.
 */
export type ForeignValues =
  | { readonly kind: 'same' }
  | { readonly kind: 'ticks'; readonly perMs: number; readonly ms: number }
  /** As text: unsigned integers of 64 bits, decimals, UUIDs, times of day, intervals. */
  | { readonly kind: 'text' }
  /** Bytes as text: what is no UTF-8 becomes U+FFFD. */
  | { readonly kind: 'bytes' }
  /** Nested values as JSON. */
  | { readonly kind: 'json' };

export interface ForeignRowGroup {
  readonly rows: number;
  /** One for each column of the file. */
  readonly chunks: readonly ForeignChunk[];
}

/** The values of a column in a row group. */
export interface ForeignChunk {
  /** Offset in the file of its first page, the dictionary's included; of an Arrow batch: of its message. */
  readonly offset: number;
  /** Of all its pages with their headers. */
  readonly bytes: number;
  /** Parquet's number of the codec (`CompressionCodec` of parquet.thrift); 0 for none. */
  readonly codec: number;
  /** As the file says, which nothing relies on. */
  readonly uncompressedBytes: number;
  /** Rows without a value as a column of `type` has them: a float that is no finite number is none. Null where it is not known. */
  readonly nullCount: number | null;
  /** Bounds of the values as values of the column's `type`, sure to enclose all of them; null where nothing is known. */
  readonly min: ForeignBound | null;
  readonly max: ForeignBound | null;
  /** Parquet's split-block Bloom filter of the chunk, with its header. `bytes` is 0 where the file does not say. */
  readonly bloomFilter: { readonly offset: number; readonly bytes: number } | null;
  /** Where Parquet's `OffsetIndex` of the chunk stands, which says where its pages lie. */
  readonly offsetIndex?: { readonly offset: number; readonly bytes: number } | undefined;
}

/** An integer (or time in milliseconds, or 0 and 1 of a bool) as decimal text, a float, or text. */
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
 * Where the pages of a chunk lie. `offsets` has the offset in the file of each data page's header, and of the end of the last page;
 * `firstRows` the row, in the row group, that each begins with, and the rows of the row group.
 */
export interface PageTable {
  readonly offsets: readonly number[];
  readonly firstRows: readonly number[];
}

/** Where a file is. Plain data. */
export interface ForeignPlace {
  /** An absolute path, or that of an object: `s3://bucket/key`. */
  readonly path: string;
  /** What of an object is on this machine. */
  readonly copy?: LocalCopy | undefined;
}

/** A version of an object, parts of which are in a folder of ours. */
export interface LocalCopy {
  /** Absolute. */
  readonly folder: string;
  /** What the folder is called in messages and checksums, whatever folder it is in. */
  readonly name: string;
  /** Of the object. */
  readonly bytes: number;
}

/** Values that are to be read. Plain data: another thread reads them. */
export interface ForeignRead extends ForeignPlace {
  readonly format: ForeignFormat;
  /** Which column, for the complete way, and what it holds. */
  readonly columnIndex: number;
  readonly column: ForeignColumn;
  readonly rowGroup: number;
  readonly rowGroupRows: number;
  readonly chunk: ForeignChunk;
  /** The spans that the row group is divided into, ascending, without gaps. */
  readonly spans: readonly RowSpan[];
  /** The span that is wanted. Others may come with it, where the same pages hold them. */
  readonly wanted: number;
  /** Where it is known from an earlier reading. */
  readonly pages: PageTable | null;
  /** Where it is not, what the file itself says of its pages will do: nobody needs the checksum of all of the chunk. */
  readonly takesOffsetIndex?: boolean | undefined;
}

/** What came of a reading. */
export interface DecodedSpans {
  /** The wanted span, and those that came with it. The columns are dense and lie on the heap. */
  readonly spans: readonly DecodedSpan[];
  /** Where the pages lie, for the next reading; null where that is not known, or means nothing. */
  readonly pages: PageTable | null;
  readonly bytesRead: number;
  /** crc32 of all bytes of the chunk, where all of them were read. */
  readonly checksum: number | null;
  /** Byte sequences in strings that were no UTF-8 and became U+FFFD. */
  readonly replaced: number;
}

export interface DecodedSpan {
  /** Index in the spans of the reading. */
  readonly span: number;
  readonly column: Column;
}
