import type { ForeignPlace, LocalCopy } from '../objects/object-blocks.js';
import type { ObjectVersion } from '../objects/object-client.js';
import type { ObjectStorage } from '../objects/object-storage.js';
import { taskIn, type Finished } from '../workers/task.js';
import { missingBytesMax } from './chunk-bytes.js';
import { decodeParquetCompletely } from './complete-columns.js';
import { decodeArrow, readArrowFile } from './decode-arrow.js';
import { decodeParquet } from './decode-parquet.js';
import {
  wantedSpan,
  type DecodedSpans,
  type ForeignFile,
  type ForeignFormat,
  type ForeignRead,
} from './foreign-file.js';
import { pageRange } from './offset-index.js';
import { readParquetFile } from './read-parquet-file.js';

/**
 * Describes a file that another program wrote. Reads its footer and, of an Arrow file, the headers of its batches. Throws
 * `DamageError` with the path and offset for a file that is malformed or of another format, `unsupported` for one that can't
 * be read, `not_found` and `io`.
 */
export async function readForeignFile(
  path: string,
  format: ForeignFormat,
  copy?: LocalCopy,
): Promise<ForeignFile> {
  const place = { path, copy };
  return format === 'arrow' ? await readArrowFile(place) : await readParquetFile(place);
}

/** Describes an object that another program wrote. Throws as `readForeignFile` and `ObjectStorage.withBytes` do. */
export async function readForeignObject(
  objects: ObjectStorage,
  version: ObjectVersion,
  format: ForeignFormat,
): Promise<ForeignFile> {
  const ranges = describedRanges(format, version.bytes);
  return await objects.withBytes(version, ranges, ({ path, copy }) => readForeignFile(path, format, copy));
}

/** A file to describe. */
export interface DescribeJob extends ForeignPlace {
  readonly format: ForeignFormat;
}

/** Describes another program's file on a worker thread. Throws as `readForeignFile` does. */
export const describeForeignTask = taskIn(import.meta.url, { describeFile }, true);

/** Runs on the worker thread: describes the file. */
export async function describeFile({ path, format, copy }: DescribeJob): Promise<Finished<ForeignFile>> {
  return { result: await readForeignFile(path, format, copy), transfer: [] };
}

/**
 * Reads and decodes a column of a row group of another program's file: the wanted span, and others that come with it. Throws
 * `DamageError` with the path, offset, row group and column, `limit` where too much memory is needed, `unsupported`,
 * `not_found` and `io`.
 */
export async function decodeForeign(read: ForeignRead): Promise<DecodedSpans> {
  if (read.format === 'arrow') return await decodeArrow(read);
  // Our own kernels decode whole pages, which takes longer than a few values do one by one.
  const isFast = read.column.way === 'fast' && read.rows === undefined;
  return await (isFast ? decodeParquet(read) : decodeParquetCompletely(read));
}

/** Bytes [from, to) of a file. */
interface Range {
  readonly from: number;
  readonly to: number;
}

/** Bytes that are fetched from the end of a file, and for Arrow from its beginning too: most footers fit. */
const footerBytes = 64 * 1024;

/** Byte ranges that describing a file of `bytes` bytes most likely needs. */
export function describedRanges(format: ForeignFormat, bytes: number): Range[] {
  const end = { from: Math.max(0, bytes - footerBytes), to: bytes };
  return format === 'arrow' ? [{ from: 0, to: Math.min(bytes, footerBytes) }, end] : [end];
}

/** Byte ranges that a reading needs. Rarely it needs others too. */
export function readRanges(read: ForeignRead): Range[] {
  const { format, column, chunk, pages } = read;
  // The positions of a batch's buffers are known only after its header has been read.
  if (format === 'arrow') return [];
  const whole = { from: chunk.offset, to: chunk.offset + chunk.bytes + missingBytesMax };
  if (pages === null || column.way !== 'fast') return [whole];
  const { offsets } = pages;
  const range = pageRange(pages, wantedSpan(read));
  if (range === null) return [whole];
  return [
    { from: offsets[range.first]!, to: offsets[range.last]! },
    ...(chunk.offset < offsets[0]! ? [{ from: chunk.offset, to: offsets[0]! }] : []),
  ];
}
