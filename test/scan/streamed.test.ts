import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { DamageError } from '../../engine/core/errors.js';
import { streamedBytesMin } from '../../engine/core/limits.js';
import { executeScan } from '../../engine/scan/answer.js';
import { isRare } from '../../engine/scan/ranked-predicate.js';
import type { Query, ScanStats, StringOp } from '../../engine/scan/query.js';
import { makeSchema } from '../../engine/core/schema.js';
import { BufferPool } from '../../engine/store/reading/buffer-pool.js';
import type { Directory } from '../../engine/store/disk/directory.js';
import { openRealDirectory } from '../../engine/store/disk/real-directory.js';
import { WorkerPool } from '../../engine/workers/worker-pool.js';
import { answerOf } from '../model/answer.js';
import type { Dataset } from '../model/dataset.js';
import { storeSnapshot, type StoredSnapshot } from './stored-snapshot.js';

const folder = mkdtempSync(join(tmpdir(), 'logstrata-passing-'));
const workers = new WorkerPool(2);
const inline = new WorkerPool(0);
let directory: Directory;
let files = 0;

beforeAll(async () => {
  directory = await openRealDirectory(folder);
});
afterAll(async () => {
  await workers.close();
  rmSync(folder, { recursive: true });
});

const schema = makeSchema([
  { name: 'time', type: 'time' },
  { name: 'message', type: 'string', index: false },
]);
const rowGroups = 8;
const rowGroupRows = 1000;
const special = ['\u212aelvin', 'Kelvin', 'Ünïcode', 'l\u017fd', ''];

/** Eight row groups whose messages exceed `streamedBytesMin`; each message has its number, and some are null. */
const dataset: Dataset = {
  schema,
  records: Array.from({ length: rowGroups * rowGroupRows }, (_, i) => {
    const filling = `${(i * 2654435761) % 4294967296} ${i % 97} `.repeat(100);
    const message = `no. ${i} ${filling}${i === 5500 ? 'A Needle' : ''}${i > 7900 ? special[i % 5]! : ''} end`;
    return {
      position: { partition: 482136, ordinal: i + 1 },
      values: [BigInt(1_735_689_600_000 + i), i % 13 === 4 ? null : message],
    };
  }),
};

async function store(columns: BufferPool, stored: Dataset = dataset): Promise<StoredSnapshot> {
  const layout = { segments: 1, stretch: 1000, rowGroupRows, hotRecords: 0, codec: 'lz4' } as const;
  const snapshot = await storeSnapshot(directory, `set-${files++}`, stored, layout, columns);
  const { footer } = await snapshot.segments[0]!.footer();
  for (const { chunks } of footer.rowGroups)
    expect(chunks[2]!.uncompressedBytes).toBeGreaterThan(streamedBytesMin);
  return snapshot;
}

async function chunkBytes(snapshot: StoredSnapshot, column: number): Promise<number> {
  const { footer } = await snapshot.segments[0]!.footer();
  return footer.rowGroups.reduce((sum, { chunks }) => sum + chunks[column]!.bytes, 0);
}

async function ask(
  snapshot: StoredSnapshot,
  query: Query,
  pool = workers,
): Promise<{ text: string; stats: ScanStats }> {
  const { lines, stats } = executeScan(snapshot, query, { workers: pool });
  const pieces: Uint8Array[] = [];
  for await (const piece of lines) pieces.push(piece);
  return { text: Buffer.concat(pieces).toString('utf8'), stats };
}

const message = (op: StringOp, value: string): Query => ({
  limit: 100,
  predicates: [{ kind: 'string', field: 1, op, value }],
});
const rare = message('like', 'a nEEDLE');
const absent = message('like', 'nowhere');

