import { readFile } from 'node:fs/promises';
import type { CollectLog } from '../../../agents/collect/logs/collect-log.js';
import { fileSystemError, type FarEvent, type FarTier } from '../../../engine/index.js';
import { formatBytes, formatCounted } from '../output/figures.js';
import type { Settings } from './settings.js';

/** Has `run` reach the far tier that the configuration names, if it names one. Nothing is asked of it before it is needed. */
export async function withFar<T>(
  { config }: Settings,
  run: (far: FarTier | undefined) => Promise<T>,
): Promise<T> {
  const { far } = config.storage;
  if (far === null) return run(undefined);
  const { openFarTier, readerLagMsMax } = await import('../../../engine/index.js');
  const { shards, database, user, passwordFile, afterMs, keepLocalMs, bytesPerSecond } = far;
  const password = passwordFile === null ? '' : await readPassword(passwordFile);
  const tier = await openFarTier({
    servers: { shards, database, user, password },
    policy: { afterMs, keepLocalMs },
    bytesPerSecond,
    // A reader on another machine may begin a query by what the writer said so long ago.
    longestQueryMs: config.server.queryTimeoutMs + readerLagMsMax,
  });
  try {
    return await run(tier);
  } finally {
    await tier.cluster.close();
  }
}

/** What a file holds, without the end of its line. */
async function readPassword(path: string): Promise<string> {
  try {
    return (await readFile(path, 'utf8')).replace(/\r?\n$/, '');
  } catch (error) {
    throw fileSystemError(error, 'read', path);
  }
}

/** Says that a segment was shipped. */
export function logShipped(log: Pick<CollectLog, 'info'>, event: FarEvent): void {
  const { agent, rows, bytes, shard, unit } = event;
  log.info(
    { agent, rows, bytes, shard: shard + 1, unit },
    `agent ${agent}: ${formatCounted(rows, 'record')} shipped to the far tier (${formatBytes(bytes)}, shard ${shard + 1})`,
  );
}
