import { ofTable, partitionText, type FarCluster } from './far-cluster.js';
import { problemOf } from './far-transport.js';
import { schemaOf, type AgentState } from '../store/reading/agent-state.js';
import { LogstrataError } from '../core/errors.js';
import { checksumThere } from './ship-segment.js';
import type { FarReport, ShipOptions } from '../archive/shipping.js';

/** Asks every replica for the row count and checksum of each unit of its shard, and looks for stray rows. */
export async function verifyFar(
  state: AgentState,
  cluster: FarCluster,
  { signal, onProgress }: ShipOptions,
): Promise<FarReport> {
  const { manifest, agent } = state;
  const shipped = (manifest?.segments ?? []).flatMap((entry) =>
    entry.far === undefined ? [] : [{ entry, far: entry.far }],
  );
  const damages: FarReport['damages'][number][] = [];
  let done = 0;
  for (const { entry, far } of shipped) {
    const schema = schemaOf(manifest!, entry.schemaVersion);
    for (const url of cluster.urlsOf(far.shard)) {
      if (signal?.aborted === true) throw new LogstrataError('cancelled', 'the verification was stopped');
      const reason = await problemOf(async () => {
        const lack = await cluster.lackOf(url, agent, far, signal);
        if (lack !== null) return lack;
        const checksum = await checksumThere(cluster, url, agent, schema, far);
        return checksum === far.checksum ? null : 'its values are not those that were shipped';
      });
      if (reason !== null) damages.push({ url, unit: far.unit, attempt: far.attempt, reason });
    }
    onProgress?.(++done / shipped.length);
  }
  const known = [...shipped.map(({ far }) => far), ...(manifest?.farLeftovers ?? [])];
  const named = new Set(known.map(partitionText));
  const shards = new Set(shipped.map(({ far }) => far.shard));
  const urls = [...shards].flatMap((shard) => cluster.urlsOf(shard));
  const strays: FarReport['strays'][number][] = [];
  for (const url of urls) {
    const sql = `SELECT partition, sum(rows) FROM system.parts WHERE active AND ${ofTable(cluster.settings, agent)} GROUP BY partition`;
    await problemOf(async () => {
      for (const [partition = '', rows] of await cluster.lines(url, sql, { signal }))
        if (!named.has(partition)) strays.push({ url, partition, rows: Number(rows) });
      return null;
    });
  }
  const records = shipped.reduce((sum, { far }) => sum + far.rows, 0);
  return { units: shipped.length, records, replicas: urls.length, damages, strays };
}
