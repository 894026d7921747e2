import { crc32 } from '../kernels/crc32.js';
import { encoding, FormatError, pageType } from './format.js';
import { ThriftReader } from './thrift-reader.js';
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
  const reader = new ThriftReader(bytes, at);
  let type = -1;
  let bodyBytes = -1;
  let uncompressedBytes = -1;
  let checksum = 0;
  const fields = new Map<string, number>();
  reader.readStruct((field) => {
    if (field.id === 1) type = reader.size(field);
    else if (field.id === 2) uncompressedBytes = reader.size(field);
    else if (field.id === 3) bodyBytes = reader.size(field);
    else if (field.id === 4) checksum = reader.integer(field) >>> 0;
    else if (field.id === 7 || field.id === 8) readNumbers(reader, `${field.id}.`, fields);
    else reader.skip(field);
  });
  const bodyAt = reader.at;
  if (bodyBytes < 0 || bodyBytes > end - bodyAt)
    throw new FormatError(`a page of ${bodyBytes} bytes does not fit`, at);
  if (uncompressedBytes < 0) throw new FormatError('a page without its uncompressed size', at);
  const number = (key: string): number => {
    const value = fields.get(key);
    if (value === undefined) throw new FormatError(`a page header without field ${key}`, at);
    return value;
  };
  if (type === pageType.dictionary) {
    return {
      header: { kind: 'dictionary', bytes: bodyBytes, uncompressedBytes, checksum, entries: number('7.1') },
      bodyAt,
    };
  }
  if (type !== pageType.dataV2)
    throw new FormatError(`a page of type ${type}, expected a dictionary or version 2 data page`, at);
  const header: DataPageHeader = {
    kind: 'data',
    bytes: bodyBytes,
    uncompressedBytes,
    checksum,
    rows: number('8.1'),
    nullCount: number('8.2'),
    encoding: number('8.4'),
    levelBytes: number('8.5'),
    compressed: fields.get('8.7') !== 0,
  };
  if (header.nullCount > header.rows || header.levelBytes > Math.min(bodyBytes, uncompressedBytes)) {
    throw new FormatError('a page header that contradicts itself', at);
  }
  return { header, bodyAt };
}

function readNumbers(reader: ThriftReader, prefix: string, fields: Map<string, number>): void {
  reader.readStruct((field) => {
    if (field.type === 1 || field.type === 2) fields.set(prefix + field.id, reader.bool(field) ? 1 : 0);
    else if (field.type === 5) fields.set(prefix + field.id, reader.size(field));
    else reader.skip(field);
  });
}
