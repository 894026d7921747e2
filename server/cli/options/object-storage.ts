import { accessSync, constants } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import type { ObjectStorage } from '../../../engine/index.js';
import type { Settings } from './settings.js';

/** Subfolder of the data folder for the cache. No agent can have this name. */
const cacheFolder = '.objects';

/**
 * Calls `run` with the object storage of the configuration. Fetched data is cached in the data folder; where that does not exist or can't
 * be written, in a temporary folder that is removed when `run` has ended.
 *
 * @param mayMakeData true where the command creates a missing data folder anyway
 */
export async function withObjects<T>(
  { config, dataFolder }: Settings,
  mayMakeData: boolean,
  run: (objects: ObjectStorage) => Promise<T>,
): Promise<T> {
  const { openObjectStorage } = await import('../../../engine/index.js');
  const location = resolve(dataFolder);
  const temporaryFolder =
    mayMakeData || isWritable(location) ? undefined : await mkdtemp(join(tmpdir(), 'logstrata-'));
  const objects = await openObjectStorage({
    ...config.s3,
    cacheFolder: join(temporaryFolder ?? location, cacheFolder),
  });
  try {
    return await run(objects);
  } finally {
    await objects.close();
    if (temporaryFolder !== undefined) await rm(temporaryFolder, { recursive: true, force: true });
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
