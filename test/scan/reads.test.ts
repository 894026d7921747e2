import { describe, expect, it } from 'vitest';
import { LogstrataError } from '../../engine/core/errors.js';
import { executeScan } from '../../engine/scan/answer.js';
import type { Query, ScanStats } from '../../engine/scan/query.js';
import { makeSchema } from '../../engine/core/schema.js';
import { answerOf } from '../model/answer.js';
import type { Dataset } from '../model/dataset.js';
import { makeSnapshot, type Layout, type ModelSnapshot } from '../model/model-snapshot.js';
import type { ScanOptions } from '../../engine/scan/scan.js';

const schema = makeSchema([
  { name: 'time', type: 'time' },
  { name: 'status', type: 'int' },
  { name: 'level', type: 'string' },
  { name: 'message', type: 'string' },
]);
const startMs = 1_735_689_600_000;
const hour = 482136;

/** 10 000 records, one per second, in order; each message has its number. */
const dataset: Dataset = {
  schema,
  records: Array.from({ length: 10_000 }, (_, i) => ({
    position: { partition: hour + Math.floor(i / 3600), ordinal: (i % 3600) + 1 },
    values: [
      BigInt(startMs + i * 1000),
      BigInt(i % 7),
      i % 500 === 3 ? 'error' : 'info',
      `request ${i} done`,
    ],
  })),
};

/** Ten row groups of 1000 rows, one after another. */
const tidy: Layout = { seed: 1, segments: 1, rowGroupRows: 1000, statistics: 'exact' };

async function run(
  query: Partial<Query>,
  layout: Layout = tidy,
  options: ScanOptions = {},
): Promise<{ snapshot: ModelSnapshot; stats: ScanStats; text: string }> {
  const snapshot = makeSnapshot(dataset, layout);
  const whole = { limit: 100, predicates: [], ...query };
  const scan = executeScan(snapshot, whole, options);
  const pieces: Uint8Array[] = [];
  for await (const piece of scan.lines) pieces.push(piece);
  const text = Buffer.concat(pieces).toString('utf8');
  expect(text).toBe(answerOf(dataset, whole));
  return { snapshot, stats: scan.stats, text };
}

function opened(snapshot: ModelSnapshot): number[] {
  return snapshot.rowGroups.filter((group) => group.opens > 0).map((group) => group.index);
}

function decoded(snapshot: ModelSnapshot): number[] {
  return snapshot.rowGroups.filter((group) => group.fieldsRead.size > 0).map((group) => group.index);
}

