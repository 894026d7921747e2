import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { caseCount, fc } from '../cases.js';
import { LogstrataError } from '../../engine/core/errors.js';
import { sharedMemory } from '../../engine/core/shared-memory.js';
import { answerBytesMax } from '../../engine/core/limits.js';
import { executeScan } from '../../engine/scan/answer.js';
import type { Query } from '../../engine/scan/query.js';
import { BufferPool } from '../../engine/store/reading/buffer-pool.js';
import { MemoryDirectory } from '../storage-doubles/memory-directory.js';
import { answerOf } from '../model/answer.js';
import type { Dataset } from '../model/dataset.js';
import { numbered } from './numbered.js';
import { storeSnapshot, type StoredSnapshot } from './stored-snapshot.js';

const rows = 900;
const columns = new BufferPool(1 << 26);
const everything: Query = { limit: rows, after: { partition: 0, ordinal: 0 }, predicates: [] };
let dataset: Dataset;
let snapshot: StoredSnapshot;

beforeAll(async () => {
  dataset = numbered(rows);
  const layout = { segments: 3, stretch: 7, rowGroupRows: 60, hotRecords: 40, codec: 'lz4' } as const;
  snapshot = await storeSnapshot(new MemoryDirectory(), 'pages', dataset, layout, columns);
});
afterAll(() => columns.close());

async function textOf(of: StoredSnapshot, query: Query, lends: boolean): Promise<string> {
  const pieces: Buffer[] = [];
  for await (const piece of executeScan(of, query, { lends }).lines) pieces.push(Buffer.from(piece));
  return Buffer.concat(pieces).toString();
}

const position = fc.option(
  fc.record({ partition: fc.constant(482136), ordinal: fc.integer({ min: 0, max: rows + 1 }) }),
  { nil: undefined },
);
const pages: fc.Arbitrary<Query> = fc.record({
  limit: fc.integer({ min: 0, max: 300 }),
  after: position,
  before: position,
  predicates: fc.constant([]),
});

describe('a page of rows that are in memory', () => {
  it('has the requested rows across row groups, hot and sealed', async () => {
    await textOf(snapshot, everything, false);
    const takenBytes = sharedMemory().takenBytes;
    await fc.assert(
      fc.asyncProperty(pages, fc.boolean(), async (query, lends) => {
        expect(await textOf(snapshot, query, lends)).toBe(answerOf(dataset, query));
      }),
      { numRuns: caseCount(300) },
    );
    expect(sharedMemory().takenBytes).toBe(takenBytes);
    expect(columns.pinnedBytes).toBe(0);
  });

  it('is read again if its columns have left memory', async () => {
    const query: Query = { limit: 100, before: { partition: 482136, ordinal: 500 }, predicates: [] };
    for (let i = 0; i < 3; i++) {
      if (i === 1) columns.evict('');
      expect(await textOf(snapshot, query, true)).toBe(answerOf(dataset, query));
    }
  });

  it('makes nothing that a wait would need, and is refused like others where it may read too much', async () => {
    const query: Query = { limit: 100, before: { partition: 482136, ordinal: 500 }, predicates: [] };
    let made = 0;
    const signal = (): AbortSignal => {
      made++;
      return new AbortController().signal;
    };
    const ask = async (bytesMax?: number): Promise<void> => {
      for await (const piece of executeScan(snapshot, query, { signal, bytesMax }).lines)
        expect(Buffer.from(piece).toString()).toBe(answerOf(dataset, query));
    };
    columns.evict('');
    await ask();
    expect(made).toBe(1);
    await ask();
    await ask(1 << 20);
    expect(made).toBe(1);
    await expect(ask(100)).rejects.toMatchObject({ code: 'invalid' });
  });

  it('holds its snapshot only while it is written, and reports its cost', async () => {
    const query: Query = { limit: 100, predicates: [] };
    await textOf(snapshot, query, true);
    const released = snapshot.released();
    const { stats, lines } = executeScan(snapshot, query, { lends: false });
    for await (const piece of lines) expect(piece.length).toBeGreaterThan(0);
    expect(snapshot.released()).toBe(released + 1);
    expect(stats).toMatchObject({ rowsReturned: 100, bytesRead: 0, columnsDecoded: 0 });
    expect(stats.rowGroupsScanned).toBeGreaterThan(3);
    // Hot rows are in no cache.
    expect(stats.columnsCached).toBe((stats.rowGroupsScanned - 1) * dataset.schema.fields.length);
  });

  it('is not written for a query that was cancelled before', async () => {
    const signal = AbortSignal.abort(new LogstrataError('timeout', 'the time is over'));
    const { lines } = executeScan(snapshot, { limit: 10, predicates: [] }, { signal });
    const pieces = lines[Symbol.asyncIterator]();
    await expect(pieces.next()).rejects.toMatchObject({ code: 'timeout' });
  });

  it('that is too long for one piece has several', async () => {
    const { schema, records } = numbered(200);
    const long: Dataset = {
      schema,
      records: records.map(({ position, values: [time, level] }, i) => ({
        position,
        values: [time!, level!, 'x'.repeat(i === 150 ? 2 * answerBytesMax : 900)],
      })),
    };
    const layout = { segments: 1, stretch: 200, rowGroupRows: 50, hotRecords: 0, codec: 'lz4' } as const;
    const stored = await storeSnapshot(new MemoryDirectory(), 'long', long, layout, columns);
    for (const limit of [10, 60, 100, 10, 49, 50, 200, 60, 10]) {
      const query = { limit, predicates: [] };
      expect((await textOf(stored, query, true)) === answerOf(long, query)).toBe(true);
    }
  });
});
