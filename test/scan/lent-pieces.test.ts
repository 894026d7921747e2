import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { sharedMemory } from '../../engine/core/shared-memory.js';
import { cellsTaken } from '../../engine/scan/json-lines.js';
import { executeScan, type ScanSettings } from '../../engine/scan/answer.js';
import type { Query } from '../../engine/scan/query.js';
import { BufferPool } from '../../engine/store/reading/buffer-pool.js';
import { openRealDirectory } from '../../engine/store/disk/real-directory.js';
import { WorkerPool } from '../../engine/workers/worker-pool.js';
import { answerOf } from '../model/answer.js';
import type { Dataset } from '../model/dataset.js';
import { numbered } from './numbered.js';
import { storeSnapshot, type StoredSnapshot } from './stored-snapshot.js';
import type { PieceIterator } from '../../engine/scan/scan.js';

const folder = mkdtempSync(join(tmpdir(), 'logstrata-lent-'));
const columns = new BufferPool(1 << 28);
const workers = new WorkerPool(2);
const memory = sharedMemory();
const rows = 44_000;
let dataset: Dataset;
let snapshot: StoredSnapshot;

beforeAll(async () => {
  dataset = numbered(rows);
  const layout = { segments: 1, stretch: rows, rowGroupRows: 4000, hotRecords: 0, codec: 'lz4' } as const;
  snapshot = await storeSnapshot(await openRealDirectory(folder), 'lent', dataset, layout, columns);
});
afterAll(async () => {
  await workers.close();
  columns.close();
  rmSync(folder, { recursive: true });
});

const after = { partition: 0, ordinal: 0 };
const everything: Query = { limit: rows, after, predicates: [] };
const newest: Query = { limit: 100, predicates: [] };

function linesOf(query: Query, settings: ScanSettings): PieceIterator {
  const { lines } = executeScan(snapshot, query, settings);
  if (!('isAtEnd' in lines)) throw new Error('a scan of a snapshot knows its last piece');
  return lines;
}

describe('the pieces of an answer', () => {
  it('belong to the reader unless they may be lent, and have the same bytes', async () => {
    for (const settings of [{ workers }, { workers, lends: true }, {}, { lends: true }]) {
      const pieces: { given: Uint8Array; copy: Buffer }[] = [];
      for await (const given of linesOf(everything, { ...settings, pieceBytes: 20_000 }))
        pieces.push({ given, copy: Buffer.from(given) });
      expect(Buffer.concat(pieces.map(({ copy }) => copy)).toString()).toBe(answerOf(dataset, everything));
      const isKept = pieces.every(({ given, copy }) => copy.equals(given));
      const isLent = pieces.every(({ given }) => memory.holds(given));
      const { lends = false } = settings as ScanSettings;
      expect({ isKept, isLent }).toEqual({ isKept: !lends, isLent: lends });
    }
  });

  it('use one buffer at a time if they are lent, and give it back', async () => {
    for await (const piece of linesOf(everything, { lends: true })) expect(piece.length).toBeGreaterThan(0);
    let most = 0;
    for await (const piece of linesOf(everything, { lends: true, pieceBytes: 20_000 })) {
      expect(memory.holds(piece)).toBe(true);
      most = Math.max(most, cellsTaken());
    }
    expect([most, cellsTaken()]).toEqual([1, 0]);
  });

  it('are copied and shared where the same page is asked for again', async () => {
    const query: Query = { limit: 70, predicates: [] };
    const given: { bytes: Uint8Array; isLent: boolean; text: string }[] = [];
    for (let times = 0; times < 4; times++) {
      const lines = linesOf(query, { workers, lends: true, joins: true });
      const bytes = (await lines.next()).value!;
      given.push({ bytes, isLent: memory.holds(bytes), text: Buffer.from(bytes).toString() });
      expect(lines.isAtEnd).toBe(true);
      expect(await lines.next()).toEqual({ done: true, value: undefined });
    }
    expect(given.map(({ text }) => text)).toEqual(given.map(() => answerOf(dataset, query)));
    expect(given.map(({ isLent }) => isLent)).toEqual([true, false, false, false]);
    expect(new Set(given.slice(1).map(({ bytes }) => bytes)).size).toBe(1);
  });

  it('are known to be the last one, and hold no columns', async () => {
    const level = { kind: 'string', field: 1, op: 'exact', value: 'error' } as const;
    const time = { kind: 'int', field: 0, op: 'gte', value: 1_735_689_600_100n } as const;
    for (const query of [
      newest,
      { limit: 60, predicates: [level, time] },
      { limit: 60, after, predicates: [time, level] },
    ]) {
      columns.evict('');
      const released = snapshot.released();
      for (let times = 1; times <= 2; times++) {
        const lines = linesOf(query, { workers, lends: true });
        const first = await lines.next();
        expect(Buffer.from(first.value!).toString()).toBe(answerOf(dataset, query));
        expect(lines.isAtEnd).toBe(true);
        await expect.poll(() => columns.pinnedBytes).toBe(0);
        expect(await lines.next()).toEqual({ done: true, value: undefined });
        await expect.poll(() => snapshot.released()).toBe(released + times);
      }
    }
    expect(cellsTaken()).toBe(0);
  });
});
