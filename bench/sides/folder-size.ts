import { readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';

/** Sum of the lengths of all files below a folder, in bytes. */
export async function folderBytes(folder: string): Promise<number> {
  let bytes = 0;
  for (const entry of await readdir(folder, { withFileTypes: true, recursive: true })) {
    if (entry.isFile()) bytes += (await stat(join(entry.parentPath, entry.name))).size;
  }
  return bytes;
}
