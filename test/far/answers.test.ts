import { afterAll, beforeAll, expect, it } from 'vitest';
import { caseCount, fc } from '../cases.js';
import { ChdbDoor } from '../../bench/far/chdb-door.js';
import { ReaderArchive } from '../../engine/far/reader-archive.js';
import { warmUp } from '../../engine/archive/warm-up.js';
import { WorkerPool } from '../../engine/workers/worker-pool.js';
import { textOf } from '../engine/store/memory-archive.js';
import { WriterBed } from '../readers/writer-bed.js';
import { datasets, forms, queries, strangeSchema } from '../model/arbitraries.js';
import { countsOf, withNearNumbers } from '../model/count.js';
import { countQueries, steps } from '../model/count-queries.js';
import type { Dataset } from '../model/dataset.js';
import type { CountQuery } from '../../engine/scan/count-query.js';
import type { AnyPredicate, FieldPredicate, Predicate } from '../../engine/scan/query.js';
import type { FarSettings } from '../../engine/far/far-transport.js';
import { describeWithClickHouse } from './clickhouse-server.js';
import { FarClusterBed } from './far-cluster-bed.js';
import { FarStore, tierOf, type TestTier } from './far-store.js';
import { describeWithChdb } from './with-chdb.js';

const queriesOfDataset = caseCount(40, 250);

const workers = new WorkerPool(0);

/**
 * Which segments are shipped: none, all, or some. Loads have records of the same hours, so that near and far positions alternate within an
 * hour; a segment is shipped as a whole.
 */
type Split = 'near' | 'far' | 'both';

async function stored(
  { records }: Dataset,
  loads: readonly { readonly rows: number; readonly isShipped: boolean }[],
  split: Split,
  tier: TestTier,
): Promise<FarStore> {
  const store = await FarStore.open(tier, strangeSchema);
  let at = 0;
  for (const { rows } of [...loads, { rows: records.length }]) {
    await store.load(records.slice(at, at + rows).map(({ values }) => values));
    at += rows;
  }
  if (split === 'far') await store.store.shipFar();
  if (split === 'both') await store.shipSome(tier, (segment) => loads[segment]?.isShipped === true);
  return store;
}

