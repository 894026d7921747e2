import { accessSync, constants } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import type { ObjectStorage } from '../../../engine/index.js';
import type { Settings } from './settings.js';

/** In the data folder: no agent has such a name. */
const cacheFolder = '.objects';

/**
 * Has `run` read objects. What is fetched is kept in the data folder; where that is not there yet, or is not ours to write to, it is kept
 * until `run` is over.
 *
 * @param mayMakeData the data folder is made anyway
 */
export async function withObjects<T>(
  { config, dataFolder }: Settings,
  mayMakeData: boolean,
  run: (objects: ObjectStorage) => Promise<T>,
): Promise<T> {
  const { openObjectStorage } = await import('../../../engine/index.js');
  const location = resolve(dataFolder);
  const passing =
    mayMakeData || isWritable(location) ? undefined : await mkdtemp(join(tmpdir(), 'logstrata-'));
  const objects = await openObjectStorage({
    ...config.s3,
    cacheFolder: join(passing ?? location, cacheFolder),
  });
  try {
    return await run(objects);
  } finally {
    await objects.close();
    if (passing !== undefined) await rm(passing, { recursive: true, force: true });
  }
}

function isWritable(folder: string): boolean {
  try {
    accessSync(folder, constants.W_OK);
    return true;
  } catch {
    return false;
  }
}
