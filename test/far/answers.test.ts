import { inspect } from 'node:util';
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
import { numberFunctions, type NumberFunction } from '../../engine/numbers/number-functions.js';
import type { CountQuery } from '../../engine/scan/count-query.js';
import type { AnyPredicate, FieldPredicate, Predicate } from '../../engine/scan/query.js';
import { farGroupsMax } from '../../engine/far/far-sql.js';
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
    const numbers: readonly [boolean, number[], NumberFunction[]][] = [
      [true, [0, 1], ['sum', 'avg', 'min', 'max', 'p50', 'p99', 'distinct']],
      [true, [1], ['sum']],
      [true, [2, 1], ['min', 'max', 'p90', 'distinct']],
      [true, [3, 4, 5], ['distinct']],
      // A sum of floats depends on their order.
      [false, [1, 2], ['sum', 'min', 'distinct']],
      [false, [2], ['avg']],
    ];
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
      ...numbers.map(([isCounted, fields, functions]): [boolean, CountQuery] => [
        isCounted,
        { predicates: [some], ...by, numbers: { fields, functions } },
      ]),
      [true, { predicates: [], numbers: { fields: [0, 1], functions: numberFunctions } }],
      [true, { predicates: [some], time: by.time, numbers: { fields: [1], functions: numberFunctions } }],
      [true, { predicates: [], values: by.values, numbers: { fields: [0], functions: numberFunctions } }],
    ];
    for (const [isCounted, query] of countings) {
      tier.transport.asked.length = 0;
      const { stats: _, ...counts } = await store.store.count(query);
      const wanted = countsOf(store.model, query);
      expect(withNearNumbers(counts, wanted, query)).toEqual(wanted);
      const isRead = tier.transport.asked.some(({ sql }) => /SELECT _cursor/.test(sql));
      expect({ query, isCounted: !isRead }).toEqual({ query, isCounted });
    }
    await store.close();
  });

  it('have the same numbers to the last bit, wherever the rows are', async () => {
    const float = fc.oneof(
      fc.double({ noNaN: true, noDefaultInfinity: true }),
      fc.constantFrom(
        0,
        -0,
        5e-324,
        -5e-324,
        2 ** -1022,
        2 ** -1022 - 5e-324,
        Number.MAX_VALUE,
        1 + 2 ** -52,
      ),
    );
    const int = fc.oneof(
      fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }),
      fc.constantFrom(-(2n ** 63n), 2n ** 63n - 1n, 2n ** 53n + 1n, -1n, 0n, 2n ** 32n),
    );
    const maybe = <T>(values: fc.Arbitrary<T>) => fc.option(values, { freq: 5 });
    const time = fc.integer({ min: 1_800_000_000_000, max: 1_800_000_200_000 }).map(BigInt);
    const row = fc.tuple(maybe(time), maybe(int), maybe(float), maybe(fc.constantFrom('a', 'b', '')));
    await fc.assert(
      fc.asyncProperty(fc.array(row, { minLength: 1, maxLength: 300 }), async (rows) => {
        const given: string[][] = [];
        for (const split of ['near', 'far', 'both'] as const) {
          const store = await FarStore.open(tier, strangeSchema);
          for (const part of [rows.slice(0, rows.length >> 1), rows.slice(rows.length >> 1)])
            if (part.length > 0) await store.load(part.map((values) => [...values, 'm', 0n]));
          if (split === 'far') await store.store.shipFar();
          if (split === 'both') await store.shipSome(tier, (segment) => segment === 0);
          tier.transport.asked.length = 0;
          const answers: string[] = [];
          const functions = numberFunctions.filter((fn) => fn !== 'sum' && fn !== 'avg');
          for (const numbers of [
            { fields: [0, 1], functions: numberFunctions },
            { fields: [2], functions },
          ])
            for (const by of [
              {},
              { time: { field: 0, buckets: steps(60_000) } },
              { values: { field: 3, top: 2 } },
              { time: { field: 0, buckets: steps(60_000) }, values: { field: 2, top: 3 } },
            ]) {
              const { stats: _, ...counts } = await store.store.count({ predicates: [], ...by, numbers });
              answers.push(inspect(counts, { depth: null, sorted: true }));
            }
          expect(tier.transport.asked.filter(({ sql }) => /SELECT _cursor/.test(sql))).toEqual([]);
          given.push(answers);
          await store.close();
        }
        expect(given[1]).toEqual(given[0]);
        expect(given[2]).toEqual(given[0]);
      }),
      { numRuns: caseCount(2, 30), endOnFailure: true },
    );
  });

  it('are counted from their rows where the servers would have too many groups', async () => {
    const store = await FarStore.open(tier, strangeSchema);
    const rows = farGroupsMax + 500;
    await store.load(
      Array.from({ length: rows }, (_, i) => [
        BigInt(i),
        BigInt(i % 977),
        0,
        `path ${i % (rows - 9)}`,
        'm',
        0n,
      ]),
    );
    const numbers = { fields: [1], functions: numberFunctions };
    const query = { predicates: [], values: { field: 3, top: 20 }, numbers };
    const { stats: _, ...near } = await store.store.count(query);
    await store.store.shipFar();
    tier.transport.asked.length = 0;
    const { stats: __, ...far } = await store.store.count(query);
    expect(inspect(far, { depth: null, sorted: true })).toBe(inspect(near, { depth: null, sorted: true }));
    expect(tier.transport.asked.some(({ sql }) => /SELECT _cursor/.test(sql))).toBe(true);
    await store.close();
  });

  it('are not all read for a count that is refused', async () => {
    const store = await FarStore.open(tier, strangeSchema);
    const [loads, rows] = [6, 5000];
    // So long that a page has few of them.
    const text = 'm'.repeat(2000);
    for (let i = 0; i < loads; i++)
      await store.load(
        Array.from({ length: rows }, (_, row) => [BigInt(i * rows + row), 0n, 0, '', text, 0n]),
      );
    await store.store.shipFar();
    const { asked } = tier.transport;
    asked.length = 0;
    // 10,000 buckets are in the first third of the rows. The next page of each shard is asked for ahead.
    const query = { predicates: [], time: { field: 0, buckets: steps(1) }, values: { field: 4, top: 1 } };
    await expect(store.store.count(query)).rejects.toMatchObject({ bound: 'buckets' });
    const pages = asked.flatMap(({ sql }) => /SELECT _cursor.* LIMIT (\d+)/.exec(sql)?.[1] ?? []).map(Number);
    const read = pages.reduce((sum, page) => sum + page, 0);
    expect(read).toBeGreaterThan(10_000);
    expect(read).toBeLessThan(loads * rows);
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
