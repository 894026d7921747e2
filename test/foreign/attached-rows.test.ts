import { createHash } from 'node:crypto';
import { getEventListeners } from 'node:events';
import { mkdtemp, readFile, rename, rm, stat, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { caseCount, fc } from '../cases.js';
import type { AgentStore } from '../../engine/archive/agent-store.js';
import type { Query, ScanStats, StringOp } from '../../engine/scan/query.js';
import { type FilePlan, changeLists } from '../../engine/store/attached/attached-list.js';
import { CommittedValues } from '../../engine/store/manifest/commit.js';
import { attachedPlacementsBytesMax } from '../../engine/core/limits.js';
import { makeSchema } from '../../engine/core/schema.js';
import { WorkerPool } from '../../engine/workers/worker-pool.js';
import { answer, openOn, textOf } from '../engine/store/memory-archive.js';
import { answerOf } from '../model/answer.js';
import { datasets, queries } from '../model/arbitraries.js';
import type { Dataset } from '../model/dataset.js';
import { queryDuckDb } from '../oracle/duckdb.js';
import { MemoryDirectory } from '../storage-doubles/memory-directory.js';
import { placed, type Row } from './placed-rows.js';
import { writeParquet } from './write-parquet.js';

const hourMs = 3_600_000;
const nowMs = Date.UTC(2025, 0, 3);
const everything: Query = { limit: 1_000_000, after: undefined, before: undefined, predicates: [] };

interface Story {
  readonly dataset: Dataset;
  readonly files: readonly {
    readonly rows: readonly Row[];
    readonly rowGroupRows: number;
    readonly isBrotli: boolean;
  }[];
}

const schema = makeSchema([
  { name: 'time', type: 'time', attached: { column: '@timestamp', unit: 'ms' } },
  { name: 'status', type: 'int' },
  { name: 'ratio', type: 'float' },
  { name: 'method', type: 'string' },
  { name: 'message', type: 'string', index: true },
  { name: 'cached', type: 'bool' },
]);

/** Files of rows in no order of time, some of whose times are missing, before the epoch or in the future. */
const stories: fc.Arbitrary<Story> = fc
  .record({
    parts: fc.array(
      fc.record({
        part: datasets(40),
        hours: fc.array(fc.integer({ min: -3, max: 60 }), { minLength: 1, maxLength: 10 }),
        rowGroupRows: fc.integer({ min: 1, max: 30 }),
        // Few, as each of their columns is read on the one guarded thread.
        isBrotli: fc.integer({ min: 0, max: 7 }).map((n) => n === 0),
      }),
      { minLength: 1, maxLength: 4 },
    ),
    far: fc.constantFrom(0n, -(10n ** 15n), 10n ** 15n),
  })
  .map(({ parts, far }) => {
    const files = parts.map(({ part, hours, rowGroupRows, isBrotli }) => ({
      rowGroupRows,
      isBrotli,
      rows: part.records.map(({ values: [time, ...others] }, i): Row => {
        const hour = hours[i % hours.length]!;
        const moved = hour < 0 ? far : BigInt(hour * hourMs);
        return [time === null ? null : (time as bigint) + moved, ...others];
      }),
    }));
    return {
      files,
      dataset: placed(
        schema,
        files.map(({ rows }) => rows),
        nowMs,
      ),
    };
  });

let folder: string;
let names = 0;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'logstrata-attached-'));
});
afterAll(async () => {
  await rm(folder, { recursive: true, force: true });
});

async function write(rows: readonly Row[], rowGroupRows: number, isBrotli = false): Promise<string> {
  const path = join(folder, `${names++}.parquet`);
  await writeParquet(path, schema, rows, { rowGroupRows, pageBytes: 100, isBrotli });
  return path;
}

async function attach(store: AgentStore, paths: readonly string[]): Promise<void> {
  const adds = paths.map((path) => ({ path, format: 'parquet' as const, constants: {} }));
  const { problems } = await store.attach({ adds, moves: [], removes: [] });
  expect(problems).toEqual([]);
}

