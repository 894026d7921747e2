import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { caseCount, fc } from '../cases.js';
import { countParts } from '../../engine/scan/count.js';
import { countsTask } from '../../engine/scan/row-group-task.js';
import type { CountBound, Counts, CountQuery } from '../../engine/scan/count-query.js';
import { BufferPool } from '../../engine/store/reading/buffer-pool.js';
import type { Directory } from '../../engine/store/disk/directory.js';
import { openRealDirectory } from '../../engine/store/disk/real-directory.js';
import { JobQueue } from '../../engine/workers/job-queue.js';
import { makeSchema } from '../../engine/core/schema.js';
import type { Snapshot } from '../../engine/store/reading/snapshot.js';
import { WorkerPool } from '../../engine/workers/worker-pool.js';
import { datasets } from '../model/arbitraries.js';
import { countsOf, withNearNumbers, type ModelCounts } from '../model/count.js';
import { countQueries, steps } from '../model/count-queries.js';
import type { Dataset } from '../model/dataset.js';
import { makeSnapshot, type Layout } from '../model/model-snapshot.js';
import { MemoryDirectory } from '../storage-doubles/memory-directory.js';
import { numbered } from './numbered.js';
import { openSegment, sealBatches } from '../parquet/segment-sample.js';
import { runsOfSegment } from '../../engine/store/reading/agent-state.js';
import { storeSnapshot, type StoredLayout } from './stored-snapshot.js';

/** Some of the times are outside of any calendar, and some at its limits. */
const oddTimes = [
  -(2n ** 63n),
  -62_135_596_800_001n,
  -62_135_596_800_000n,
  0n,
  253_402_300_799_999n,
  253_402_300_800_000n,
  2n ** 63n - 1n,
];

function countDatasets(recordsMax: number): fc.Arbitrary<Dataset> {
  return fc.tuple(datasets(recordsMax), fc.array(fc.nat(200), { maxLength: 6 })).map(([dataset, odd]) => ({
    ...dataset,
    records: dataset.records.map((record, i) => {
      const time = odd.includes(i) ? oddTimes[i % oddTimes.length]! : record.values[0]!;
      return { ...record, values: [time, ...record.values.slice(1)] };
    }),
  }));
}

/** With threads, everything that is in memory is left to them. */
async function count(snapshot: Snapshot, query: CountQuery, workers?: WorkerPool): Promise<Counts> {
  return countParts([{ snapshot, query }], { workers, inlineBytesMax: 0 });
}

function withoutStats({ stats: _, ...counts }: Counts): ModelCounts {
  return counts;
}

describe('counts', () => {
  const layouts: fc.Arbitrary<Layout> = fc.record({
    seed: fc.integer(),
    segments: fc.integer({ min: 1, max: 3 }),
    rowGroupRows: fc.constantFrom(3, 8, 20, 64),
    statistics: fc.constantFrom('exact' as const, 'chance' as const),
  });

  it('equal those of the model, whatever the layout', async () => {
    const cases = countDatasets(120).chain((dataset) =>
      fc.tuple(
        fc.constant(dataset),
        layouts,
        fc.array(countQueries(dataset), { minLength: 1, maxLength: 4 }),
      ),
    );
    await fc.assert(
      fc.asyncProperty(cases, async ([dataset, layout, asked]) => {
        const snapshot = makeSnapshot(dataset, layout);
        for (const query of asked) {
          const wanted = countsOf(dataset, query);
          const given = withoutStats(await count(snapshot, query));
          expect(withNearNumbers(given, wanted, query)).toEqual(wanted);
        }
        expect(snapshot.released()).toBe(asked.length);
      }),
      { numRuns: caseCount(750, 20_000) },
    );
  });
});

const folder = mkdtempSync(join(tmpdir(), 'logstrata-count-'));
const workers = new WorkerPool(2);
let directory: Directory;
let files = 0;

beforeAll(async () => {
  directory = await openRealDirectory(folder);
});
afterAll(async () => {
  await workers.close();
  rmSync(folder, { recursive: true });
});

const layout: StoredLayout = { segments: 2, stretch: 1000, rowGroupRows: 500, hotRecords: 40, codec: 'lz4' };

