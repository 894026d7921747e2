import { expect, it } from 'vitest';
import { caseCount, fc } from '../cases.js';
import { ReaderArchive } from '../../engine/far/reader-archive.js';
import type { ReadableStore } from '../../engine/archive/reading-store.js';
import { WorkerPool } from '../../engine/workers/worker-pool.js';
import { between, seededRandom } from '../model/random.js';
import { beginning } from '../model/several.js';
import { LyingCluster, LyingDoor } from '../readers/lying-cluster.js';
import { WriterBed } from '../readers/writer-bed.js';
import { filters, SeveralBed } from './several-bed.js';

const workers = new WorkerPool(0);

it('readers on other machines answer several agents as their writer does, wherever the rows are', async () => {
  await fc.assert(
    fc.asyncProperty(fc.integer(), async (seed) => {
      const random = seededRandom(seed);
      const bed = await SeveralBed.open(random, between(random, 2, 4));
      const writer = await WriterBed.start(new Map(bed.stores.map((store) => [store.name, store])));
      const clusters: LyingCluster[] = [];
      const doors = bed.stores.map(() => writer.door());
      const readers = bed.stores.map((store, k): ReadableStore => {
        const cluster = new LyingCluster(store, random);
        clusters.push(cluster);
        const door = new LyingDoor(doors[k]!, store, cluster, random);
        return new ReaderArchive({ writer: door, cluster, lagMsMax: 0, workers }).agent(store.name);
      });
      const known = [beginning];
      for (let step = 0; step < 20; step++) {
        if (step < 5 || random() < 0.3) await bed.commit();
        if (random() < 0.3) await clusters[between(random, 0, clusters.length)]!.ship();
        // Some agents are read from here, others from another machine. Their fields are those of a state.
        for (const reader of readers) await reader.snapshot();
        const [first, ...others] = bed.stores.map((store, k) => (random() < 0.3 ? store : readers[k]!));
        bed.store = first!.joined(others);
        const one = (): string | undefined =>
          random() < 0.5 ? undefined : known[between(random, 0, known.length)];
        const filter = filters[random() < 0.5 ? 0 : between(random, 0, filters.length)]!;
        const query = { limit: between(random, 1, 30), after: one(), before: one() };
        const page = await bed.page(query, filter);
        expect(page, JSON.stringify(query)).toEqual(await bed.expected(query, filter));
        known.push(...page.map(({ _cursor }) => _cursor));
      }
      for (const door of doors) door.close();
      await writer.close();
      await bed.archive.close();
    }),
    { numRuns: caseCount(20, 300) },
  );
}, 120_000);
