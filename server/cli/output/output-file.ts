import { existsSync, statSync } from 'node:fs';
import { link, rename, rm } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import { LogstrataError } from '../../../engine/index.js';

/**
 * Throws `exists` for a file that would be lost, unless `force` says that it may be, and for a folder, which is never
 * replaced; `not_found` when the folder to write into is not there.
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
  throw new LogstrataError('exists', `${path} is there already; --force replaces it`, { path });
}

/**
 * Gives finished files (`[written, name]`) their names, unless one is taken: what stands under a name is always whole. The
 * files are gone from where they were written, also after a failure.
 */
export async function publishFiles(
  files: readonly (readonly [string, string])[],
  force: boolean | undefined,
): Promise<void> {
  try {
    for (const [, path] of files) requireFree(path, force);
    for (const [written, path] of files) {
      // A link fails where a rename would replace what somebody has put there meanwhile.
      if (force === true) await rename(written, path);
      else await link(written, path);
    }
  } finally {
    for (const [written] of files) await rm(written, { force: true });
  }
}