/** Number of jobs of a task that threads were given while `use` ran. */
async function jobsWhile<T>(use: () => Promise<T>): Promise<{ result: T; jobs: number }> {
  const run = vi.spyOn(JobQueue.prototype, 'run');
  try {
    const result = await use();
    return { result, jobs: run.mock.calls.filter(([task]) => task === (countsTask as unknown)).length };
  } finally {
    run.mockRestore();
  }
}

const errors = { kind: 'string', field: 1, op: 'exact', value: 'error' } as const;

describe('counts of several agents', () => {
  it('equal those of one with all records and fields, whatever fields each has', async () => {
    const cases = countDatasets(100).chain((dataset) => {
      const all = dataset.schema.fields.map((_, field) => field);
      const agent = fc.shuffledSubarray(all, { minLength: 1 });
      return fc.tuple(
        fc.constant(dataset),
        fc.array(agent, { minLength: 1, maxLength: 3 }),
        fc.array(countQueries(dataset), { minLength: 1, maxLength: 4 }),
      );
    });
    await fc.assert(
      fc.asyncProperty(cases, async ([{ schema, records }, fieldsOf, asked]) => {
        const agentOf = (i: number): readonly number[] => fieldsOf[i % fieldsOf.length]!;
        const together: Dataset = {
          schema,
          records: records.map(({ position, values }, i) => ({
            position,
            values: values.map((value, field) => (agentOf(i).includes(field) ? value : null)),
          })),
        };
        const parts = fieldsOf.map((fields, k) => ({
          schema: makeSchema(fields.map((field) => schema.fields[field]!)),
          records: records
            .filter((_, i) => i % fieldsOf.length === k)
            .map(({ position, values }) => ({ position, values: fields.map((field) => values[field]!) })),
        }));
        for (const { time, values, numbers } of asked) {
          const used = [time?.field, values?.field, ...(numbers?.fields ?? [])].filter(
            (field) => field !== undefined,
          );
          // The server refuses a field that no agent has.
          if (!used.every((field) => fieldsOf.some((fields) => fields.includes(field)))) continue;
          const query = { predicates: [], time, values, numbers };
          const counted = parts.map((part, k) => {
            const own = (field: number): number => fieldsOf[k]!.indexOf(field);
            const ofAgent = {
              predicates: [],
              time: time && { ...time, field: own(time.field) },
              values: values && { ...values, field: own(values.field) },
              numbers: numbers && { ...numbers, fields: numbers.fields.map(own) },
            };
            const snapshot = makeSnapshot(part, {
              seed: k,
              segments: 1,
              rowGroupRows: 20,
              statistics: 'exact',
            });
            return { snapshot, query: ofAgent };
          });
          const wanted = countsOf(together, query);
          const given = withoutStats(await countParts(counted, { workers, inlineBytesMax: 0 }));
          expect(withNearNumbers(given, wanted, query)).toEqual(wanted);
          expect(counted.map(({ snapshot }) => snapshot.released())).toEqual(counted.map(() => 1));
        }
      }),
      { numRuns: caseCount(150, 3000) },
    );
  });
});

