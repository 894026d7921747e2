import * as arrow from 'apache-arrow';
import { createHash } from 'node:crypto';
import { copyFile, readFile, rename, truncate, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { caseCount, fc } from '../../cases.js';
import { parseAgentFile } from '../../../agents/definition/agent-file.js';
import type { AgentDefinition } from '../../../agents/definition/definition.js';
import { loadFiles, type LoadFilesOptions } from '../../../agents/load/load.js';
import type { LoadSummary } from '../../../agents/load/load-report.js';
import type { AgentStore } from '../../../engine/archive/agent-store.js';
import type { Query } from '../../../engine/scan/query.js';
import { isLogstrataError } from '../../../engine/core/errors.js';
import { answer, openOn } from '../../engine/store/memory-archive.js';
import { messagesOf, streamOf } from '../../foreign/arrow-bytes.js';
import { tableOf } from '../../foreign/arrow-tables.js';
import { placed, type Row } from '../../foreign/placed-rows.js';
import { writeParquet } from '../../foreign/write-parquet.js';
import { answerOf } from '../../model/answer.js';
import { datasets, queries } from '../../model/arbitraries.js';
import { MemoryDirectory } from '../../storage-doubles/memory-directory.js';
import { temporaryFolder } from './temporary.js';

const hourMs = 3_600_000;
const nowMs = Date.UTC(2025, 0, 3);
const everything: Query = { limit: 1_000_000, after: undefined, before: undefined, predicates: [] };

/** An agent whose archive is a folder of columnar files that are imported. */
function definitionIn(folder: string): AgentDefinition {
  const text = `archive: { path: '${folder}/**/*.{parquet,arrows}', format: parquet, mode: import }
fields:
  - { name: time, source: '@timestamp', unit: ms }
  - { name: status, type: int }
  - { name: ratio, type: float }
  - { name: method }
  - { name: message, index: true }
  - { name: cached, type: bool }
`;
  return parseAgentFile(text, join(folder, 'web.yaml'));
}

const { schema } = definitionIn('/nowhere');

async function withStore<T>(directory: MemoryDirectory, use: (store: AgentStore) => Promise<T>): Promise<T> {
  const archive = await openOn(directory, () => nowMs);
  try {
    return await use(await archive.agent('web', schema));
  } finally {
    await archive.close();
  }
}

function load(
  store: AgentStore,
  folder: string,
  files: readonly string[],
  options: Partial<LoadFilesOptions> = {},
): Promise<LoadSummary> {
  const definition = definitionIn(folder);
  return loadFiles({ store, definition, timezone: 'UTC', now: () => nowMs, files, ...options });
}

/** Rows an hour apart, so that each belongs to another hour. */
const rowsOf = (from: number, to: number): Row[] =>
  Array.from({ length: to - from }, (_, i) => [
    BigInt(Date.UTC(2025, 0, 1) + (from + i) * 60_000),
    BigInt(from + i),
    null,
    'GET',
    `row ${from + i}`,
    null,
  ]);

async function written(folder: string, name: string, rows: readonly Row[]): Promise<string> {
  const path = join(folder, name);
  await writeParquet(path, schema, rows, { rowGroupRows: 16, pageBytes: 100 });
  return path;
}

/** The rows in the order in which loads place them: those of each file by time. */
function sorted(rows: readonly Row[]): Row[] {
  let previous = nowMs;
  const timed = rows.map((row) => {
    if (row[0] !== null) previous = Math.min(nowMs, Math.max(1, Number(row[0])));
    return { row, timeMs: previous };
  });
  return timed.sort((a, b) => a.timeMs - b.timeMs).map(({ row }) => row);
}

const linesIn = (text: string): number => text.split('\n').length - 1;

describe('columnar files that are imported', () => {
  it('are answered like the model', async () => {
    const files = fc.array(
      fc.record({
        part: datasets(40),
        hours: fc.array(fc.integer({ min: 0, max: 40 }), { minLength: 1, maxLength: 10 }),
        rowGroupRows: fc.integer({ min: 1, max: 30 }),
      }),
      { minLength: 1, maxLength: 4 },
    );
    const story = files
      .map((parts) =>
        parts.map(({ part, hours, rowGroupRows }) => ({
          rowGroupRows,
          // Every row has a time: `placed` shows from which row a time is taken for files in their own order.
          rows: part.records.map(({ values: [time, ...others] }, i): Row => {
            const within = time === null ? BigInt(nowMs - 5 * 24 * hourMs) : (time as bigint);
            return [within + BigInt(hours[i % hours.length]! * hourMs), ...others];
          }),
        })),
      )
      .chain((told) => {
        const dataset = placed(
          schema,
          told.map(({ rows }) => sorted(rows)),
          nowMs,
        );
        const asked = fc.array(queries(dataset), { minLength: 5, maxLength: 10 });
        return fc.record({
          told: fc.constant(told),
          dataset: fc.constant(dataset),
          asked,
          merge: fc.boolean(),
        });
      });
    await fc.assert(
      fc.asyncProperty(story, async ({ told, dataset, asked, merge }) => {
        const folder = await temporaryFolder();
        const paths: string[] = [];
        for (const [i, { rows, rowGroupRows }] of told.entries()) {
          const path = join(folder, `${i}.parquet`);
          await writeParquet(path, schema, rows, { rowGroupRows, pageBytes: 100 });
          paths.push(path);
        }
        await withStore(new MemoryDirectory(), async (store) => {
          const { failed, stopped } = await load(store, folder, paths, {
            merge: merge && paths.length === 1,
          });
          expect([failed, stopped]).toEqual([0, null]);
          expect(await answer(store, everything)).toBe(answerOf(dataset, everything));
          for (const query of asked) expect(await answer(store, query)).toBe(answerOf(dataset, query));
        });
      }),
      { numRuns: caseCount(40) },
    );
  });

  it('are recognised by their whole content under any name', async () => {
    const folder = await temporaryFolder();
    const ids = rowsOf(0, 40).map((row, i) => row.with(4, createHash('sha1').update(`${i}`).digest('hex')));
    const first = await written(folder, 'a.parquet', ids);
    // The same columns, sizes and footer except for one value.
    const twin = join(folder, 'twin.parquet');
    const bytes = await readFile(first);
    const middle = ids
      .map((row) => String(row[4]))
      .toSorted()[20]!
      .slice(4, 12);
    expect(bytes.indexOf(middle)).toBeGreaterThan(0);
    bytes.write('--------', bytes.indexOf(middle));
    await writeFile(twin, bytes);
    await withStore(new MemoryDirectory(), async (store) => {
      expect(await load(store, folder, [first])).toMatchObject({ loaded: 1, records: 40 });
      await copyFile(first, join(folder, 'copy.parquet'));
      expect(await load(store, folder, [first, join(folder, 'copy.parquet')])).toMatchObject({
        loaded: 0,
        known: 2,
      });
      expect(await load(store, folder, [twin])).toMatchObject({ loaded: 1, records: 40 });
      expect(linesIn(await answer(store, everything))).toBe(80);
      expect(await load(store, folder, [first], { again: true })).toMatchObject({ loaded: 1, records: 40 });
    });
  });

  it('that are damaged, torn, compressed or of other columns fail on their own, and the others are stored', async () => {
    const folder = await temporaryFolder();
    const good = await written(folder, 'good.parquet', rowsOf(0, 40));
    const torn = await written(folder, 'torn.parquet', rowsOf(100, 140));
    await truncate(torn, 500);
    const flipped = await written(folder, 'flipped.parquet', rowsOf(200, 240));
    const bytes = await readFile(flipped);
    bytes.fill(0xff, 4, 60);
    await writeFile(flipped, bytes);
    const other = join(folder, 'other.parquet');
    await writeParquet(other, { fields: [{ name: 'status', type: 'int' }] }, [[1n]], {
      rowGroupRows: 1,
      pageBytes: 100,
    });
    const text = join(folder, 'text.parquet');
    await writeFile(text, 'no file of Parquet at all\n');
    await withStore(new MemoryDirectory(), async (store) => {
      const { files, loaded, failed, stopped } = await load(store, folder, [
        torn,
        flipped,
        other,
        text,
        good,
      ]);
      expect([loaded, failed, stopped]).toEqual([1, 4, null]);
      const messages = files.map(({ path, error }) => [path, error?.message ?? '']);
      for (const [path, message] of messages.slice(0, 4)) expect(message).toContain(path);
      expect(messages[2]![1]).toContain('has no column "@timestamp"');
      expect(linesIn(await answer(store, everything))).toBe(40);
    });
  });

  it('report values that do not fit their fields', async () => {
    const folder = await temporaryFolder();
    const path = join(folder, 'a.parquet');
    const fields = [
      { name: '@timestamp', type: 'time' },
      { name: 'ratio', type: 'int' },
      { name: 'status', type: 'string' },
    ] as const;
    const rows = [
      [BigInt(nowMs - 5), 2n ** 60n + 1n, 'OK'],
      [BigInt(nowMs - 4), 7n, null],
    ];
    await writeParquet(path, { fields }, rows, { rowGroupRows: 16, pageBytes: 100 });
    await withStore(new MemoryDirectory(), async (store) => {
      const { unreadableValues, unreadable } = await load(store, folder, [path]);
      expect(unreadableValues).toBe(2);
      expect(unreadable).toEqual([
        { field: 1, values: 1, example: 'OK' },
        { field: 2, values: 1, example: String(2n ** 60n + 1n) },
      ]);
      const records = (await answer(store, everything)).trimEnd().split('\n');
      expect(records.map((line) => (JSON.parse(line) as { ratio: number | null }).ratio)).toEqual([null, 7]);
    });
  });

  it('are restored at their positions when they are lost and loaded again', async () => {
    const folder = await temporaryFolder();
    const path = await written(folder, 'a.parquet', rowsOf(0, 2000));
    const directory = new MemoryDirectory();
    await withStore(directory, (store) => load(store, folder, [path]));
    const before = await withStore(directory, (store) => answer(store, everything));
    for (const day of (await directory.list('web')).filter((name) => name.startsWith('dt=')).slice(0, 1))
      for (const file of await directory.list(`web/${day}`)) await directory.remove(`web/${day}/${file}`);
    const archive = await openOn(directory, () => nowMs);
    const { changed } = await archive.repair('web', { adopt: () => Promise.resolve(true) });
    await archive.close();
    expect(changed).toBe(true);
    expect(linesIn(await withStore(directory, (store) => answer(store, everything)))).toBeLessThan(2000);
    const moved = join(folder, 'moved.parquet');
    await rename(path, moved);
    const summary = await withStore(directory, (store) => load(store, folder, [moved]));
    expect(summary.files).toMatchObject([{ outcome: 'restored', records: 0 }]);
    expect(await withStore(directory, (store) => answer(store, everything))).toBe(before);
  });

  it('that were attached before are there once, whenever the machine crashes', async () => {
    const folder = await temporaryFolder();
    const path = await written(folder, 'a.parquet', rowsOf(0, 100));
    const add = { path, format: 'parquet', constants: {} } as const;
    const live = async (directory: MemoryDirectory): Promise<void> => {
      await withStore(directory, async (store) => {
        await store.attach({ adds: [add], moves: [], removes: [] });
        const { stopped } = await load(store, folder, [path]);
        if (stopped !== null) throw stopped;
      });
    };
    const whole = new MemoryDirectory();
    await live(whole);
    let stored = 0;
    for (let step = 1; step <= whole.mutations; step += 2) {
      const directory = new MemoryDirectory({ crashAtOperation: step, seed: step });
      await live(directory).catch((error: unknown) => {
        if (!isLogstrataError(error)) throw error;
      });
      const left = directory.crash(step % 3 === 0 ? 'lost' : { seed: step });
      await withStore(left, async (store) => {
        const { attached, records } = await store.stats();
        expect([0, 100]).toContain(linesIn(await answer(store, everything)));
        expect([0, 100]).toContain(records);
        if (records > 0 && attached.files === 0) stored++;
        await load(store, folder, [path]);
        expect(linesIn(await answer(store, everything))).toBe(100);
        expect((await store.stats()).attached.files).toBe(0);
      });
      const { damages, unnamedFiles } = await withStore(left, (store) => store.verify());
      expect([damages, unnamedFiles]).toEqual([[], []]);
    }
    expect(stored).toBeGreaterThan(0);
  });

  it('in Arrow format are not stored twice after they have grown', async () => {
    const folder = await temporaryFolder();
    const path = join(folder, 'a.arrows');
    const rows = rowsOf(0, 40);
    const columns = {
      '@timestamp': { type: new arrow.Int64(), values: rows.map((row) => row[0]!) },
      message: { type: new arrow.Utf8(), values: rows.map((row) => row[4]!) },
    };
    const messages = messagesOf(arrow.tableToIPC(tableOf(columns, 20), 'stream'));
    await writeFile(path, streamOf(messages.slice(0, 2)).subarray(0, -8));
    await withStore(new MemoryDirectory(), async (store) => {
      expect(await load(store, folder, [path])).toMatchObject({ loaded: 1, records: 20 });
      await writeFile(path, streamOf(messages));
      const { files, failed } = await load(store, folder, [path]);
      expect(failed).toBe(1);
      expect(files[0]!.error?.message).toContain('has grown, and 20 records of it are stored');
      const [stored] = await store.loads();
      await store.remove({ kind: 'load', id: stored!.id });
      expect(await load(store, folder, [path])).toMatchObject({ loaded: 1, records: 40 });
      expect(linesIn(await answer(store, everything))).toBe(40);
    });
  });
});
