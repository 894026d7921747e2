import { createHash } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { executeScan } from '../../engine/scan/answer.js';
import type { Predicate, Query, ScanStats } from '../../engine/scan/query.js';
import { openRealDirectory } from '../../engine/store/disk/real-directory.js';
import { BufferPool } from '../../engine/store/reading/buffer-pool.js';
import { KnownRulings } from '../../engine/store/reading/known-rulings.js';
import { filterParts } from '../../engine/store/sealed/segment-filters.js';
import { rulingsKnownBytesMax } from '../../engine/core/limits.js';
import { WorkerPool } from '../../engine/workers/worker-pool.js';
import { answerOf } from '../model/answer.js';
import type { Dataset } from '../model/dataset.js';
import { numbered } from './numbered.js';
import { storeSnapshot, type StoredSnapshot } from './stored-snapshot.js';

/** 60 row groups in three segments, in alternating stretches. */
const dataset = numbered(6000);
const layout = { segments: 3, stretch: 250, rowGroupRows: 100, hotRecords: 0, codec: 'lz4' } as const;
const rowGroups = 60;
const folder = mkdtempSync(join(tmpdir(), 'logstrata-kept-'));
const workers = new WorkerPool(2);
afterAll(async () => {
  await workers.close();
  rmSync(folder, { recursive: true });
});

const ask = async (stored: StoredSnapshot, query: Query): Promise<{ text: string; stats: ScanStats }> => {
  const { lines, stats } = executeScan(stored, query, { workers });
  const pieces: Uint8Array[] = [];
  for await (const piece of lines) pieces.push(piece.slice());
  return { text: Buffer.concat(pieces).toString('utf8'), stats };
};

const piecesOf = ({ gramPiecesRead, valuePiecesRead }: ScanStats): number => gramPiecesRead + valuePiecesRead;

const message = (op: 'exact' | 'like', value: string): Predicate => ({ kind: 'string', field: 2, op, value });
const messageOf = (i: number): string => dataset.records[i]!.values[2] as string;
const set = (...values: string[]): Predicate => ({
  kind: 'set',
  field: 2,
  members: values.map((value) => message('exact', value)) as never,
});

/** Four row groups whose filters have many pieces each, in two segments. */
const large = numbered(16_000);
const largeLayout = { segments: 2, stretch: 4000, rowGroupRows: 4000, hotRecords: 0, codec: 'lz4' } as const;
/** A whole value and a part of one; no other record has either. */
const needlesOf = (i: number): Predicate[] => {
  const text = large.records[i]!.values[2] as string;
  return [message('exact', text), message('like', text.slice(4, 18))];
};
const numbers = Array.from({ length: 8 }, (_, i) => 1000 + 1987 * i);

describe('filters of many pieces', () => {
  it('rule nothing out if they are damaged', async () => {
    const columns = new BufferPool(1 << 27);
    const directory = await openRealDirectory(folder);
    const stored = await storeSnapshot(directory, 'damaged', large, largeLayout, columns);
    for (const segment of stored.segments) {
      const parts = filterParts((await segment.footer()).metadata, 2);
      const bytes = readFileSync(join(folder, segment.path));
      expect(parts.length).toBeGreaterThanOrEqual(5);
      for (const { offset, bytes: length } of parts) bytes.fill(0, offset + length / 2, offset + length);
      writeFileSync(join(folder, segment.path), bytes);
    }
    for (const i of numbers) {
      for (const predicate of needlesOf(i)) {
        const query = { limit: 10, predicates: [predicate] };
        expect((await ask(stored, query)).text).toBe(answerOf(large, query));
      }
    }
    columns.close();
  });
});

