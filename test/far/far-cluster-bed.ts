import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { FarSettings } from '../../engine/far/far-transport.js';
import { ClickHouseServer, ZooKeeper } from './clickhouse-server.js';

/** Shards of replicas, each a real server on this machine; `close` ends them and deletes their data. */
export class FarClusterBed {
  private constructor(
    readonly folder: string,
    readonly zookeeper: ZooKeeper | undefined,
    /** By shard and replica. */
    readonly servers: readonly (readonly ClickHouseServer[])[],
  ) {}

  /** Starts the servers. */
  static async start(shards: number, replicas: number): Promise<FarClusterBed> {
    const folder = await mkdtemp(join(tmpdir(), 'logstrata-far-'));
    const zookeeper = replicas > 1 ? await ZooKeeper.make(join(folder, 'zookeeper')) : undefined;
    const servers: ClickHouseServer[][] = [];
    for (let shard = 0; shard < shards; shard++) {
      servers.push([]);
      for (let replica = 0; replica < replicas; replica++)
        servers[shard]!.push(
          await ClickHouseServer.make(join(folder, `${shard}-${replica}`), zookeeper?.port ?? null),
        );
    }
    const bed = new FarClusterBed(folder, zookeeper, servers);
    try {
      await zookeeper?.start();
      await Promise.all(servers.flat().map((server) => server.start()));
    } catch (error) {
      // Others may also have ended, because of the same.
      await bed.close().catch(() => undefined);
      throw error;
    }
    return bed;
  }

  settings(database = 'logs'): FarSettings {
    const shards = this.servers.map((replicas) => replicas.map(({ url }) => url));
    return { shards, database, user: 'default', password: '' };
  }

  /** Throws if one of them has ended by itself, which the tests may have seen only as something missing. */
  async close(): Promise<void> {
    const all = [...this.servers.flat(), this.zookeeper];
    const ended = await Promise.allSettled(all.map(async (one) => one?.end()));
    await rm(this.folder, { recursive: true, force: true });
    for (const one of ended) if (one.status === 'rejected') throw one.reason;
  }
}
