/**
 * The numbers of https://github.com/apache/parquet-format/blob/master/src/main/thrift/parquet.thrift that our files
 * use, and the names of what they mean here.
 */

export const magic = Uint8Array.of(0x50, 0x41, 0x52, 0x31);

/** The footer's length (4 bytes, little-endian) and the magic number end every file. */
export const tailBytes = 8;

export const physicalType = { boolean: 0, int64: 2, double: 5, byteArray: 6 } as const;
export type PhysicalType = (typeof physicalType)[keyof typeof physicalType];

export const repetition = { required: 0, optional: 1 } as const;

export const convertedType = { utf8: 0, timestampMillis: 9 } as const;

export const encoding = {
  plain: 0,
  rle: 3,
  deltaBinaryPacked: 5,
  deltaLengthByteArray: 6,
  rleDictionary: 8,
} as const;

export const codecNumber = { zstd: 6, lz4: 7 } as const;

export const pageType = { dictionary: 2, dataV2: 3 } as const;

/** Bytes that are not what the format says. The reader of a file turns it into a `DamageError` with file and column. */
export class FormatError extends Error {
  /** Offset in the bytes that were being read. */
  readonly offset: number;

  constructor(message: string, offset: number) {
    super(message);
    this.name = 'FormatError';
    this.offset = offset;
  }
}