describe('rows of attached files', () => {
  it('are answered like the model, whatever their order', async () => {
    const story = stories.chain((told) =>
      fc.record({
        told: fc.constant(told),
        asked: fc.array(queries(told.dataset), { minLength: 5, maxLength: 15 }),
        isReopened: fc.boolean(),
        atOnce: fc.boolean(),
        indexes: fc.constantFrom('none', 'some', 'all'),
      }),
    );
    await fc.assert(
      fc.asyncProperty(story, async ({ told: { files, dataset }, asked, isReopened, atOnce, indexes }) => {
        const directory = new MemoryDirectory();
        let archive = await openOn(directory, () => nowMs);
        let store = await archive.agent('web', schema);
        const paths: string[] = [];
        for (const { rows, rowGroupRows, isBrotli } of files)
          paths.push(await write(rows, rowGroupRows, isBrotli));
        if (atOnce) await attach(store, paths);
        else for (const path of paths) await attach(store, [path]);
        if (indexes !== 'none') {
          const { problems } = await store.indexAttached(indexes === 'some' ? { filesMax: 1 } : {});
          expect(problems).toEqual([]);
        }
        if (isReopened) {
          await archive.close();
          archive = await openOn(directory, () => nowMs);
          store = await archive.agent('web', schema);
        }
        expect(await answer(store, everything)).toBe(answerOf(dataset, everything));
        for (const query of asked) expect(await answer(store, query)).toBe(answerOf(dataset, query));
        await archive.close();
      }),
      { numRuns: caseCount(60) },
    );
  });

  it('keep their cursors while older files are attached', async () => {
    const day = Date.UTC(2025, 0, 1);
    const rowsOf = (hour: number): Row[] =>
      Array.from({ length: 50 }, (_, i) => [
        BigInt(day + hour * hourMs + i),
        BigInt(i),
        null,
        'GET',
        `${hour}/${i}`,
        null,
      ]);
    const archive = await openOn(new MemoryDirectory(), () => nowMs);
    const store = await archive.agent('web', schema);
    await attach(store, [await write(rowsOf(20), 16)]);
    const seen: string[] = [];
    let before: Query['before'];
    for (let page = 0; page < 15; page++) {
      const lines = (await answer(store, { ...everything, limit: 10, before })).trimEnd().split('\n');
      if (lines[0] === '') break;
      seen.unshift(...lines);
      const cursor = (JSON.parse(lines[0]!) as { _cursor: string })._cursor;
      before = { partition: parseInt(cursor.slice(0, 6), 16), ordinal: parseInt(cursor.slice(6), 16) };
      // The walk goes back in time, so it returns older rows, and not rows that are added to hours that it has passed.
      if (page === 1) await attach(store, [await write(rowsOf(10), 16), await write(rowsOf(21), 16)]);
    }
    const messages = seen.map((line) => (JSON.parse(line) as { message: string }).message);
    expect(messages).toEqual([...rowsOf(10), ...rowsOf(20)].map((row) => row[4]));
    await archive.close();
  });
});