/** A far tier to test, which is closed at the end of the tests. */
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

  it.each(['near', 'far', 'both'] as const)('equal those of the model: %s', async (split) => {
    const load = fc.record({ rows: fc.integer({ min: 1, max: 25 }), isShipped: fc.boolean() });
    const data = fc.tuple(datasets(60), fc.array(load, { maxLength: 6 }));
    await fc.assert(
      fc.asyncProperty(data, fc.gen(), async ([dataset, loads], draw) => {
        const store = await stored(dataset, loads, split, tier);
        try {
          for (let i = 0; i < queriesOfDataset; i++) {
            const query = { ...draw(queries, store.model), form: draw(forms, store.model) };
            expect(await store.answer(query)).toBe(store.expected(query));
          }
          for (let i = 0; i < queriesOfDataset / 4; i++) {
            const counted = draw(countQueries, store.model);
            const { stats: _, ...counts } = await store.store.count(counted);
            const wanted = countsOf(store.model, counted);
            expect(withNearNumbers(counts, wanted, counted)).toEqual(wanted);
          }
        } finally {
          await store.close();
        }
      }),
      // No shrinking: a smaller case has as many questions, so only the seed helps. 10,500 questions over the three splits in the long run.
      { numRuns: caseCount(3, 14), endOnFailure: true },
    );
  });

  it('are counted by the servers if they can count exactly, and otherwise from their rows', async () => {
    const store = await FarStore.open(tier, strangeSchema);
    const rows = Array.from({ length: 200 }, (_, i) => [
      i % 9 === 0 ? null : BigInt(1_800_000_000_000 + 1000 * i),
      BigInt(i % 5),
      i % 2 === 0 ? 0 : -0,
      ['GET', 'get', 'TaſK', null][i % 4]!,
      `m ${i}`,
      BigInt(i % 2),
    ]);
    for (const from of [0, 70, 140]) await store.load(rows.slice(from, from + 70));
    await store.shipSome(tier, (segment) => segment < 2);
    const text = (op: 'like' | 'not_like', value: string): FieldPredicate => ({
      kind: 'string',
      field: 3,
      op,
      value,
    });
    const either = (...members: AnyPredicate['members']): Predicate => ({ kind: 'any', members });
    const some: FieldPredicate = { kind: 'int', field: 1, op: 'ne', value: 3n };
    const [, second] = store.model.records;
    const by = { time: { field: 0, buckets: steps(60_000) }, values: { field: 3, top: 2 } };
    const countings: readonly [isCounted: boolean, query: CountQuery][] = [
      [true, { predicates: [some] }],
      [true, { predicates: [], ...by }],
      [true, { predicates: [some, text('like', 'GeT')], ...by }],
      [true, { predicates: [text('not_like', 'Get')], values: { field: 2, top: 9 } }],
      [true, { after: second!.position, predicates: [], values: { field: 5, top: 1 } }],
      [true, { predicates: [{ kind: 'exists', field: 3, value: false }], ...by }],
      [true, { predicates: [either(text('like', 'GeT'), some)], ...by }],
      [true, { predicates: [either(text('not_like', 'Get'), { kind: 'exists', field: 3, value: false })] }],
      [false, { predicates: [text('like', 'task')], ...by }],
      [false, { predicates: [either(text('like', 'task'), some)] }],
      [false, { predicates: [some], time: { field: 0, buckets: steps(1) } }],
      // The numbers are those of the rows, to the last bit.
      [
        false,
        { predicates: [some], ...by, numbers: { fields: [1, 2], functions: ['sum', 'min', 'distinct'] } },
      ],
    ];
    for (const [isCounted, query] of countings) {
      tier.transport.asked.length = 0;
      const { stats: _, ...counts } = await store.store.count(query);
      expect(counts).toEqual(countsOf(store.model, query));
      const isRead = tier.transport.asked.some(({ sql }) => /SELECT _cursor/.test(sql));
      expect({ query, isCounted: !isRead }).toEqual({ query, isCounted });
    }
    await store.close();
  });

  it('are not asked to warm up where the newest records are far', async () => {
    const store = await FarStore.open(tier, strangeSchema);
    await store.load(Array.from({ length: 10 }, (_, i) => [BigInt(i), BigInt(i), 0, `${i}`, '', 0n]));
    const { state } = store.context;
    const { signal } = new AbortController();
    expect(await warmUp(state, workers, signal)).toBe(true);
    await store.store.shipFar();
    tier.transport.asked.length = 0;
    expect(await warmUp(state, workers, signal)).toBe(false);
    expect(tier.transport.asked).toEqual([]);
    await store.close();
  });

  it('are also given by readers, one after another, while the writer ships and loads', async () => {
    await fc.assert(
      fc.asyncProperty(datasets(60), fc.gen(), async ({ records }, draw) => {
        const store = await FarStore.open(tier, strangeSchema);
        const { name } = store.store;
        const writer = await WriterBed.start(new Map([[name, store.store]]));
        const doors = [writer.door(), writer.door()];
        const readers = doors.map((door) => {
          const reader = new ReaderArchive({ writer: door, cluster: tier.cluster, lagMsMax: 0, workers });
          return reader.agent(name);
        });
        try {
          for (const reader of readers) await reader.snapshot();
          for (let at = 0; at < records.length; at += 10) {
            await store.load(records.slice(at, at + 10).map(({ values }) => values));
            const shipping = at % 20 === 0 ? store.store.shipFar() : undefined;
            for (const reader of [...readers, ...readers]) {
              const query = { ...draw(queries, store.model), form: draw(forms, store.model) };
              const { lines } = await reader.scan(query);
              expect(await textOf(lines)).toBe(store.expected(query));
            }
            await shipping;
          }
        } finally {
          for (const door of doors) door.close();
          await writer.close();
          await store.close();
        }
      }),
      { numRuns: caseCount(3, 20), endOnFailure: true },
    );
  });
}

describeWithClickHouse('answers from a far tier on ClickHouse of 2018', () =>
  testsOn(() => FarClusterBed.start(2, 1)),
);
describeWithChdb('answers from a far tier on current ClickHouse', () => testsOn(() => ChdbDoor.start()));
