import { join } from 'node:path';
import { ObjectStorage, type ObjectSettings } from '../../engine/objects/object-storage.js';
import { accessKey, type S3Server } from './s3-server.js';

/** The environment of a process that may read from the test server. */
export const environment: Readonly<Record<string, string>> = {
  AWS_ACCESS_KEY_ID: accessKey.id,
  AWS_SECRET_ACCESS_KEY: accessKey.secret,
  // Suppresses the client's warning about old versions of Node.
  AWS_SDK_JS_NODE_VERSION_SUPPORT_WARNING_DISABLED: 'true',
};

/** Objects of the server, read with its key; retries wait only briefly. */
export function storageOf(
  server: Pick<S3Server, 'endpoint'>,
  folder: string,
  settings: Partial<ObjectSettings> = {},
): ObjectStorage {
  Object.assign(process.env, environment);
  const limits = { retryMs: 1, ...settings.limits };
  const cacheFolder = join(folder, 'objects');
  return new ObjectStorage({ endpoint: server.endpoint, cacheFolder, ...settings, limits });
}