describe('filters that are asked again', () => {
  it.each([
    ['a whole value', [message('exact', messageOf(1234))], 1],
    ['one of two values', [set(messageOf(17), 'nobody')], 1],
    ['an absent value', [message('exact', 'nobody')], 0],
    ['a part', [message('like', 'is no. 4321 done')], 1],
    ['an absent part', [message('like', 'which xyz wrote')], 0],
    ['a part and a whole value', [message('like', '0.0.'), message('exact', messageOf(99))], 1],
  ])('are not read again, and rule out the same row groups: %s', async (name, predicates, found) => {
    const columns = new BufferPool(1 << 27);
    const directory = await openRealDirectory(folder);
    const stored = await storeSnapshot(directory, name.replaceAll(' ', '-'), dataset, layout, columns);
    const query = { limit: 10, predicates };
    const first = await ask(stored, query);
    expect(first.text).toBe(answerOf(dataset, query));
    expect(first.text.split('\n')).toHaveLength(found + 1);
    expect(piecesOf(first.stats)).toBeGreaterThan(0);
    const { text, stats: kept } = await ask(stored, query);
    expect(text).toBe(first.text);
    expect(piecesOf(kept)).toBe(0);
    const ruledOut = (stats: ScanStats): number =>
      stats.rowGroupsPrunedByValue + stats.rowGroupsPrunedByGram + stats.rowGroupsPrunedByZone;
    expect(ruledOut(kept)).toBe(ruledOut(first.stats));
    expect(ruledOut(kept)).toBeGreaterThan(rowGroups - 10);
    columns.close();
  });

  it('are asked about the row groups that they were not asked about before', async () => {
    const columns = new BufferPool(1 << 27);
    const directory = await openRealDirectory(folder);
    const stored = await storeSnapshot(directory, 'more', dataset, layout, columns);
    const predicates = [message('exact', messageOf(4321))];
    const newest = { limit: 10, predicates, after: dataset.records[5000]!.position };
    expect((await ask(stored, newest)).text).toBe(answerOf(dataset, newest));
    const query = { limit: 10, predicates };
    const { text, stats } = await ask(stored, query);
    expect(text).toBe(answerOf(dataset, query));
    expect(stats.rowGroupsPrunedByValue).toBeGreaterThan(rowGroups - 10);
    expect(piecesOf(stats)).toBeGreaterThan(0);
    expect(piecesOf((await ask(stored, query)).stats)).toBe(0);
    columns.close();
  });

  it('are read again after much else was asked for', async () => {
    const columns = new BufferPool(1 << 27);
    const directory = await openRealDirectory(folder);
    const stored = await storeSnapshot(directory, 'much-else', dataset, layout, columns);
    const query = { limit: 10, predicates: [message('like', 'which xyz wrote')] };
    const pieces = async (): Promise<number> => piecesOf((await ask(stored, query)).stats);
    expect(await pieces()).toBeGreaterThan(0);
    expect(await pieces()).toBe(0);
    const bytes = 1 << 20;
    for (let i = 0; i <= rulingsKnownBytesMax / bytes; i++)
      KnownRulings.of([{ hash: null, shortHash: null, folded: new Uint8Array(bytes).fill(i) }]);
    expect(await pieces()).toBeGreaterThan(0);
    columns.close();
  });
});

describe('value filters that are asked for ever other values', () => {
  const idOf = (i: number): string => createHash('sha256').update(`id ${i}`).digest('hex').slice(0, 32);
  const ids: Dataset = {
    schema: dataset.schema,
    records: dataset.records.map(({ position, values }, i) => ({
      position,
      values: [values[0]!, values[1]!, idOf(i)],
    })),
  };
  const other = { next: ids.records.length };
  const ofId = (id: string): Query => ({ limit: 10, predicates: [message('exact', id)] });

  it('are soon in memory as a whole, and give the same answers', async () => {
    const columns = new BufferPool(1 << 27);
    const stored = await storeSnapshot(await openRealDirectory(folder), 'ids', ids, layout, columns);
    await expect.poll(async () => piecesOf((await ask(stored, ofId(idOf(other.next++)))).stats)).toBe(0);
    for (let i = 0; i < ids.records.length; i += 97) {
      const query = ofId(idOf(i));
      const { text, stats } = await ask(stored, query);
      expect(text).toBe(answerOf(ids, query));
      expect(piecesOf(stats)).toBe(0);
      expect(stats.rowGroupsPrunedByValue + stats.rowGroupsPrunedByZone).toBeGreaterThan(rowGroups - 10);
    }
    for (const segment of stored.segments) segment.close();
    expect(piecesOf((await ask(stored, ofId(idOf(other.next++)))).stats)).toBeGreaterThan(0);
    columns.close();
  });

  it('rule nothing out if they are damaged', async () => {
    const columns = new BufferPool(1 << 27);
    const stored = await storeSnapshot(await openRealDirectory(folder), 'bad-ids', ids, layout, columns);
    for (const segment of stored.segments) {
      const parts = filterParts((await segment.footer()).metadata, rowGroups / 3);
      const bytes = readFileSync(join(folder, segment.path));
      for (const { offset, bytes: length } of parts) bytes.fill(0, offset + length / 2, offset + length);
      writeFileSync(join(folder, segment.path), bytes);
    }
    for (let i = 0; i < ids.records.length; i += 211) {
      const query = ofId(idOf(i));
      expect((await ask(stored, query)).text).toBe(answerOf(ids, query));
    }
    columns.close();
  });
});