describe('the index of an attached file', () => {
  const hour = Date.UTC(2025, 0, 1, 5);
  const rows: Row[] = Array.from({ length: 4000 }, (_, i) => [
    BigInt(hour + i),
    BigInt(i * 7919),
    null,
    createHash('md5').update(String(i)).digest('hex'),
    `request ${createHash('sha1').update(String(i)).digest('hex')} was served`,
    null,
  ]);
  const asked = (field: number, op: StringOp, value: string): Query => ({
    ...everything,
    predicates: [{ kind: 'string', field, op, value }],
  });

  it('rules out row groups by whole values, by parts of texts, and by bounds', async () => {
    const archive = await openOn(new MemoryDirectory(), () => nowMs);
    const store = await archive.agent('web', schema);
    await attach(store, [await write(rows, 500)]);
    const id = String(rows[1234]![3]);
    const before = await explained(store, asked(3, 'exact', id));
    expect(before.lines).toHaveLength(1);
    expect(before.stats.rowGroupsPrunedByValue).toBe(0);
    const { indexed } = await store.indexAttached();
    expect(indexed).toHaveLength(1);
    expect((await store.stats()).attached).toMatchObject({ files: 1, filesIndexed: 1, records: 4000 });
    const found = await explained(store, asked(3, 'exact', id));
    expect(found.lines).toEqual(before.lines);
    expect(found.stats.rowGroupsPrunedByValue).toBeGreaterThanOrEqual(6);
    const part = /[0-9a-f]{12}/.exec(String(rows[1234]![4]))![0];
    const searched = await explained(store, asked(4, 'like', part));
    expect(searched.lines).toEqual(before.lines);
    expect(searched.stats.rowGroupsPrunedByGram).toBeGreaterThanOrEqual(6);
    const anywhere = await explained(store, {
      ...everything,
      predicates: [{ kind: 'anywhere', op: 'like', value: part, isAbsent: false }],
    });
    expect(anywhere.lines).toEqual(before.lines);
    // The other string has no gram filter, so only its column is searched.
    expect(anywhere.stats).toMatchObject({ rowGroupsPrunedByGram: 0, rowGroupsScanned: 8 });
    expect(anywhere.stats.columnsPrunedByGram).toBeGreaterThanOrEqual(6);
    const bounded = await explained(store, {
      ...everything,
      predicates: [{ kind: 'int', field: 1, op: 'eq', value: 1234n * 7919n }],
    });
    expect(bounded.lines).toEqual(before.lines);
    expect(bounded.stats.rowGroupsScanned).toBe(1);
    await archive.close();
  });

  it('has filters of repeated values if the file has no dictionary of them', async () => {
    const workers = new WorkerPool(1);
    const archive = await openOn(new MemoryDirectory(), () => nowMs, workers);
    const store = await archive.agent('web', schema);
    const path = join(folder, `${names++}.parquet`);
    await queryDuckDb(
      `COPY (SELECT 1735689600000 + i AS "@timestamp", i AS status, 0.5 AS ratio,
       md5((i // 20480) || '-' || (i % 500)) AS method, 'text' AS message, true AS cached
       FROM range(81920) t(i)) TO '${path}' (FORMAT parquet, ROW_GROUP_SIZE 20480, DICTIONARY_SIZE_LIMIT 1)`,
    );
    await attach(store, [path]);
    await store.indexAttached();
    const value = createHash('md5').update('2-77').digest('hex');
    const found = await explained(store, asked(3, 'exact', value));
    expect(found.lines.length).toBe(41);
    expect(found.stats.rowGroupsPrunedByValue).toBe(3);
    await archive.close();
    await workers.close();
  });

  it('is built once, and again if a field is read as another type', async () => {
    const archive = await openOn(new MemoryDirectory(), () => nowMs);
    const store = await archive.agent('web', schema);
    await attach(store, [await write(rows, 500)]);
    const first = await store.indexAttached();
    expect(first).toMatchObject({ left: 0, problems: [] });
    expect((await store.indexAttached()).indexed).toEqual([]);
    const fields = schema.fields.map((field) =>
      field.name === 'status' ? ({ ...field, type: 'string' } as const) : field,
    );
    const changed = await archive.redefine('web', makeSchema(fields), undefined);
    expect((await changed.indexAttached()).indexed).toHaveLength(1);
    const found = await explained(changed, asked(1, 'exact', String(77 * 7919)));
    expect(found.lines).toHaveLength(1);
    const { rowGroupsPrunedByValue: byValue, rowGroupsPrunedByZone: byZone } = found.stats;
    expect(byValue).toBeGreaterThan(0);
    expect(byValue + byZone).toBeGreaterThanOrEqual(6);
    await archive.close();
  });

  it('reports bytes that have changed since, although size and time of the file are the same', async () => {
    const archive = await openOn(new MemoryDirectory(), () => nowMs);
    const store = await archive.agent('web', schema);
    const path = await write(rows, 4000);
    await attach(store, [path]);
    await store.indexAttached();
    const { mtimeMs } = (await store.attachedFiles())[0]!;
    const bytes = await readFile(path);
    // The first and last values of a column identify the file.
    const at = bytes.indexOf(String(rows[2000]![3]));
    expect(at).toBeGreaterThan(0);
    bytes[at]! ^= 1;
    await writeFile(path, bytes);
    // Half a millisecond more, because seconds as a float may be rounded to the millisecond before.
    const time = (mtimeMs + 0.5) / 1000;
    await utimes(path, time, time);
    await expect(answer(store, everything)).rejects.toThrow('has changed since it was indexed');
    await archive.close();
  });
});

describe('rows that are scattered over very many hours', () => {
  it('are refused file by file if there is no room for their runs', async () => {
    const directory = new MemoryDirectory();
    const values = new CommittedValues(undefined);
    const plan = (path: string, placementsBytes: number): FilePlan => ({
      path,
      format: 'parquet',
      constants: {},
      bytes: 1,
      mtimeMs: 1,
      footerHash: path,
      rowGroupRows: [1],
      nowMs,
      placedBy: null,
      hours: [[100, 1]],
      placements: 'A'.repeat(placementsBytes),
      timeMinMs: null,
      timeMaxMs: null,
    });
    const adds = [plan('/a', 100), plan('/b', attachedPlacementsBytesMax), plan('/c', 100)];
    const changes = { adds, moves: [], removes: [] };
    const { added, refused } = await changeLists(directory, 'web', { lists: [], number: 1 }, changes, values);
    expect(added.map(({ path }) => path)).toEqual(['/a', '/c']);
    expect(refused).toEqual(['/b']);
    expect(values.nextOrdinal(100)).toBe(3);
  });
});