describe('the parts that a scan reads', () => {
  it('the newest 100: one row group', async () => {
    const { snapshot, stats } = await run({});
    expect(opened(snapshot)).toEqual([9]);
    expect(stats).toMatchObject({ rowGroups: 10, rowsReturned: 100, columnsDecoded: 4, rowsScanned: 0 });
  });

  it('limit=0: nothing', async () => {
    const { snapshot, stats } = await run({ limit: 0 });
    expect(opened(snapshot)).toEqual([]);
    expect(stats.rowGroups).toBe(0);
  });

  it('a page by cursor: the row group that contains the page', async () => {
    const { snapshot, stats } = await run({ after: { partition: hour + 1, ordinal: 500 } });
    expect(opened(snapshot)).toEqual([4]);
    expect(stats.rowGroups).toBe(6);
    const before = await run({ before: { partition: hour + 1, ordinal: 500 }, limit: 50 });
    expect(opened(before.snapshot)).toEqual([4]);
  });

  it('a time window: no other row group is even opened, and rows of a fully covered one are not compared', async () => {
    const { snapshot, stats } = await run({
      limit: 10_000,
      predicates: [
        { kind: 'int', field: 0, op: 'gte', value: BigInt(startMs + 2_000_000) },
        { kind: 'int', field: 0, op: 'lt', value: BigInt(startMs + 3_500_000) },
      ],
    });
    expect(opened(snapshot)).toEqual([2, 3]);
    expect(stats).toMatchObject({ rowGroupsPrunedByTime: 8, rowGroupsScanned: 2, rowsScanned: 1000 });
  });

  it('bounds that exclude a value: no column', async () => {
    const { snapshot, stats } = await run({ predicates: [{ kind: 'int', field: 1, op: 'gt', value: 6n }] });
    expect(decoded(snapshot)).toEqual([]);
    expect(stats).toMatchObject({ rowGroupsPrunedByZone: 10, columnsDecoded: 0 });
  });

  it('bounds that include every value: only the columns of the rows returned', async () => {
    const { snapshot, stats } = await run({
      limit: 10,
      predicates: [
        { kind: 'int', field: 1, op: 'lte', value: 6n },
        { kind: 'string', field: 3, op: 'like', value: '' },
      ],
    });
    expect(decoded(snapshot)).toEqual([9]);
    expect(stats).toMatchObject({ rowsScanned: 0, columnsDecoded: 4 });
  });

  it('a rare text: only row groups whose filter may contain it', async () => {
    const { snapshot, stats, text } = await run({
      predicates: [{ kind: 'string', field: 3, op: 'like', value: 'REQUEST 4321 ' }],
    });
    expect(text.split('\n')).toHaveLength(2);
    expect(decoded(snapshot)).toEqual([4]);
    expect(stats).toMatchObject({ rowGroupsPrunedByGram: 9, rowGroupsScanned: 1, rowsScanned: 1000 });
  });

  it('a pattern: only row groups whose filter may contain what every match contains', async () => {
    const pattern = (value: string, op: 'regex' | 'not_regex' = 'regex'): Query['predicates'][number] => ({
      kind: 'string',
      field: 3,
      op,
      value,
    });
    const texts = ['request (4321|9999999) ', '(?i)^REQUEST 4321 ', '[a-z]+ 4321 [^x]*$', 'quest 4321 .*e?'];
    for (const value of texts) {
      const { snapshot, stats, text } = await run({ predicates: [pattern(value)] });
      expect(text.split('\n')).toHaveLength(2);
      expect(decoded(snapshot)).toEqual([4]);
      expect(stats).toMatchObject({ rowGroupsPrunedByGram: 9, rowGroupsScanned: 1, rowsScanned: 1000 });
    }
    const anywhere: Query['predicates'][number] = {
      kind: 'anywhere',
      op: 'regex',
      isAbsent: false,
      value: 'quest 4321 ',
    };
    const other = await run({ predicates: [anywhere] });
    expect(decoded(other.snapshot)).toContain(4);
    expect(other.stats.columnsPrunedByGram).toBeGreaterThan(0);
    // Without such a text, and for the opposite, every row group has to be read.
    for (const predicate of [pattern('[0-9]{9}'), pattern('request [0-9]+', 'not_regex')]) {
      const { snapshot, stats } = await run({ predicates: [predicate] });
      expect(decoded(snapshot)).toHaveLength(10);
      expect(stats.rowGroupsPrunedByGram).toBe(0);
    }
  });

  it('no further column once no row matches any more', async () => {
    const { snapshot } = await run({
      predicates: [
        { kind: 'int', field: 1, op: 'eq', value: 100n },
        { kind: 'string', field: 3, op: 'like', value: 'e' },
      ],
      limit: 5,
    });
    expect(decoded(snapshot)).toEqual([]);
    const both = await run({
      predicates: [
        { kind: 'string', field: 3, op: 'like', value: 'request' },
        { kind: 'string', field: 2, op: 'exact', value: 'information' },
      ],
    });
    expect(both.snapshot.rowGroups.some((group) => group.fieldsRead.has(3))).toBe(false);
  });

  it('no row group after the one in which the limit is reached', async () => {
    const filter = { kind: 'string', field: 2, op: 'exact', value: 'error' } as const;
    const newest = await run({ limit: 3, predicates: [filter] });
    expect(opened(newest.snapshot)).toEqual([8, 9]);
    const oldest = await run({ limit: 3, after: { partition: 0, ordinal: 0 }, predicates: [filter] });
    expect(opened(oldest.snapshot)).toEqual([0, 1]);
  });

  it('each row group once, although the runs of several segments alternate', async () => {
    const layout: Layout = { seed: 5, segments: 4, rowGroupRows: 1000, statistics: 'exact' };
    const { snapshot, stats } = await run(
      { limit: 9000, predicates: [{ kind: 'int', field: 1, op: 'ne', value: 3n }] },
      layout,
    );
    expect(stats.rowsScanned).toBeLessThanOrEqual(10_000);
    expect(stats.rowGroupsScanned).toBe(snapshot.rowGroups.length);
    expect(stats.columnsDecoded).toBe(snapshot.rowGroups.length * 4);
  });
});

