import { promises as fs } from 'node:fs';

/** The user and group that own new files. */
export interface Owner {
  readonly uid: number;
  readonly gid: number;
}

/**
 * The owner of everything that this process creates in the folder at `absolute`. When root writes into another user's folder, that user
 * must be able to continue with the files. Undefined if the files may stay the process's own. Throws like `stat`.
 */
export async function ownerFor(absolute: string): Promise<Owner | undefined> {
  if (process.getuid?.() !== 0) return undefined;
  const { uid, gid } = await fs.stat(absolute);
  return uid === 0 ? undefined : { uid, gid };
}
