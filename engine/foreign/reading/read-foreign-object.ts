import type { ObjectVersion } from '../../store/objects/object-client.js';
import type { ObjectStorage } from '../../store/objects/object-storage.js';
import type { ForeignFile, ForeignFormat } from '../foreign-file.js';
import { readForeignFile } from './read-foreign-file.js';
import { describedRanges } from './read-ranges.js';

/** Describes an object that another program wrote. Throws as `readForeignFile` and `ObjectStorage.withBytes` do. */
export async function readForeignObject(
  objects: ObjectStorage,
  version: ObjectVersion,
  format: ForeignFormat,
): Promise<ForeignFile> {
  const ranges = describedRanges(format, version.bytes);
  return await objects.withBytes(version, ranges, ({ path, copy }) => readForeignFile(path, format, copy));
}
