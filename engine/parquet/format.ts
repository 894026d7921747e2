/**
 * Numbers of https://github.com/apache/parquet-format/blob/master/src/main/thrift/parquet.thrift, with names for their meanings. The files
 * that this program writes use some of them, and files of other programs the others.
 */

export const magic = Uint8Array.of(0x50, 0x41, 0x52, 0x31);

/** Every file ends with the length of the footer (4 bytes, little-endian) and the magic number. */
export const tailBytes = 8;

/** Parquet's `Type`. */
export const physicalType = {
  boolean: 0,
  int32: 1,
  int64: 2,
  int96: 3,
  float: 4,
  double: 5,
  byteArray: 6,
  fixedLengthBytes: 7,
} as const;
export type PhysicalType = (typeof physicalType)[keyof typeof physicalType];

/** Parquet's `FieldRepetitionType`. */
export const repetition = { required: 0, optional: 1, repeated: 2 } as const;

/** Parquet's `ConvertedType`. */
export const convertedType = { utf8: 0, timestampMillis: 9 } as const;

/** Parquet's `Encoding`. */
export const encoding = {
  plain: 0,
  plainDictionary: 2,
  rle: 3,
  bitPacked: 4,
  deltaBinaryPacked: 5,
  deltaLengthByteArray: 6,
  deltaByteArray: 7,
  rleDictionary: 8,
  byteStreamSplit: 9,
} as const;

/** `lz4` is LZ4_RAW, a plain LZ4 block; `lz4Framed` is the older LZ4 codec. */
export const codecNumber = {
  none: 0,
  snappy: 1,
  gzip: 2,
  lzo: 3,
  brotli: 4,
  lz4Framed: 5,
  zstd: 6,
  lz4: 7,
} as const;

/** Parquet's `PageType`. */
export const pageType = { dataV1: 0, index: 1, dictionary: 2, dataV2: 3 } as const;

/** Bytes that don't follow the format. The reader of a file turns it into a `DamageError` that names the file and the column. */
export class FormatError extends Error {
  /** Offset in the bytes that were being read. */
  readonly offset: number;

  constructor(message: string, offset: number) {
    super(message);
    this.name = 'FormatError';
    this.offset = offset;
  }
}
