import { createHash } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { caseCount, fc } from '../cases.js';
import { executeScan } from '../../engine/scan/answer.js';
import { countParts } from '../../engine/scan/count.js';
import type { AnyPredicate, FieldPredicate, Predicate, ScanStats } from '../../engine/scan/query.js';
import { makeSchema } from '../../engine/core/schema.js';
import { BufferPool } from '../../engine/store/reading/buffer-pool.js';
import { answerOf } from '../model/answer.js';
import { datasets, groups, predicates } from '../model/arbitraries.js';
import { countsOf } from '../model/count.js';
import type { Dataset } from '../model/dataset.js';
import { MemoryDirectory } from '../storage-doubles/memory-directory.js';
import { storeSnapshot, type StoredLayout } from './stored-snapshot.js';

const startMs = 1_735_689_600_000;

/** 24 hexadecimal digits that occur in no other text. */
function digitsOf(text: string): string {
  return createHash('md5').update(text).digest('hex').slice(0, 24);
}

/** 3000 records in 30 row groups. `rare` has a value in every tenth row group, in half of its rows. */
const dataset: Dataset = {
  schema: makeSchema([
    { name: 'time', type: 'time' },
    { name: 'number', type: 'int' },
    { name: 'id', type: 'string' },
    { name: 'message', type: 'string', index: true },
    { name: 'rare', type: 'int' },
  ]),
  records: Array.from({ length: 3000 }, (_, i) => ({
    position: { partition: 482136, ordinal: i + 1 },
    values: [
      BigInt(startMs + i),
      BigInt(i),
      digitsOf(`id ${i}`),
      `user ${digitsOf(`user ${i}`)} has read page ${i}`,
      i % 1000 < 100 && i % 2 === 0 ? BigInt(i) : null,
    ],
  })),
};
const rowGroups = 30;
const layout: StoredLayout = { segments: 1, stretch: 3000, rowGroupRows: 100, hotRecords: 0, codec: 'lz4' };

const id = (i: number) => ({ kind: 'string', field: 2, op: 'exact', value: digitsOf(`id ${i}`) }) as const;
const user = (i: number) => ({ kind: 'string', field: 3, op: 'like', value: digitsOf(`user ${i}`) }) as const;
const number = (op: 'gte' | 'lt', i: number): FieldPredicate => ({
  kind: 'int',
  field: 1,
  op,
  value: BigInt(i),
});
const time = (op: 'gte' | 'lt', i: number): FieldPredicate => ({
  kind: 'int',
  field: 0,
  op,
  value: BigInt(startMs + i),
});
const exists = (field: number, value: boolean): FieldPredicate => ({ kind: 'exists', field, value });
const any = (...members: AnyPredicate['members']): Predicate => ({ kind: 'any', members });

/** What it costs to find the matches. Only their cursors are written, so that no column is read for the lines. */
async function costOf(...asked: Predicate[]): Promise<ScanStats> {
  const columns = new BufferPool(1 << 26);
  const snapshot = await storeSnapshot(new MemoryDirectory(), 'some', dataset, layout, columns);
  const query = { limit: 10_000, predicates: asked, form: { format: 'jsonl', fields: [] } } as const;
  const { lines, stats } = executeScan(snapshot, query);
  const pieces: Uint8Array[] = [];
  for await (const piece of lines) pieces.push(piece.slice());
  expect(Buffer.concat(pieces).toString()).toBe(answerOf(dataset, query));
  columns.close();
  return stats;
}