describe('a search in columns that are not in memory', () => {
  it('caches none the first time, all of them the second, and reads nothing the third', async () => {
    const columns = new BufferPool(1 << 28);
    const snapshot = await store(columns);
    const bytes = await chunkBytes(snapshot, 2);
    const first = await ask(snapshot, absent);
    expect(first.text).toBe('');
    expect(first.stats).toMatchObject({
      columnsDecoded: rowGroups,
      columnsCached: 0,
      bytesRead: bytes,
      rowGroupsScanned: rowGroups,
      rowsScanned: rowGroups * rowGroupRows,
    });
    expect(columns.bytes).toBe(0);
    const second = await ask(snapshot, absent);
    expect(second.stats).toMatchObject({ columnsDecoded: rowGroups, columnsCached: 0, bytesRead: bytes });
    expect(columns.bytes).toBeGreaterThan(rowGroups * streamedBytesMin);
    const third = await ask(snapshot, absent);
    expect(third.stats).toMatchObject({ columnsDecoded: 0, columnsCached: rowGroups, bytesRead: 0 });
    columns.close();
  });

  it('caches no column that a filter could not rule out', async () => {
    const [time, { name, type }] = schema.fields as [(typeof schema.fields)[0], (typeof schema.fields)[0]];
    const filtered = { ...dataset, schema: makeSchema([time, { name, type, index: true }]) };
    const columns = new BufferPool(1 << 28);
    const snapshot = await store(columns, filtered);
    expect((await snapshot.segments[0]!.footer()).metadata.gramFilters).toHaveLength(rowGroups);
    // The filters have no grams of two bytes.
    const { text, stats } = await ask(snapshot, message('like', '~~'));
    expect(text).toBe('');
    expect(stats).toMatchObject({ rowGroupsPrunedByGram: 0, rowGroupsScanned: rowGroups });
    expect(columns.bytes).toBe(0);
    columns.close();
  });

  it('decodes only the row group that has the text', async () => {
    const columns = new BufferPool(1 << 28);
    const snapshot = await store(columns);
    const { text, stats } = await ask(snapshot, rare);
    expect(text).toBe(answerOf(dataset, rare));
    expect(text).toContain('no. 5500 ');
    // The message once more, and the time; for writing, the message is in memory by then.
    expect(stats).toMatchObject({ columnsDecoded: rowGroups + 2, columnsCached: 1, rowsReturned: 1 });
    expect(columns.bytes).toBeLessThan(3 * streamedBytesMin);
    columns.close();
  });

  it('caches none, however often, if memory has no room for all searched columns', async () => {
    const columns = new BufferPool(4 * streamedBytesMin);
    const snapshot = await store(columns);
    for (let i = 0; i < 3; i++) {
      const { stats } = await ask(snapshot, absent);
      expect(stats).toMatchObject({ columnsDecoded: rowGroups, columnsCached: 0 });
      expect(columns.bytes).toBe(0);
    }
    columns.close();
  });

  it('ends if most row groups contain the text', async () => {
    const columns = new BufferPool(1 << 28);
    const snapshot = await store(columns);
    const common = { ...message('prefix', 'NO. '), limit: 10_000 };
    const { text, stats } = await ask(snapshot, common);
    expect(text === answerOf(dataset, common)).toBe(true);
    // Row groups that were under way when the first ones turned out to match, and both columns of each row group.
    expect(stats.columnsDecoded).toBeLessThanOrEqual(2 * rowGroups + 4);
    columns.close();
  });

  it('answers like the model, whatever is compared and however it folds', async () => {
    const value = dataset.records[7777]!.values[1] as string;
    const asked = [
      message('like', 'KELVIN'),
      message('like', 'kelvin'),
      message('like', 'ünï'),
      message('like', 'LſD'),
      message('suffix', 'LSD END'),
      message('prefix', 'NO. 4321 '),
      message('suffix', 'a needle END'),
      message('exact', value),
      message('exact', value.toUpperCase()),
      message('exact', ''),
      message('like', ''),
      message('like', value.slice(0, 600)),
      { ...message('like', 'no. 77'), before: { partition: 482136, ordinal: 7790 } },
    ];
    for (const query of asked) {
      const columns = new BufferPool(1 << 28);
      const snapshot = await store(columns);
      expect((await ask(snapshot, query)).text === answerOf(dataset, query)).toBe(true);
      columns.close();
    }
  });

  it('reports damage at any place, like a scan on one thread', async () => {
    const columns = new BufferPool(1 << 28);
    const snapshot = await store(columns);
    const { footer } = await snapshot.segments[0]!.footer();
    const { offset, bytes } = footer.rowGroups[3]!.chunks[2]!;
    const path = join(folder, snapshot.segments[0]!.path);
    const whole = readFileSync(path);
    for (const at of [2, 30, 1000, bytes >> 1, bytes - 1]) {
      const damaged = Buffer.from(whole);
      damaged[offset + at]! ^= 0x10;
      writeFileSync(path, damaged);
      const wanted = { rowGroup: 3, column: 'message', path: snapshot.segments[0]!.path };
      for (const pool of [workers, inline]) {
        const failure: unknown = await ask(snapshot, absent, pool).catch((error: unknown) => error);
        expect(failure).toBeInstanceOf(DamageError);
        expect(failure).toMatchObject(wanted);
        columns.evict('');
      }
    }
    writeFileSync(path, whole.subarray(0, offset + 500));
    await expect(ask(snapshot, absent)).rejects.toMatchObject({ code: 'damaged' });
    columns.close();
  });
});

it('a text is rare while at most one column, plus one for every eight that were searched, may contain it', () => {
  expect(isRare({ searched: 0, mayMatch: 0 })).toBe(true);
  expect(isRare({ searched: 7, mayMatch: 2 })).toBe(false);
  expect(isRare({ searched: 8, mayMatch: 2 })).toBe(true);
  expect(isRare({ searched: 8, mayMatch: 3 })).toBe(false);
});
