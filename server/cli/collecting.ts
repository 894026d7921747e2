import { Collection } from '../../agents/collect/collection.js';
import type { CollectLog } from '../../agents/collect/logs/collect-log.js';
import { realLogFiles } from '../../agents/collect/logs/log-files.js';
import { type Archive, WorkerPool, workersDefault } from '../../engine/index.js';
import type { ServedAgents } from './opened-archive.js';
import { retentionOf, type ServerStatus, type Settings } from './options.js';

/** Threads for decoding. One decodes lines faster than a disk delivers them; the second one serves other agents meanwhile. */
const collectThreadsMax = 2;

/** Starts collecting, and returns the collection; undefined where nothing is to be collected. */
export type BeginCollecting = () => Collection | undefined;

/** Calls `run`, which starts collecting the agents' logs and figures by calling `begin`. Collecting stops when `run` has ended. */
export async function whileCollecting<T>(
  archive: Archive,
  served: ServedAgents,
  { config }: Settings,
  flags: { readonly follow: boolean; readonly workers?: number },
  log: CollectLog,
  run: (begin: BeginCollecting) => Promise<T>,
): Promise<T> {
  const leftOut = (): Pick<ServerStatus, 'leftOut'> => ({ leftOut: Object.fromEntries(served.leftOut) });
  if (!flags.follow) {
    archive.provideStatus(leftOut);
    return run(() => undefined);
  }
  // A pool of its own: new lines must not wait for sealing, compaction or scans.
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
    onRefused: (agent, reason) => {
      served.delete(agent);
      served.leftOut.set(agent, reason);
      void collection.remove(agent);
    },
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
    ...leftOut(),
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
