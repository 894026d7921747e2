import { promises as fs } from 'node:fs';

/** Who is to own what is made. */
export interface Owner {
  readonly uid: number;
  readonly gid: number;
}

/**
 * Whose everything that this process makes in the folder at `absolute` is to be: when root writes into a folder of another user,
 * that user has to go on with it. Undefined when it is the process's own. Fails as `stat` does.
 */
export async function ownerFor(absolute: string): Promise<Owner | undefined> {
  if (process.getuid?.() !== 0) return undefined;
  const { uid, gid } = await fs.stat(absolute);
  return uid === 0 ? undefined : { uid, gid };
}
