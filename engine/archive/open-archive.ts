import { openRealDirectory } from '../store/disk/real-directory.js';
import { connectToWriter, lockForWriting } from '../store/writer/writer-link.js';
import { Archive } from './archive.js';
import type { OpenOptions } from './open-options.js';

/**
 * Opens the data folder at `path`. In write mode the folder is created where missing, and this process becomes its one
 * writer; when another process is, commits go through that one. Throws `locked` when both would be of role `serve`,
 * and `not_found` in read mode when there is no such folder.
 */
export async function openArchive(path: string, options: OpenOptions): Promise<Archive> {
  const directory = await openRealDirectory(path, { create: options.mode === 'write' });
  const archive = new Archive(directory, options, {
    lock: () => lockForWriting(directory.location, options.role),
    connect: () => connectToWriter(directory.location),
  });
  await archive.start();
  return archive;
}