describe('a scan', () => {
  const everything: Query = { limit: 10_000, after: { partition: 0, ordinal: 0 }, predicates: [] };

  it('releases the snapshot when it is abandoned, begun or not', async () => {
    const begun = makeSnapshot(dataset, tidy);
    for await (const piece of executeScan(begun, everything, { pieceBytes: 1000 }).lines) {
      expect(piece.length).toBeGreaterThan(0);
      break;
    }
    expect(begun.released()).toBe(1);
    expect(opened(begun)).toEqual([0]);
    const untouched = makeSnapshot(dataset, tidy);
    await executeScan(untouched, everything).lines[Symbol.asyncIterator]().return?.();
    expect(untouched.released()).toBe(1);
    expect(opened(untouched)).toEqual([]);
  });

  it('is cancelled by the signal, also while nobody reads', async () => {
    const controller = new AbortController();
    const snapshot = makeSnapshot(dataset, tidy);
    const { lines } = executeScan(snapshot, everything, { pieceBytes: 1000, signal: controller.signal });
    const pieces = lines[Symbol.asyncIterator]();
    await pieces.next();
    expect(snapshot.released()).toBe(0);
    controller.abort();
    expect(snapshot.released()).toBe(1);
    await expect(pieces.next()).rejects.toMatchObject({ code: 'cancelled' });
    expect(opened(snapshot)).toEqual([0]);
  });

  it("fails with the signal's own reason", async () => {
    const snapshot = makeSnapshot(dataset, tidy);
    const signal = AbortSignal.abort(new LogstrataError('timeout', 'the query ran past its time limit'));
    const { lines } = executeScan(snapshot, everything, { signal });
    await expect(lines[Symbol.asyncIterator]().next()).rejects.toMatchObject({ code: 'timeout' });
    expect(snapshot.released()).toBe(1);
  });

  it('fails if a row group that it needs is damaged, and only then', async () => {
    const snapshot = makeSnapshot(dataset, tidy);
    const damaged = snapshot.rowGroups[4]!;
    damaged.open = () => Promise.reject(new LogstrataError('damaged', 'checksum'));
    const read = async (query: Query): Promise<void> => {
      for await (const piece of executeScan(snapshot, query).lines) expect(piece.length).toBeGreaterThan(0);
    };
    await expect(read(everything)).rejects.toMatchObject({ code: 'damaged' });
    expect(snapshot.released()).toBe(1);
    await read({ limit: 100, predicates: [] });
    expect(snapshot.released()).toBe(2);
  });

  it('lets the event loop run', async () => {
    const snapshot = makeSnapshot(dataset, { ...tidy, rowGroupRows: 10 });
    let turns = 0;
    const timer = setInterval(() => turns++, 0);
    const filter = { kind: 'string', field: 3, op: 'like', value: 'x' } as const;
    for (const group of snapshot.rowGroups) group.filters.ask = () => Promise.resolve();
    for (let i = 0; i < 20; i++) {
      for await (const piece of executeScan(snapshot, { limit: 5, predicates: [filter] }).lines)
        expect(piece).toBe(null);
    }
    clearInterval(timer);
    expect(turns).toBeGreaterThan(0);
  });

  it('refuses a query that does not fit the schema', async () => {
    const bad: Query[] = [
      { limit: -1, predicates: [] },
      { limit: 1.5, predicates: [] },
      { limit: 1, predicates: [{ kind: 'int', field: 9, op: 'eq', value: 1n }] },
      { limit: 1, predicates: [{ kind: 'string', field: 0, op: 'exact', value: '1' }] },
      { limit: 1, predicates: [{ kind: 'string', field: 3, op: 'like', value: '\ud800' }] },
    ];
    for (const query of bad) {
      const snapshot = makeSnapshot(dataset, tidy);
      const pieces = executeScan(snapshot, query).lines[Symbol.asyncIterator]();
      await expect(pieces.next()).rejects.toMatchObject({ code: 'invalid' });
      expect(snapshot.released()).toBe(1);
    }
  });
});
