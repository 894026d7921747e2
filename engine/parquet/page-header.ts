import { crc32 } from '../kernels/crc32.js';
import { encoding, pageType } from './format.js';
import { readThrift } from './thrift-reader.js';
import { i32, type ThriftStruct, writeThrift } from './thrift-writer.js';

export interface DictionaryPageHeader {
  readonly kind: 'dictionary';
  /** Bytes of the page behind the header, and what they decompress to. */
  readonly bytes: number;
  readonly uncompressedBytes: number;
  /** crc32 of the page behind the header. */
  readonly checksum: number;
  readonly entries: number;
}

export interface DataPageHeader {
  readonly kind: 'data';
  readonly bytes: number;
  /** Of the levels, which are not compressed, and the decompressed values. */
  readonly uncompressedBytes: number;
  /** crc32 of the page behind the header. */
  readonly checksum: number;
  readonly rows: number;
  readonly nullCount: number;
  readonly encoding: number;
  readonly levelBytes: number;
  readonly compressed: boolean;
}

export type PageHeader = DictionaryPageHeader | DataPageHeader;

/** Header of a dictionary page with the crc32 of `body`, whose pieces stand one behind another. */
export function writeDictionaryPageHeader(
  body: readonly Uint8Array[],
  uncompressedBytes: number,
  entries: number,
): Uint8Array {
  const header = { 1: i32(entries), 2: i32(encoding.plain) };
  return writeThrift({ ...commonFields(pageType.dictionary, uncompressedBytes, body), 7: header });
}

/** Header of a version 2 data page of `body`: levels, then values. */
export function writeDataPageHeader(
  body: readonly Uint8Array[],
  header: Omit<DataPageHeader, 'kind' | 'bytes' | 'checksum'>,
): Uint8Array {
  return writeThrift({
    ...commonFields(pageType.dataV2, header.uncompressedBytes, body),
    8: {
      1: i32(header.rows),
      2: i32(header.nullCount),
      3: i32(header.rows),
      4: i32(header.encoding),
      5: i32(header.levelBytes),
      6: i32(0),
      7: header.compressed,
    },
  });
}

function commonFields(type: number, uncompressedBytes: number, body: readonly Uint8Array[]): ThriftStruct {
  const bytes = body.reduce((sum, { length }) => sum + length, 0);
  const checksum = body.reduce((sum, piece) => crc32(piece, sum), 0);
  // Thrift has signed integers only; readers take the bits.
  return { 1: i32(type), 2: i32(uncompressedBytes), 3: i32(bytes), 4: i32(checksum | 0) };
}

/**
 * Reads the page header at `at`. Throws `FormatError` for anything but the two kinds of page that we write.
 *
 * @param end where the page must end at the latest, counted as `at` is; beyond `bytes` where only the header is in them
 */
export function readPageHeader(
  bytes: Uint8Array,
  at: number,
  end = bytes.length,
): { header: PageHeader; bodyAt: number } {
  const { fields, end: bodyAt } = readThrift(bytes, at);
  const type = fields.size(1);
  const sizes = {
    bytes: fields.size(3),
    uncompressedBytes: fields.size(2),
    checksum: fields.integer(4) >>> 0,
  };
  if (sizes.bytes > end - bodyAt) fields.fail(`a page of ${sizes.bytes} bytes does not fit`);
  if (type === pageType.dictionary) {
    return { header: { kind: 'dictionary', ...sizes, entries: fields.struct(7).size(1) }, bodyAt };
  }
  if (type !== pageType.dataV2)
    fields.fail(`a page of type ${type}, expected a dictionary or version 2 data page`);
  const data = fields.struct(8);
  const header: DataPageHeader = {
    kind: 'data',
    ...sizes,
    rows: data.size(1),
    nullCount: data.size(2),
    encoding: data.size(4),
    levelBytes: data.size(5),
    compressed: data.bool(7),
  };
  if (
    header.nullCount > header.rows ||
    header.levelBytes > Math.min(header.bytes, header.uncompressedBytes)
  ) {
    fields.fail('a page header that contradicts itself');
  }
  return { header, bodyAt };
}
