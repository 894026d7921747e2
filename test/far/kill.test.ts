import { expect, it } from 'vitest';
import { schema, noon } from '../engine/store/memory-archive.js';
import { seededRandom, between } from '../model/random.js';
import type { Value } from '../model/dataset.js';
import { MemoryDirectory } from '../storage-doubles/memory-directory.js';
import { describeWithClickHouse } from './clickhouse-server.js';
import { FarClusterBed } from './far-cluster-bed.js';
import { FarStore, freshName, tierOf } from './far-store.js';

const isLong = process.env['LOGSTRATA_LONG'] === '1';
const rounds = isLong ? 200 : 3;

const rowsOf = (count: number, from: number): Value[][] =>
  Array.from({ length: count }, (_, i) => [
    BigInt(noon - 3_600_000 + from + i),
    BigInt(i),
    i / 4,
    `record ${from + i}`,
  ]);

describeWithClickHouse('shipping and paging while servers, ZooKeeper and the process are killed', () => {
  it('lose nothing, repeat nothing, and answer nothing short', async () => {
    const seed = isLong ? 1 : Date.now();
    const random = seededRandom(seed);
    const bed = await FarClusterBed.start(2, 2);
    const tier = await tierOf(bed.settings());
    const directory = new MemoryDirectory();
    const name = freshName();
    let store = await FarStore.open(tier, schema, name, directory);
    const counts = { refused: 0, whole: 0, shipped: 0, failed: 0 };
    try {
      for (let round = 0, from = 0; round < rounds; round++) {
        const count = between(random, 1, 60);
        await store.load(rowsOf(count, from));
        from += count;
        const servers = bed.servers.flat();
        const server = servers[between(random, 0, servers.length)]!;
        const at = between(random, 1, 25);
        const victim = between(random, 0, 4);
        let asked = 0;
        let isAbandoned = false;
        // At one of the statements of this round something is killed; this process, by never hearing of its answers any more.
        tier.transport.before = async () => {
          if (++asked !== at) return;
          if (victim === 0) await bed.zookeeper!.end();
          else if (victim === 1) isAbandoned = true;
          else await server.end();
        };
        tier.transport.fault = () => (isAbandoned ? 'lost' : undefined);
        const shipping = await store.store.shipFar().then(
          () => 'shipped' as const,
          () => 'failed' as const,
        );
        counts[shipping]++;
        if (isAbandoned) {
          tier.transport.fault = () => undefined;
          const { model } = store;
          await store.close();
          store = await FarStore.open(tier, schema, name, directory, model);
        }
        const query = { limit: between(random, 1, 3000), predicates: [] };
        for (const asking of [
          query,
          { ...query, predicates: [{ kind: 'int', field: 1, op: 'gte', value: 3n }] as const },
        ]) {
          const answer = await store.answer(asking).catch((error: unknown) => error);
          if (typeof answer === 'string')
            expect(answer, `seed ${seed}, round ${round}`).toBe(store.expected(asking));
          else expect(answer).toMatchObject({ code: 'unavailable' });
          counts[typeof answer === 'string' ? 'whole' : 'refused']++;
        }
        tier.transport.before = () => {};
        tier.transport.fault = () => undefined;
        if (victim === 0 && asked >= at) await bed.zookeeper!.start();
        if (victim > 1 && asked >= at) await server.start();
      }
      const all = { limit: 1_000_000, predicates: [] };
      await expect
        .poll(
          () =>
            store.store.shipFar().then(
              () => true,
              () => false,
            ),
          { interval: 500 },
        )
        .toBe(true);
      await expect.poll(() => store.answer(all).catch(() => '')).toBe(store.expected(all));
      expect(counts.whole).toBeGreaterThan(0);
    } finally {
      await store.close();
      await tier.cluster.close();
      await bed.close();
    }
  });
});