describe('counts of stored records', () => {
  it('equal those of the model, with threads and without, cached and not', async () => {
    const cases = countDatasets(150).chain((dataset) =>
      fc.tuple(
        fc.constant(dataset),
        fc.record({
          segments: fc.constantFrom(1, 3),
          stretch: fc.constantFrom(1, 20),
          rowGroupRows: fc.constantFrom(10, 40),
          hotRecords: fc.constantFrom(0, 30, 1000),
          codec: fc.constant('lz4' as const),
        }),
        fc.array(countQueries(dataset), { minLength: 1, maxLength: 4 }),
      ),
    );
    await fc.assert(
      fc.asyncProperty(cases, async ([dataset, stored, asked]) => {
        const pool = new BufferPool(1 << 24);
        const snapshot = await storeSnapshot(directory, `set-${files++}`, dataset, stored, pool);
        for (const query of asked) {
          const wanted = countsOf(dataset, query);
          const given = withoutStats(await count(snapshot, query));
          expect(withNearNumbers(given, wanted, query)).toEqual(wanted);
          // To the last bit.
          for (const by of [workers, workers])
            expect(withoutStats(await count(snapshot, query, by))).toEqual(given);
        }
        expect(snapshot.released()).toBe(3 * asked.length);
        pool.close();
      }),
      { numRuns: caseCount(25, 500) },
    );
  });

  it('are made by threads if many row groups are in memory', async () => {
    const dataset = numbered(12_000);
    const pool = new BufferPool(1 << 26);
    const snapshot = await storeSnapshot(
      directory,
      `set-${files++}`,
      dataset,
      { ...layout, rowGroupRows: 250 },
      pool,
    );
    const query = {
      predicates: [],
      time: { field: 0, buckets: steps(700) },
      values: { field: 1, top: 5 },
    };
    const wanted = countsOf(dataset, query);
    expect(withoutStats(await count(snapshot, query, workers))).toEqual(wanted);
    const { result, jobs } = await jobsWhile(() => count(snapshot, query, workers));
    expect(withoutStats(result)).toEqual(wanted);
    expect(result.stats.bytesRead).toBe(0);
    expect(jobs).toBeGreaterThan(1);
    // Counting a few million rows takes less time than handing them over.
    const inline = await jobsWhile(() => countParts([{ snapshot, query }], { workers }));
    expect(withoutStats(inline.result)).toEqual(wanted);
    expect(inline.jobs).toBe(0);
    pool.close();
  });

  it('number values without a dictionary on threads', async () => {
    const dataset = numbered(9000);
    const pool = new BufferPool(1 << 26);
    // So many values that a dictionary would be as large as the rows.
    const records = dataset.records.map((record, i) => ({
      ...record,
      values: [
        record.values[0]!,
        record.values[1]!,
        `message ${(Math.floor(i / 2) * 2654435761) % 4294967296}`,
      ],
    }));
    const repeated = { ...dataset, records };
    const one = { ...layout, segments: 1, rowGroupRows: 9000, hotRecords: 0 };
    const snapshot = await storeSnapshot(directory, `set-${files++}`, repeated, one, pool);
    const query = { predicates: [], time: { field: 0, buckets: steps(1000) }, values: { field: 2, top: 7 } };
    const { result, jobs } = await jobsWhile(() => count(snapshot, query, workers));
    expect(withoutStats(result)).toEqual(countsOf(repeated, query));
    expect(jobs).toBe(1);
    pool.close();
  });
});

describe('the columns that a count reads', () => {
  async function stored(
    use: (snapshot: Snapshot, dataset: Dataset, bytesRead: () => number) => Promise<void>,
  ) {
    const memory = new MemoryDirectory();
    const pool = new BufferPool(1 << 26);
    const dataset = numbered(4000);
    const snapshot = await storeSnapshot(memory, 'set', dataset, layout, pool);
    await use(snapshot, dataset, () => memory.bytesRead);
    pool.close();
  }

  it('are none for the number of all records, or of those between two cursors', () =>
    stored(async (snapshot, dataset, bytesRead) => {
      const before = bytesRead();
      expect(withoutStats(await count(snapshot, { predicates: [] }))).toEqual({ count: 4000 });
      const bounds = {
        after: dataset.records[99]!.position,
        before: dataset.records[2000]!.position,
        predicates: [],
      };
      const { stats, ...sum } = await count(snapshot, bounds);
      expect(sum).toEqual({ count: 1900 });
      expect(bytesRead() - before).toBe(0);
      expect(stats.rowGroups).toBeLessThan(8);
    }));

  it('are none if bounds show that all rows are in one bucket and all match', () =>
    stored(async (snapshot, dataset, bytesRead) => {
      const since = { kind: 'int', field: 0, op: 'gte', value: 1_735_689_600_000n } as const;
      const query = { predicates: [since], time: { field: 0, buckets: steps(3_600_000) } };
      const { stats, ...counts } = await count(snapshot, query);
      expect(counts).toEqual(countsOf(dataset, query));
      expect(stats.columnsDecoded).toBe(0);
      // Only footers are read.
      expect(bytesRead()).toBe(stats.bytesRead);
      const again = await count(snapshot, query);
      expect(again.stats.bytesRead).toBe(0);
    }));

  it('are only the time columns of row groups that a bucket boundary divides', () =>
    stored(async (snapshot, dataset) => {
      const query = { predicates: [], time: { field: 0, buckets: steps(1250, 1_735_689_600_000) } };
      const { stats, ...counts } = await count(snapshot, query);
      expect(counts).toEqual(countsOf(dataset, query));
      // Row groups of 500 rows, one per millisecond, of two segments in turn: a bucket boundary lies in one of two.
      expect(stats.columnsDecoded).toBeGreaterThan(0);
      expect(stats.columnsDecoded).toBeLessThan(stats.rowGroups);
    }));

  it('are only the column of the values, and none if all values are equal', () =>
    stored(async (snapshot, dataset) => {
      const query = { predicates: [errors], values: { field: 1, top: 3 } };
      const { stats, ...counts } = await count(snapshot, query);
      expect(counts).toEqual(countsOf(dataset, query));
      expect(stats.columnsDecoded).toBeLessThanOrEqual(stats.rowGroups);
    }));
});

