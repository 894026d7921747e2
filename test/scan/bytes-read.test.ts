import { describe, expect, it } from 'vitest';
import { executeScan } from '../../engine/scan/answer.js';
import type { FieldPredicate, Predicate } from '../../engine/scan/query.js';
import { BufferPool } from '../../engine/store/reading/buffer-pool.js';
import { MemoryDirectory } from '../storage-doubles/memory-directory.js';
import { answerOf } from '../model/answer.js';
import { numbered } from './numbered.js';
import { storeSnapshot } from './stored-snapshot.js';

const dataset = numbered(4000);
const layout = { segments: 3, stretch: 700, rowGroupRows: 500, hotRecords: 40, codec: 'lz4' } as const;

const early: Predicate = { kind: 'int', field: 0, op: 'lt', value: 1_735_689_600_100n };
const nobody: Predicate = { kind: 'string', field: 1, op: 'exact', value: 'zzz' };
const absent: Predicate = { kind: 'string', field: 2, op: 'like', value: 'no. 4001 done' };
const common: Predicate = { kind: 'string', field: 2, op: 'suffix', value: '5 DONE' };

const exactly = (field: number, value: string): FieldPredicate => ({
  kind: 'string',
  field,
  op: 'exact',
  value,
});
const without = (op: 'ne' | 'not_like', field: number, value: string): Predicate => {
  return { kind: 'string', field, op, value };
};
const anywhere = (value: string, isAbsent = false): Predicate => ({
  kind: 'anywhere',
  op: 'like',
  isAbsent,
  value,
});
const oneOf = (...members: FieldPredicate[]): Predicate => ({
  kind: 'set',
  field: members[0]!.field,
  members,
});

describe('sets and negations', () => {
  it.each([
    ['values beyond all bounds', 'rowGroupsPrunedByZone', [oneOf(exactly(1, 'zzz'), exactly(1, 'zzzz'))]],
    [
      'times before all records',
      'rowGroupsPrunedByTime',
      [oneOf({ kind: 'int', field: 0, op: 'eq', value: 5n })],
    ],
    [
      'texts that the grams rule out',
      'rowGroupsPrunedByGram',
      [{ kind: 'string', field: 2, op: 'like', value: 'which xyz wrote' }],
    ],
    [
      'values that the filters rule out',
      'rowGroupsPrunedByValue',
      [oneOf(exactly(2, 'request 1 of nobody'), exactly(2, 'request 2 which xyz wrote'))],
    ],
    [
      'values that the dictionaries rule out',
      'rowGroupsPrunedByDictionary',
      [oneOf(exactly(1, 'fatal'), exactly(1, 'hint'))],
    ],
    [
      'the negation of a filter that all records match',
      'rowGroupsPrunedByZone',
      [without('not_like', 2, '')],
    ],
    ['an excluded text that all records contain', 'rowGroupsPrunedByZone', [anywhere('', true)]],
  ] as const)('are ruled out by filters: %s', async (_name, counted, predicates) => {
    const directory = new MemoryDirectory();
    const pool = new BufferPool(1 << 26);
    const snapshot = await storeSnapshot(directory, 'set', dataset, { ...layout, hotRecords: 0 }, pool);
    const query = { limit: 100, predicates };
    const { lines, stats } = executeScan(snapshot, query);
    const pieces: Uint8Array[] = [];
    for await (const piece of lines) pieces.push(piece.slice());
    expect(Buffer.concat(pieces).toString('utf8')).toBe(answerOf(dataset, query));
    expect(stats[counted]).toBe(stats.rowGroups);
    if (counted !== 'rowGroupsPrunedByDictionary') expect(stats.columnsDecoded).toBe(0);
    pool.close();
  });

  it('of a text that all records contain are answered', async () => {
    const directory = new MemoryDirectory();
    const pool = new BufferPool(1 << 26);
    const snapshot = await storeSnapshot(directory, 'set', dataset, layout, pool);
    const query = {
      limit: 10_000,
      predicates: [without('ne', 2, 'nobody wrote this'), without('not_like', 2, '7')],
    };
    const { lines, stats } = executeScan(snapshot, query);
    const pieces: Uint8Array[] = [];
    for await (const piece of lines) pieces.push(piece.slice());
    expect(Buffer.concat(pieces).toString('utf8')).toBe(answerOf(dataset, query));
    expect(stats.rowsReturned).toBeGreaterThan(1000);
    pool.close();
  });
});

describe('a text in any string', () => {
  it('is not searched in further columns for rows that already match, nor if all rows do', async () => {
    const directory = new MemoryDirectory();
    const pool = new BufferPool(1 << 26);
    const snapshot = await storeSnapshot(directory, 'set', dataset, { ...layout, hotRecords: 0 }, pool);
    const decodedBy = async (...predicates: Predicate[]): Promise<number> => {
      const { lines, stats } = executeScan(snapshot, {
        limit: 10_000,
        predicates,
        form: { format: 'jsonl', fields: [] },
      });
      const pieces: Uint8Array[] = [];
      for await (const piece of lines) pieces.push(piece.slice());
      const query = { limit: 10_000, predicates, form: { format: 'jsonl', fields: [] } } as const;
      expect(Buffer.concat(pieces).toString('utf8')).toBe(answerOf(dataset, query));
      return (stats.columnsDecoded + stats.columnsCached) / stats.rowGroups;
    };
    const info = exactly(1, 'info');
    expect(await decodedBy(anywhere(''))).toBe(0);
    // Each row that the first filter leaves contains the text in the same column.
    expect(await decodedBy(info, anywhere('INF'))).toBe(2);
    // Nor if filters show that no message contains it.
    expect(await decodedBy(anywhere('INF'))).toBe(1);
    expect(await decodedBy(anywhere('rro'), anywhere('7 done', true))).toBe(3);
    expect(await decodedBy(anywhere('0.0.'))).toBe(2);
    pool.close();
  });
});

describe('the bytes that a query reports to have read', () => {
  it.each([
    ['the newest records', 100, []],
    ['all', 10_000, []],
    ['a value that the bounds rule out', 100, [nobody]],
    ['a text that the grams rule out', 100, [absent]],
    ['values that have to be compared', 50, [early, common]],
    ['a text that all records contain', 10_000, [common]],
  ] as const)('equal the bytes that were read from files: %s', async (_name, limit, predicates) => {
    const directory = new MemoryDirectory();
    const pool = new BufferPool(1 << 26);
    const snapshot = await storeSnapshot(directory, 'set', dataset, layout, pool);
    const query = { limit, predicates };
    for (const isFirst of [true, false]) {
      const before = directory.bytesRead;
      const { lines, stats } = executeScan(snapshot, query);
      const pieces: Uint8Array[] = [];
      for await (const piece of lines) pieces.push(piece.slice());
      expect(Buffer.concat(pieces).toString('utf8')).toBe(answerOf(dataset, query));
      expect(stats.bytesRead).toBe(directory.bytesRead - before);
      expect(stats.bytesRead > 0).toBe(isFirst || stats.gramPiecesRead > 0);
    }
    pool.close();
  });
});
