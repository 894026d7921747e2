import { readArrowFile } from './decode-arrow.js';
import type { LocalCopy } from '../objects/object-blocks.js';
import type { ForeignFile, ForeignFormat } from './foreign-file.js';
import { readParquetFile } from './read-parquet-file.js';
import type { ObjectVersion } from '../objects/object-client.js';
import type { ObjectStorage } from '../objects/object-storage.js';
import { describedRanges } from './read-ranges.js';

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
