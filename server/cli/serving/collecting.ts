import { Collection } from '../../../agents/collect/collection.js';
import type { CollectLog } from '../../../agents/collect/logs/collect-log.js';
import { realLogFiles } from '../../../agents/collect/logs/log-files.js';
import { type Archive, WorkerPool, workersDefault } from '../../../engine/index.js';
import type { ServedAgent } from '../options/served-agents.js';
import { retentionOf } from '../options/retention.js';
import type { ServerStatus } from '../options/server-status.js';
import type { Settings } from '../options/settings.js';

/** One thread decodes lines faster than a disk delivers them. The second one is for other agents meanwhile. */
const collectThreadsMax = 2;

/** Starts collecting, and gives the collection; there is none where nothing is to be collected. */
export type BeginCollecting = () => Collection | undefined;

/** Collects the logs and figures of the agents while `run` runs, from when it calls `begin`. */
export async function whileCollecting<T>(
  archive: Archive,
  served: Map<string, ServedAgent>,
  { config }: Settings,
  flags: { readonly follow: boolean; readonly workers?: number },
  log: CollectLog,
  run: (begin: BeginCollecting) => Promise<T>,
): Promise<T> {
  if (!flags.follow) return run(() => undefined);
  // Threads of its own: what arrives must not wait for what is sealed, compacted or scanned.
  const workers = new WorkerPool(Math.min(collectThreadsMax, flags.workers ?? workersDefault()));
  const { limit, flushMs, tailTimeoutMs } = config.fileInput;
  const collection = new Collection({
    files: realLogFiles,
    dataFolder: archive.location,
    objects: archive.objects,
    workers,
    log,
    now: Date.now,
    timezone: config.server.timezone,
    limitLines: limit,
    flushMs,
    tailTimeoutMs,
    redefine: async (definition) => {
      const { name, schema } = definition;
      const store = await archive.redefine(name, schema, retentionOf(definition));
      const before = served.get(name);
      if (before !== undefined) served.set(name, { ...before, definition, store });
    },
  });
  archive.provideStatus((): ServerStatus => ({
    collecting: collection.status(),
    importing: collection.importing(),
    attaching: collection.attaching(),
  }));
  for (const agent of served.values()) await collection.add(agent);
  try {
    return await run(() => {
      collection.start();
      return collection;
    });
  } finally {
    await collection.stop();
    await workers.close();
  }
}
