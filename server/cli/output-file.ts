import { existsSync } from 'node:fs';
import { link, rename, rm } from 'node:fs/promises';
import { LogstrataError } from '../../engine/errors.js';

/** Throws `exists` for a file that would be lost, unless `force` says that it may be. */
export function requireFree(path: string, force: boolean | undefined): void {
  if (force === true || !existsSync(path)) return;
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
