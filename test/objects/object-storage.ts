import { join } from 'node:path';
import { ObjectStorage, type ObjectSettings } from '../../engine/store/objects/object-storage.js';
import { accessKey, type S3Server } from './s3-server.js';

/** The environment that a process has which may read from the server of the tests. */
export const environment: Readonly<Record<string, string>> = {
  AWS_ACCESS_KEY_ID: accessKey.id,
  AWS_SECRET_ACCESS_KEY: accessKey.secret,
  // What the client says of old versions of Node is none of ours.
  AWS_SDK_JS_NODE_VERSION_SUPPORT_WARNING_DISABLED: 'true',
};

/** Objects of the server, read with its key; what is tried again waits a moment only. */
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
