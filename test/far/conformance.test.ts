import { afterAll, beforeAll } from 'vitest';
import { isLong } from '../cases.js';
import { ChdbDoor } from '../../bench/far/chdb-door.js';
import type { FarSettings } from '../../engine/far/far-transport.js';
import type { Answerer } from '../conformance/answerer.js';
import { beginInProcess } from '../conformance/in-process.js';
import { runConformance } from '../conformance/runner.js';
import { load, openOn, textOf } from '../engine/store/memory-archive.js';
import { MemoryDirectory } from '../storage-doubles/memory-directory.js';
import { describeWithClickHouse } from './clickhouse-server.js';
import { FarClusterBed } from './far-cluster-bed.js';
import { tierOf, type TestTier } from './far-store.js';
import { describeWithChdb } from './with-chdb.js';

interface Bed {
  settings(): FarSettings;
  close(): Promise<void>;
}

function testsOn(start: () => Promise<Bed>): void {
  let bed: Bed;
  let tier: TestTier;

  beforeAll(async () => {
    bed = await start();
    tier = await tierOf(bed.settings());
  });
  afterAll(async () => {
    await tier.cluster.close();
    await bed.close();
  });

  /** An engine that ships the commits whose numbers satisfy `isShipped`, and all earlier ones. */
  function farAnswerer(name: string, isShipped: (commit: number) => boolean): Answerer {
    return {
      name,
      isHttp: false,
      open: async (dataset) => {
        const directory = new MemoryDirectory();
        const now = () => dataset.nowMs;
        const open = () => openOn(directory, now, undefined, { far: tier });
        let archive = await open();
        let store = await archive.agent(dataset.name, dataset.schema);
        let commits = 0;
        return {
          commit: async ({ records }) => {
            await load(
              store,
              records.map(({ values }) => values),
            );
            if (isShipped(commits++)) await store.shipFar();
          },
          begin: (request) =>
            beginInProcess(dataset, request, async (query) => {
              const { lines } = await store.scan(query);
              return () => textOf(lines);
            }),
          restart: async () => {
            await archive.close();
            archive = await open();
            store = await archive.agent(dataset.name, dataset.schema);
          },
          compact: async () => {
            await store.compact();
          },
          close: () => archive.close(),
        };
      },
    };
  }

  if (isLong) runConformance(farAnswerer('the engine, all in the far tier', () => true));
  runConformance(farAnswerer('the engine, near and far by turns', (commit) => commit % 2 === 0));
}

describeWithClickHouse('the conformance cases with a far tier on ClickHouse of 2018', () =>
  testsOn(() => FarClusterBed.start(2, 1)),
);
describeWithChdb('the conformance cases with a far tier on current ClickHouse', () =>
  testsOn(() => ChdbDoor.start()),
);
