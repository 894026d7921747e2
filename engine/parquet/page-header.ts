import { crc32 } from '../kernels/crc32.js';
import { encoding, pageType } from './format.js';
import { readThrift, type ThriftFields } from './thrift-reader.js';
import { i32, type ThriftStruct, writeThrift } from './thrift-writer.js';

/** The header of a dictionary page that this program has written. */
export interface DictionaryPageHeader {
  readonly kind: 'dictionary';
  /** Bytes of the page after the header, as stored and after decompression. */
  readonly bytes: number;
  readonly uncompressedBytes: number;
  /** CRC-32 of the page after the header. */
  readonly checksum: number;
  readonly entries: number;
}

/** The header of a version 2 data page that this program has written. */
export interface DataPageHeader {
  readonly kind: 'data';
  readonly bytes: number;
  /** Bytes of the levels, which are not compressed, and of the decompressed values. */
  readonly uncompressedBytes: number;
  /** CRC-32 of the page after the header. */
  readonly checksum: number;
  readonly rows: number;
  readonly nullCount: number;
  readonly encoding: number;
  readonly levelBytes: number;
  readonly compressed: boolean;
}

export type PageHeader = DictionaryPageHeader | DataPageHeader;

/** Fields of a page header that was written by any program. */
interface AnyPage {
  readonly bytes: number;
  readonly uncompressedBytes: number;
  /** CRC-32 of the page after the header; null where it is not given. */
  readonly checksum: number | null;
}

/**
 * A data page of version 1 or 2. In version 1 the levels and values are compressed together; `levelBytes` and `nullCount` are unknown and
 * given as 0.
 */
export interface AnyDataPageHeader extends AnyPage, Omit<DataPageHeader, 'checksum'> {
  readonly version: 1 | 2;
  /** Only in version 1: how definition and repetition levels are encoded. */
  readonly levelEncoding: number;
  readonly repetitionEncoding: number;
  /**
   * Only in version 2: bytes of the repetition levels, which precede the definition levels. Some writers have them although no value
   * repeats.
   */
  readonly repetitionBytes: number;
}

export interface AnyDictionaryPageHeader extends AnyPage, Omit<DictionaryPageHeader, 'checksum'> {}

/** A page header that was written by any program. `other` is a page without values, such as an index page. */
export type AnyPageHeader =
  AnyDictionaryPageHeader | AnyDataPageHeader | (AnyPage & { readonly kind: 'other' });

/** The header of a dictionary page, with the CRC-32 of `body`, which is given in pieces. */
export function writeDictionaryPageHeader(
  body: readonly Uint8Array[],
  uncompressedBytes: number,
  entries: number,
): Uint8Array {
  const header = { 1: i32(entries), 2: i32(encoding.plain) };
  return writeThrift({ ...commonFields(pageType.dictionary, uncompressedBytes, body), 7: header });
}

/** The header of a version 2 data page. `body` has the levels, then the values. */
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
  // Thrift only has signed integers; readers interpret the bits as unsigned.
  return { 1: i32(type), 2: i32(uncompressedBytes), 3: i32(bytes), 4: i32(checksum | 0) };
}

/**
 * Reads the page header at offset `at`. Returns it and the offset of the body. Throws `FormatError` for pages that this program does not
 * write.
 *
 * @param end offset where the page must end at the latest; beyond `bytes` where these only have the header
 */
export function readPageHeader(
  bytes: Uint8Array,
  at: number,
  end = bytes.length,
): { header: PageHeader; bodyAt: number } {
  const { fields, end: bodyAt } = readThrift(bytes, at);
  const header = readAnyHeader(fields, end - bodyAt);
  const { checksum } = header;
  if (checksum === null) return fields.fail('the page has no checksum');
  if (header.kind === 'other' || (header.kind === 'data' && header.version === 1))
    return fields.fail('the page is neither a dictionary nor a version 2 data page');
  return { header: { ...header, checksum }, bodyAt };
}

/**
 * Reads a page header that was written by any program. Throws `FormatError` where it contradicts itself, or where the body has more than
 * `bytesMax` bytes.
 */
export function readAnyHeader(fields: ThriftFields, bytesMax: number): AnyPageHeader {
  const type = fields.size(1);
  const page = {
    bytes: fields.size(3),
    uncompressedBytes: fields.size(2),
    checksum: fields.has(4) ? fields.integer(4) >>> 0 : null,
  };
  if (page.bytes > bytesMax) fields.fail(`the page of ${page.bytes} bytes ends after its column chunk`);
  switch (type) {
    case pageType.dictionary:
      return { kind: 'dictionary', ...page, entries: fields.struct(7).size(1) };
    case pageType.dataV1: {
      const data = fields.struct(5);
      const levelEncoding = data.size(3);
      const levels = {
        levelEncoding,
        repetitionEncoding: data.size(4, encoding.rle),
        levelBytes: 0,
        repetitionBytes: 0,
      };
      const rest = { nullCount: 0, compressed: true };
      return {
        kind: 'data',
        version: 1,
        ...page,
        rows: data.size(1),
        encoding: data.size(2),
        ...levels,
        ...rest,
      };
    }
    case pageType.dataV2:
      return { kind: 'data', version: 2, ...page, ...readVersion2(fields.struct(8), page) };
    default:
      return { kind: 'other', ...page };
  }
}

function readVersion2(
  data: ThriftFields,
  page: { readonly bytes: number; readonly uncompressedBytes: number },
): Omit<AnyDataPageHeader, keyof AnyPage | 'kind' | 'version'> {
  const header = {
    rows: data.size(1),
    nullCount: data.size(2),
    encoding: data.size(4),
    levelEncoding: encoding.rle,
    repetitionEncoding: encoding.rle,
    levelBytes: data.size(5),
    repetitionBytes: data.size(6, 0),
    compressed: data.bool(7, true),
  };
  const levelBytes = header.levelBytes + header.repetitionBytes;
  if (header.nullCount > header.rows || levelBytes > Math.min(page.bytes, page.uncompressedBytes))
    data.fail('the page header contradicts itself');
  return header;
}
