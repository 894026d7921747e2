import { existsSync, statSync } from 'node:fs';
import { link, rename, rm } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import { LogstrataError } from '../../../engine/index.js';

/**
 * Checks that a file may be written. Throws `exists` where there is a file and `force` is not set, or a folder, which is never replaced;
 * `not_found` where the folder of the file does not exist.
 */
export function requireFree(path: string, force: boolean | undefined): void {
  const folder = dirname(resolve(path));
  if (!existsSync(folder)) {
    throw new LogstrataError('not_found', `can't write ${path}: the folder ${folder} is not there`, { path });
  }
  const found = statSync(path, { throwIfNoEntry: false });
  if (found?.isDirectory() === true) {
    throw new LogstrataError('exists', `${path} is a folder: name a file in it`, { path });
  }
  if (force === true || found === undefined) return;
  throw new LogstrataError('exists', `${path} already exists; --force replaces it`, { path });
}

/**
 * Moves finished files (`[written, name]`) to their names, so that a name never refers to an incomplete file. Throws like `requireFree`,
 * also for a file that appears meanwhile. The written files are removed even after a failure.
 */
export async function publishFiles(
  files: readonly (readonly [string, string])[],
  force: boolean | undefined,
): Promise<void> {
  try {
    for (const [, path] of files) requireFree(path, force);
    for (const [written, path] of files) {
      // Unlike a rename, a link fails where somebody has created the file meanwhile.
      if (force === true) await rename(written, path);
      else await link(written, path);
    }
  } finally {
    for (const [written] of files) await rm(written, { force: true });
  }
}