describe('of a group of filters', () => {
  it('no row group is read that has none of two rare values', async () => {
    const ids = await costOf(any(id(120), id(2530)));
    expect(ids).toMatchObject({ rowGroupsPrunedByValue: rowGroups - 2, rowsScanned: 200, columnsDecoded: 2 });
    const fields = await costOf(any(id(120), user(2530)));
    expect(fields).toMatchObject({ rowsReturned: 2, rowsScanned: 200 });
    // In each of the two row groups only the column is read whose filter may have the value.
    expect(fields.columnsDecoded).toBe(2);
    const texts = await costOf(any(user(120), user(2530)));
    expect(texts).toMatchObject({ rowGroupsPrunedByGram: rowGroups - 2, rowsScanned: 200 });
  });

  it('no row group is read where bounds exclude some and filters the others', async () => {
    const stats = await costOf(any(number('gte', 2950), user(120)));
    // The newest row group has both kinds of rows.
    expect(stats).toMatchObject({ rowsReturned: 51, rowGroupsPrunedByGram: rowGroups - 2, rowsScanned: 200 });
    expect(stats.columnsDecoded).toBe(2);
  });

  it('no row group is opened between two windows of time', async () => {
    const stats = await costOf(any(time('lt', 50), time('gte', 2900)));
    expect(stats).toMatchObject({
      rowsReturned: 150,
      rowGroupsPrunedByZone: rowGroups - 2,
      columnsDecoded: 1,
    });
  });

  it('no column is read where one holds for all rows of a row group', async () => {
    const stats = await costOf(any(number('lt', 3000), id(7)));
    expect(stats).toMatchObject({ rowsReturned: 3000, rowsScanned: 0, columnsDecoded: 0 });
  });

  it('nothing is looked at where it is empty', async () => {
    const stats = await costOf(any(), number('lt', 3000));
    expect(stats).toMatchObject({ runs: 0, rowGroups: 0, rowsReturned: 0, bytesRead: 0 });
  });
});

describe('whether a field has a value', () => {
  it('is known without its column where all rows have one, or none', async () => {
    expect(await costOf(exists(2, true))).toMatchObject({ rowsReturned: 3000, columnsDecoded: 0 });
    expect(await costOf(exists(2, false))).toMatchObject({ rowGroupsPrunedByZone: 30, columnsDecoded: 0 });
    const some = await costOf(exists(4, true));
    expect(some).toMatchObject({ rowsReturned: 150, rowGroupsPrunedByZone: 27, columnsDecoded: 3 });
    const others = await costOf(exists(4, false));
    expect(others).toMatchObject({ rowsReturned: 2850, rowsScanned: 300, columnsDecoded: 3 });
  });
});

describe('groups of filters', () => {
  it('are answered and counted as in the model, from sealed and hot rows', async () => {
    const cases = datasets(80).chain((drawn) => {
      const others = fc.array(predicates(drawn), { maxLength: 1 });
      const query = fc.tuple(fc.array(groups(drawn), { minLength: 1, maxLength: 2 }), others);
      const stored = fc.record({
        segments: fc.constantFrom(1, 3),
        stretch: fc.constantFrom(7, 20),
        rowGroupRows: fc.constantFrom(3, 10, 40),
        hotRecords: fc.constantFrom(0, 0, 20),
        codec: fc.constantFrom('lz4' as const, 'zstd' as const),
      });
      return fc.tuple(fc.constant(drawn), stored, fc.array(query, { minLength: 20, maxLength: 20 }));
    });
    await fc.assert(
      fc.asyncProperty(cases, async ([drawn, own, queries]) => {
        const columns = new BufferPool(1 << 26);
        const snapshot = await storeSnapshot(new MemoryDirectory(), 'drawn', drawn, own, columns);
        for (const [i, [some, others]] of queries.entries()) {
          const query = { limit: i % 4 === 0 ? 3 : 1000, predicates: [...some, ...others] };
          const pieces: Uint8Array[] = [];
          for await (const piece of executeScan(snapshot, query).lines) pieces.push(piece.slice());
          expect(Buffer.concat(pieces).toString()).toBe(answerOf(drawn, query));
          if (i % 4 > 0) continue;
          const counted = { ...query, values: { field: i % 6, top: 5 } };
          const { stats: _, ...counts } = await countParts([{ snapshot, query: counted }], {});
          expect(counts).toEqual(countsOf(drawn, counted));
        }
        columns.close();
      }),
      // 10,000 queries in the long run.
      { numRuns: caseCount(30, 500) },
    );
  });
});
