import { describe, expect, it } from 'vitest';
import { executeScan } from '../../engine/scan/execute.js';
import type { Predicate } from '../../engine/scan/query.js';
import { BufferPool } from '../../engine/storage/buffer-pool.js';
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

describe('the bytes that a query is said to have read', () => {
  it.each([
    ['the newest', 100, []],
    ['all', 10_000, []],
    ['what the bounds rule out', 100, [nobody]],
    ['what the grams rule out', 100, [absent]],
    ['what has to be compared', 50, [early, common]],
    ['what is found everywhere', 10_000, [common]],
  ] as const)('are those that were read from files: %s', async (_name, limit, predicates) => {
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