describe('records about attached files', () => {
  const rowsAt = (timeMs: number): Row[] =>
    Array.from({ length: 10 }, (_, i) => [BigInt(timeMs + i), BigInt(i), null, 'GET', String(timeMs), null]);
  const monthAgo = nowMs - 30 * 24 * hourMs;
  const yesterday = nowMs - 24 * hourMs;

  it('hide rows that retention has removed, and leave the files unchanged', async () => {
    const archive = await openOn(new MemoryDirectory(), () => nowMs);
    const policy = { periodMs: 10 * 24 * hourMs, bytesMax: null, intervalMs: hourMs, graceMs: 0 };
    const store = await archive.agent('web', schema);
    const old = await write(rowsAt(monthAgo), 10);
    await attach(store, [old, await write(rowsAt(yesterday), 10)]);
    expect((await answer(store, everything)).split('\n')).toHaveLength(21);
    const kept = await archive.redefine('web', schema, policy);
    await archive.applyRetention('web', policy);
    const lines = (await answer(kept, everything)).trimEnd().split('\n');
    expect(lines.map((line) => (JSON.parse(line) as { message: string }).message)).toEqual(
      rowsAt(yesterday).map((row) => row[4]),
    );
    expect((await stat(old)).size).toBeGreaterThan(0);
    await archive.close();
  });

  it('are verified, and files in a damaged list are attached again at new positions', async () => {
    const directory = new MemoryDirectory();
    const archive = await openOn(directory, () => nowMs);
    const store = await archive.agent('web', schema);
    const path = await write(rowsAt(yesterday), 10);
    await attach(store, [path]);
    expect(await store.verify()).toMatchObject({ damages: [], records: 10 });
    await archive.close();
    const [name] = await directory.list('web/attached');
    const file = await directory.openWrite(`web/attached/${name!}`);
    await file.write(200, new Uint8Array([0]));
    await file.close();
    const damaged = await openOn(directory, () => nowMs);
    const { damages } = await damaged.verify('web');
    expect(damages.map(({ reason }) => reason).join()).toContain(`web/attached/${name!} is damaged`);
    await damaged.close();
    const alone = await openOn(directory, () => nowMs);
    const report = await alone.repair('web', { adopt: () => Promise.resolve(true) });
    expect(report.lost).toMatchObject([{ file: `attached/${name!}`, records: 10 }]);
    const mended = await alone.agent('web', schema);
    expect(await answer(mended, everything)).toBe('');
    await attach(mended, [path]);
    const cursors = (await answer(mended, everything)).trimEnd().split('\n');
    expect(cursors).toHaveLength(10);
    const first = (JSON.parse(cursors[0]!) as { _cursor: string })._cursor;
    expect(parseInt(first.slice(6), 16)).toBeGreaterThan(10);
    await alone.close();
  });
});

describe('a text search in files without an index', () => {
  it('runs on threads, and keeps no column in memory that cannot contain the text', async () => {
    const workers = new WorkerPool(2);
    const archive = await openOn(new MemoryDirectory(), () => nowMs, workers);
    const plain = makeSchema(schema.fields.map((field) => ({ ...field, index: false })));
    const store = await archive.agent('web', plain);
    const path = join(folder, `${names++}.parquet`);
    // Two row groups of two spans each.
    await queryDuckDb(
      `COPY (SELECT 1735689600000 + i AS "@timestamp", i AS status, 0.5 AS ratio, 'GET' AS method,
       'line ' || i || ' of a log with words enough: ' || md5(i::VARCHAR) AS message, true AS cached
       FROM range(245760) t(i)) TO '${path}' (FORMAT parquet, COMPRESSION zstd, ROW_GROUP_SIZE 122880)`,
    );
    await attach(store, [path]);
    const query: Query = {
      ...everything,
      predicates: [{ kind: 'string', field: 4, op: 'like', value: 'LINE 200123 of' }],
    };
    const first = await explained(store, query);
    expect(first.lines.map((line) => (JSON.parse(line) as { status: number }).status)).toEqual([200_123]);
    const second = await explained(store, query);
    expect(second.lines).toEqual(first.lines);
    // Columns that cannot contain the text are decoded only now, when the query needs them again.
    expect(second.stats.columnsDecoded).toBeGreaterThan(0);
    const third = await explained(store, query);
    expect(third.lines).toEqual(first.lines);
    expect(third.stats.columnsDecoded).toBe(0);
    await archive.close();
    await workers.close();
  });
});

async function explained(store: AgentStore, query: Query): Promise<{ lines: string[]; stats: ScanStats }> {
  const { lines, stats } = await store.scan(query);
  const text = await textOf(lines);
  return { lines: text.split('\n').filter((line) => line !== ''), stats };
}

