import type { CollectLog } from '../../../agents/collect/logs/collect-log.js';
import type { FarEvent, FarTier } from '../../../engine/index.js';
import { formatBytes, formatCounted } from '../output/figures.js';
import type { Settings } from './settings.js';
import { readSmallText } from './small-text.js';

/**
 * Calls `run` with the far tier of the configuration; with undefined where none is configured. Connects only when the tier is needed, and
 * closes the connections when `run` has ended.
 */
export async function withFar<T>(
  { config }: Settings,
  run: (far: FarTier | undefined) => Promise<T>,
): Promise<T> {
  const { far } = config.storage;
  if (far === null) return run(undefined);
  const { openFarTier, readerLagMsMax } = await import('../../../engine/index.js');
  const { shards, database, user, passwordFile, afterMs, keepLocalMs, bytesPerSecond } = far;
  const password = passwordFile === null ? '' : readSmallText(passwordFile).replace(/\r?\n$/, '');
  const tier = await openFarTier({
    servers: { shards, database, user, password },
    policy: { afterMs, keepLocalMs },
    bytesPerSecond,
    // A reader on another machine may run its query by a state of the writer that is this much older.
    longestQueryMs: config.server.queryTimeoutMs + readerLagMsMax,
  });
  try {
    return await run(tier);
  } finally {
    await tier.cluster.close();
  }
}

/** Logs that a segment was shipped. */
export function logShipped(log: Pick<CollectLog, 'info'>, event: FarEvent): void {
  const { agent, rows, bytes, shard, unit } = event;
  log.info(
    { agent, rows, bytes, shard: shard + 1, unit },
    `agent ${agent}: ${formatCounted(rows, 'record')} shipped to the far tier (${formatBytes(bytes)}, shard ${shard + 1})`,
  );
}
