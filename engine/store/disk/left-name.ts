import { isLogstrataError } from '../../terms/errors.js';
import type { Directory, ReadableFile } from './directory.js';

const suffix = '.left';

/** Names of sealed segments. A name that another program may have given is none. */
const segmentName = /\/[0-9a-f]{12}-\d{5,}\.parquet$/;

/**
 * The name of a segment's file that has left the manifest and waits for its removal: patterns for Parquet files don't find it, so that no other tool
 * counts its records beside those of the file which took its place. Null for a file that is no segment.
 */
export function leftName(path: string): string | null {
  return segmentName.test(`/${path}`) ? path + suffix : null;
}

/** Whether a name in the folder of a day is that of a segment which waits for its removal. */
export function isLeftName(name: string): boolean {
  return name.endsWith(suffix) && segmentName.test(`/${name.slice(0, -suffix.length)}`);
}

/** Opens the file of a segment by its name, or where it waits for its removal: who read the manifest before may go on reading it. */
export async function openSegment(directory: Directory, path: string): Promise<ReadableFile> {
  const left = leftName(path);
  try {
    return await directory.openRead(path);
  } catch (error) {
    if (left === null || !isLogstrataError(error) || error.code !== 'not_found') throw error;
    // What is told is the name that was asked for.
    return directory.openRead(left).catch(() => {
      throw error;
    });
  }
}