describe('an attached file', () => {
  const rows: Row[] = Array.from({ length: 20 }, (_, i) => [
    BigInt(Date.UTC(2025, 0, 1, 5) + i),
    BigInt(i),
    null,
    'GET',
    'a message',
    null,
  ]);

  async function attached(): Promise<{ store: AgentStore; path: string; close: () => Promise<void> }> {
    const archive = await openOn(new MemoryDirectory(), () => nowMs);
    const store = await archive.agent('web', schema);
    const path = await write(rows, 7);
    await attach(store, [path]);
    return { store, path, close: () => archive.close() };
  }

  it('is recognised after a changed modification time, and in another place once that is stated', async () => {
    const { store, path, close } = await attached();
    const lines = await answer(store, everything);
    await utimes(path, 1_700_000_000, 1_700_000_000);
    const { id } = (await store.attachedFiles())[0]!;
    const elsewhere = `${path}.moved.parquet`;
    await rename(path, elsewhere);
    const move = { id, path: elsewhere, bytes: (await store.attachedFiles())[0]!.bytes, mtimeMs: 0 };
    await store.attach({ adds: [], moves: [move], removes: [] });
    expect(await answer(store, everything)).toBe(lines);
    expect((await store.attachedFiles()).map(({ path: now }) => now)).toEqual([elsewhere]);
    await close();
  });

  it.each([
    [
      'changed',
      (path: string) => write(rows.slice(1), 7).then((other) => rename(other, path)),
      'has changed since',
    ],
    ['gone', (path: string) => rm(path), 'is attached but does not exist any more'],
    ['another file', (path: string) => writeFile(path, 'x'.repeat(500)), 'has changed since'],
  ])('that is %s fails the queries that need it, and no other', async (_, change, says) => {
    const { store, path, close } = await attached();
    const later = await write(
      rows.map(([time, ...others]) => [(time as bigint) + BigInt(hourMs), ...others]),
      7,
    );
    await attach(store, [later]);
    await change(path);
    const newest = await answer(store, { ...everything, limit: 20 });
    expect(newest.split('\n')).toHaveLength(21);
    await expect(answer(store, everything)).rejects.toThrow(path);
    await expect(answer(store, everything)).rejects.toThrow(says);
    await close();
  });

  it('is attached once, and its positions are not given again after it was removed', async () => {
    const { store, path, close } = await attached();
    await attach(store, [path]);
    const [file, ...others] = await store.attachedFiles();
    expect(others).toEqual([]);
    await store.attach({ adds: [], moves: [], removes: [file!.id] });
    expect(await answer(store, everything)).toBe('');
    await attach(store, [path]);
    const first = JSON.parse((await answer(store, everything)).split('\n')[0]!) as { _cursor: string };
    expect(parseInt(first._cursor.slice(6), 16)).toBe(rows.length + 1);
    await close();
  });

  it('is refused by name without the time column, or with a time column of another type', async () => {
    const archive = await openOn(new MemoryDirectory(), () => nowMs);
    const path = join(folder, `${names++}.parquet`);
    const again = { name: 'again', type: 'int', attached: { column: 'status' } } as const;
    const shape = { rowGroupRows: 7, pageBytes: 100 };
    await writeParquet(path, makeSchema([...schema.fields, again]), [[...rows[0]!, 1n]], shape);
    const adds = [{ path, format: 'parquet' as const, constants: {} }];
    const cases = [
      [{ name: 'time', type: 'time' }, `${path} has no column "time"`],
      [{ name: 'time', type: 'time', attached: { column: '@timestamp' } }, 'give the unit of its numbers'],
      [{ name: 'time', type: 'time', attached: { column: 'message' } }, 'only times and numbers'],
    ] as const;
    for (const [index, [field, says]] of cases.entries()) {
      const store = await archive.agent(`web${index}`, makeSchema([field]));
      const { attached: none, problems } = await store.attach({ adds, moves: [], removes: [] });
      expect(none).toEqual([]);
      expect(problems.map(({ error }) => error.message).join()).toContain(says);
    }
    await archive.close();
  });
});

it('attaching and indexing remove their listeners from a long-lived signal', async () => {
  const archive = await openOn(new MemoryDirectory());
  const store = await archive.agent('nginx', schema);
  const { signal } = new AbortController();
  const path = await write([[BigInt(nowMs), 1n, 1, 'GET', 'message', 1n]], 10);
  await store.attach(
    { adds: [{ path, format: 'parquet', constants: {} }], moves: [], removes: [] },
    { signal },
  );
  await store.indexAttached({ signal });
  expect(getEventListeners(signal, 'abort')).toEqual([]);
  await archive.close();
});
