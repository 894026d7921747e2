import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { FarSettings } from '../../engine/store/far/far-place.js';
import { ClickHouseServer, ZooKeeper } from './clickhouse-server.js';

/** Shards of replicas, each a real server on this machine; `close` ends them and deletes their data. */
export class FarClusterBed {
  private constructor(
    readonly folder: string,
    readonly zookeeper: ZooKeeper | undefined,
    /** By shard and replica. */
    readonly servers: readonly (readonly ClickHouseServer[])[],
  ) {}

  /** Starts the servers. Another program may take a port that was free a moment before: then all of them try others. */
  static async start(shards: number, replicas: number, attempts = 3): Promise<FarClusterBed> {
    try {
      return await FarClusterBed.startOnce(shards, replicas);
    } catch (error) {
      if (attempts === 1) throw error;
      return FarClusterBed.start(shards, replicas, attempts - 1);
    }
  }

  private static async startOnce(shards: number, replicas: number): Promise<FarClusterBed> {
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
      await bed.close();
      throw error;
    }
    return bed;
  }

  settings(database = 'logs'): FarSettings {
    const shards = this.servers.map((replicas) => replicas.map(({ url }) => url));
    return { shards, database, user: 'default', password: '' };
  }

  async close(): Promise<void> {
    await Promise.all(this.servers.flat().map((server) => server.end()));
    await this.zookeeper?.end();
    await rm(this.folder, { recursive: true, force: true });
  }
}
