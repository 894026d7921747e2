import { isLogstrataError } from '../../terms/errors.js';
import type { Directory, ReadableFile } from './directory.js';

const suffix = '.left';

/** Names of sealed segments. Files with other names may belong to other programs. */
const segmentName = /\/[0-9a-f]{12}-\d{5,}\.parquet$/;

/**
 * The name that a segment's file gets when it has left the manifest and waits for its removal. File patterns for Parquet do not match it,
 * so no other tool counts its records in addition to those of the file that replaced it. Null for a file that is no segment.
 */
export function removalName(path: string): string | null {
  return segmentName.test(`/${path}`) ? path + suffix : null;
}

/** Whether a name in the folder of a day is that of a segment that waits for its removal. */
export function isRemovalName(name: string): boolean {
  return name.endsWith(suffix) && segmentName.test(`/${name.slice(0, -suffix.length)}`);
}

/**
 * Opens a segment's file under its name, or under the name by which it waits for removal, so that queries that read an older manifest can
 * continue.
 */
export async function openSegment(directory: Directory, path: string): Promise<ReadableFile> {
  const renamed = removalName(path);
  try {
    return await directory.openRead(path);
  } catch (error) {
    if (renamed === null || !isLogstrataError(error) || error.code !== 'not_found') throw error;
    // Report the error for the name that was asked for.
    return directory.openRead(renamed).catch(() => {
      throw error;
    });
  }
}