describe('a count with too many results', () => {
  const wide = makeSchema([
    { name: 'time', type: 'time' },
    { name: 'id', type: 'int' },
    { name: 'name', type: 'string' },
  ]);

  function spread(rows: number, distinct: number, stepMs: number, first = 0): Dataset {
    return {
      schema: wide,
      records: Array.from({ length: rows }, (_, i) => ({
        position: { partition: 482136, ordinal: i + 1 },
        values: [
          BigInt(1_735_689_600_000 + (first + i) * stepMs),
          BigInt(i % distinct),
          `name ${i % distinct}`,
        ],
      })),
    };
  }

  const make = (dataset: Dataset) =>
    makeSnapshot(dataset, { seed: 1, segments: 1, rowGroupRows: 5000, statistics: 'exact' });

  it('by buckets is refused, and the time range is stated', async () => {
    const dataset = spread(12_000, 3, 1000);
    const query = { predicates: [], time: { field: 0, buckets: steps(1000) } };
    await expect(count(make(dataset), query)).rejects.toMatchObject({
      code: 'invalid',
      bound: 'buckets',
      spanMs: 3_600_000,
    });
    // As many as the limit allows.
    const fewer = {
      ...query,
      predicates: [{ kind: 'int', field: 0, op: 'lt', value: 1_735_689_600_000n + 10_000_000n }],
    } as const;
    expect((await count(make(dataset), fewer)).time!.buckets).toHaveLength(10_000);
  });

  it('by buckets and values is refused', async () => {
    const dataset = spread(8000, 200, 1000);
    const query = {
      predicates: [],
      time: { field: 0, buckets: steps(1000) },
      values: { field: 1, top: 200 },
    };
    await expect(count(make(dataset), query)).rejects.toMatchObject({ code: 'invalid', bound: 'cells' });
  });

  it('is refused as soon as it is certain, and the other records are not read', async () => {
    // The third row group exceeds the bound; twenty-two more follow.
    const dataset = spread(9500, 1000, 5000);
    const layout = { seed: 1, segments: 1, rowGroupRows: 380, statistics: 'exact' } as const;
    const time = { field: 0, buckets: steps(5000) };
    const refused = { time, values: { field: 1, top: 1000 } };
    for (const by of [undefined, workers]) {
      const snapshot = makeSnapshot(dataset, layout);
      await expect(count(snapshot, { predicates: [], ...refused }, by)).rejects.toMatchObject({
        bound: 'cells',
      });
      // Those before the bound: 1,049 buckets with 1,000 values. Threads have begun a few more.
      const opened = snapshot.rowGroups.filter((rowGroup) => rowGroup.opens > 0).length;
      expect(opened).toBeGreaterThanOrEqual(3);
      expect(opened).toBeLessThanOrEqual(3 + 2 * 2 + 1);
    }
  });

  it('of several agents ends at the bound that they reach together', async () => {
    const layout = { seed: 1, segments: 1, rowGroupRows: 500, statistics: 'exact' } as const;
    const query = { predicates: [], time: { field: 0, buckets: steps(1000) } };
    for (const by of [undefined, workers]) {
      const snapshots = [0, 6000, 12_000].map((first) => makeSnapshot(spread(6000, 3, 1000, first), layout));
      const parts = snapshots.map((snapshot) => ({ snapshot, query }));
      const counting = countParts(parts, { workers: by, inlineBytesMax: 0 });
      await expect(counting).rejects.toMatchObject({ bound: 'buckets' });
      const [first, second, third] = snapshots.map(
        ({ rowGroups }) => rowGroups.filter(({ opens }) => opens > 0).length,
      );
      // 10,000 buckets are in the twelve row groups of the first agent and the first eight of the second.
      expect([first, third]).toEqual([12, 0]);
      expect(second).toBeGreaterThanOrEqual(8);
      expect(second).toBeLessThanOrEqual(9 + 2 * 2 + 1);
    }
  });

  /** The number of row groups of a snapshot that are opened by a count that is refused. */
  async function openedUntil(
    bound: CountBound,
    snapshot: Snapshot,
    query: CountQuery,
    by?: WorkerPool,
  ): Promise<number> {
    const { runs } = snapshot;
    const rowGroups = new Set(Array.from({ length: runs.length }, (_, i) => runs.at(i)!.rowGroup));
    const opens = [...rowGroups].map((rowGroup) => vi.spyOn(rowGroup, 'open'));
    await expect(count(snapshot, query, by)).rejects.toMatchObject({ bound });
    const opened = opens.filter(({ mock }) => mock.calls.length > 0).length;
    for (const open of opens) open.mockRestore();
    return opened;
  }

  it('by buckets ends at the bound, also if all of the following records are in memory', async () => {
    const dataset = spread(25_000, 3, 1000);
    const stored = { segments: 4, stretch: 250, rowGroupRows: 250, hotRecords: 0, codec: 'lz4' } as const;
    const pool = new BufferPool(1 << 26);
    const snapshot = await storeSnapshot(directory, `set-${files++}`, dataset, stored, pool);
    const query = { predicates: [], time: { field: 0, buckets: steps(1000) } };
    const all = {
      predicates: [],
      time: { field: 0, buckets: steps(7_000_000) },
      values: { field: 1, top: 3 },
    };
    await count(snapshot, all);
    for (const by of [undefined, workers, workers]) {
      const opened = await openedUntil('buckets', snapshot, query, by);
      expect(opened).toBeGreaterThan(40);
      expect(opened).toBeLessThanOrEqual(41 + 2 * 2 + 1);
    }
    pool.close();
  });

  it('by values ends at the bound, whether or not the records are in memory', async () => {
    // 2 Mi values are in the first 32 of 40 row groups.
    const numbers = makeSchema([{ name: 'id', type: 'int' }]);
    const rows = 64 * 1024;
    const batches = Array.from({ length: 40 }, (_, group) => {
      const values = new BigInt64Array(rows);
      const halves = new Uint32Array(values.buffer);
      for (let i = 0; i < rows; i++) halves[2 * i] = group * rows + i;
      return { length: rows, columns: [{ kind: 'int64' as const, length: rows, values, validity: null }] };
    });
    const path = `set-${files++}.parquet`;
    const runs = [{ partition: 482136, firstOrdinal: 1, firstRow: 0, rows: 40 * rows }];
    const entry = await sealBatches(directory, path, numbers, batches, 'lz4', runs);
    const pool = new BufferPool(1 << 26);
    const segment = await openSegment(directory, entry, numbers, pool);
    const ofSegment = runsOfSegment(entry, segment.rowGroups(numbers));
    const snapshot = { schema: numbers, runs: ofSegment, release: () => {} };
    const query = { predicates: [], values: { field: 0, top: 10 } };
    for (const by of [workers, workers]) {
      const opened = await openedUntil('values', snapshot, query, by);
      expect(opened).toBeGreaterThan(32);
      expect(opened).toBeLessThanOrEqual(33 + 2 * 2 + 1);
    }
    pool.close();
  });

  it('by values for each bucket makes a second pass for the returned values', async () => {
    // More values than one row group can count by bucket at once.
    const dataset = spread(20_000, 9000, 10_000);
    for (const field of [1, 2]) {
      const query = {
        predicates: [],
        time: { field: 0, buckets: steps(1_000_000) },
        values: { field, top: 4 },
        numbers: { fields: [1, 0], functions: ['sum', 'max', 'p90', 'distinct'] },
      } as const;
      const { stats, ...counts } = await count(make(dataset), query);
      const wanted = countsOf(dataset, query);
      expect(withNearNumbers(counts, wanted, query)).toEqual(wanted);
      // It has read all row groups twice.
      expect(stats.rowGroupsScanned).toBe(2 * stats.rowGroups);
    }
  });

  it('with the numbers of very many values makes a second pass for those of the returned ones', async () => {
    const dataset = spread(70_000, 69_000, 10);
    const query = {
      predicates: [],
      values: { field: 1, top: 3 },
      numbers: { fields: [0], functions: ['min', 'avg'] },
    } as const;
    const { stats, ...counts } = await count(make(dataset), query, workers);
    const wanted = countsOf(dataset, query);
    expect(withNearNumbers(counts, wanted, query)).toEqual(wanted);
    // The second pass looks only at row groups that may have these values.
    expect(stats.rowGroupsScanned).toBeGreaterThan(stats.rowGroups);
    expect(stats.rowGroupsScanned).toBeLessThan(2 * stats.rowGroups);
  });

  it('of numbers is refused', async () => {
    // Percentiles of ten thousand buckets, each with numbers of some sixty magnitudes that are far from each other.
    const rows = 64 * 1024;
    const timed = makeSchema([
      { name: 'time', type: 'time' },
      { name: 'id', type: 'int' },
    ]);
    const batches = Array.from({ length: 10 }, (_, group) => {
      const times = BigInt64Array.from({ length: rows }, (_, i) =>
        BigInt(Math.floor((group * rows + i) / 66)),
      );
      const ids = BigInt64Array.from({ length: rows }, (_, i) => (i % 2 === 0 ? 1n : -1n) << BigInt(i % 63));
      const columns = [times, ids].map((values) => ({
        kind: 'int64' as const,
        length: rows,
        values,
        validity: null,
      }));
      return { length: rows, columns };
    });
    const path = `set-${files++}.parquet`;
    const runs = [{ partition: 482136, firstOrdinal: 1, firstRow: 0, rows: 10 * rows }];
    const entry = await sealBatches(directory, path, timed, batches, 'lz4', runs);
    const pool = new BufferPool(1 << 26);
    const segment = await openSegment(directory, entry, timed, pool);
    const snapshot = {
      schema: timed,
      runs: runsOfSegment(entry, segment.rowGroups(timed)),
      release: () => {},
    };
    const query = {
      predicates: [],
      time: { field: 0, buckets: steps(1) },
      numbers: { fields: [1], functions: ['p50', 'p99'] },
    } as const;
    await expect(count(snapshot, query, workers)).rejects.toMatchObject({
      code: 'invalid',
      bound: 'numbers',
    });
    const fewer = await count(snapshot, { ...query, time: { field: 0, buckets: steps(100) } }, workers);
    expect(fewer.time!.buckets).toHaveLength(100);
    pool.close();
  });

  it('ends when it is aborted, and releases the snapshot', async () => {
    const dataset = spread(20_000, 10, 10);
    const snapshot = make(dataset);
    const abort = new AbortController();
    const counting = countParts([{ snapshot, query: { predicates: [], values: { field: 2, top: 1 } } }], {
      signal: abort.signal,
      workers,
    });
    abort.abort();
    await expect(counting).rejects.toMatchObject({ code: 'cancelled' });
    expect(snapshot.released()).toBe(1);
  });

  it('is refused if its fields do not exist', async () => {
    const snapshot = make(spread(10, 2, 10));
    const bad = (query: Partial<CountQuery>) => count(snapshot, { predicates: [], ...query });
    await expect(bad({ time: { field: 1, buckets: steps(10) } })).rejects.toMatchObject({ code: 'invalid' });
    await expect(bad({ values: { field: 3, top: 1 } })).rejects.toMatchObject({ code: 'invalid' });
    await expect(bad({ values: { field: 2, top: 0 } })).rejects.toMatchObject({ code: 'invalid' });
    await expect(bad({ values: { field: 2, top: 1001 } })).rejects.toMatchObject({ code: 'invalid' });
  });
});
