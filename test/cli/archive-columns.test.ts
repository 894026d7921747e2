import {
  copyFileSync,
  mkdirSync,
  readFileSync,
  renameSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import type { ImportStatus } from '../../agents/archive/archive-import.js';
import { queryAllDuckDb } from '../oracle/duckdb.js';
import { run } from './here.js';
import { fetchAlone, freePort, recordsOf, start, workFolder, type Running } from './process.js';

const imported = "archive: { path: '../lake/**/*.parquet', mode: import }\n";
const inPlace = "archive: { path: '../lake/**/*.parquet' }\n";

/** Rows that other programs write: times in microseconds, nested values, decimals, and floats that are not finite. */
function rows(from: number, to: number, path: string, more = ''): string {
  const select = `SELECT TIMESTAMP '2026-01-01' + INTERVAL (i) MINUTE AS "@timestamp", i AS "UserID", 'm' || i AS message,
    CASE i % 3 WHEN 0 THEN 'NaN'::DOUBLE WHEN 1 THEN i / 7.0 END AS ratio, (i / 4)::DECIMAL(9, 2) AS price,
    [i, NULL] AS list, {'a': i % 2 = 0} AS nested, DATE '2026-01-01' + (i % 9)::INTEGER AS day_of, md5('' || i)::BLOB AS bytes${more}`;
  return `COPY (${select} FROM range(${from}, ${to}) t(i)) TO 'LAKE/${path}' (FORMAT parquet, ROW_GROUP_SIZE 2048)`;
}

async function lakeFolder(...statements: string[]): Promise<string> {
  const folder = workFolder();
  for (const key of ['day=1', 'day=2']) mkdirSync(join(folder, 'lake', key), { recursive: true });
  writeFileSync(join(folder, 'agents/web.yaml'), imported);
  await write(folder, ...statements);
  return folder;
}

async function write(folder: string, ...statements: string[]): Promise<void> {
  await queryAllDuckDb(statements.map((statement) => statement.replaceAll('LAKE', join(folder, 'lake'))));
}

/** Sets a modification time that is old enough. */
function makeOld(folder: string, ...paths: string[]): void {
  const atS = Date.now() / 1000 - 600;
  for (const path of paths) utimesSync(join(folder, 'lake', path), atS, atS);
}

async function answer(
  folder: string,
  agent: string,
  ...words: string[]
): Promise<ReturnType<typeof recordsOf>> {
  const { stdout, stderr } = await run(folder, ['query', agent, '--limit', '10000', ...words]);
  expect(stderr).toBe('');
  return recordsOf(stdout);
}

async function serve(folder: string): Promise<{ server: Running; url: string }> {
  const port = await freePort();
  const server = start(folder, ['serve', '--listen', `127.0.0.1:${port}`]);
  await server.shows('serving ');
  return { server, url: `http://127.0.0.1:${port}/api/query/web?limit=10000` };
}

async function stop(server: Running): Promise<string> {
  server.child.kill('SIGTERM');
  const { code, stderr } = await server.finished;
  expect(code).toBe(0);
  return stderr;
}

async function importing(folder: string): Promise<ImportStatus> {
  const { stdout } = await run(folder, ['stats', 'web', '--json']);
  return (JSON.parse(stdout) as { importing: ImportStatus }).importing;
}

async function answered(url: string, count: number): Promise<ReturnType<typeof recordsOf>> {
  for (;;) {
    const records = recordsOf(await (await fetchAlone(url)).text());
    if (records.length === count) return records;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

const without = (records: ReturnType<typeof recordsOf>): object[] =>
  records.map(({ _cursor, ...record }) => record);
const users = (records: ReturnType<typeof recordsOf>): number[] =>
  records.map(({ userid }) => Number(userid)).sort((a, b) => a - b);
const upTo = (count: number): number[] => Array.from({ length: count }, (_, i) => i);

describe('Parquet files that are imported', () => {
  it('are stored by a command, each once, with the same answers as files in place', async () => {
    const folder = await lakeFolder(rows(0, 3000, 'day=1/a.parquet'), rows(3000, 3100, 'day=2/b.parquet'));
    writeFileSync(join(folder, 'agents/lies.yaml'), inPlace);
    const checked = await run(folder, ['check', 'web']);
    expect(checked.stdout).toContain('stores the files ../lake/**/*.parquet once');
    expect(checked.stdout).toContain('2 files of parquet');
    const loaded = await run(folder, ['load', 'web']);
    expect(loaded.stdout).toContain('3,100 records of 2 files stored');
    await run(folder, ['index', 'lies']);
    for (const words of [[], ['ratio__gt=400', 'nested__like=true', 'day__eq=1']]) {
      const records = await answer(folder, 'web', ...words);
      expect(records.length).toBeGreaterThan(0);
      expect(without(records)).toEqual(without(await answer(folder, 'lies', ...words)));
      if (words.length === 0) expect(users(records)).toEqual(upTo(3100));
    }
    renameSync(join(folder, 'lake/day=1/a.parquet'), join(folder, 'lake/day=1/moved.parquet'));
    const again = await run(folder, ['load', 'web']);
    expect(again).toMatchObject({ code: 0 });
    expect(again.stdout).toContain('nothing to do: everything is already stored');
    const { stdout } = await run(folder, ['stats', 'web']);
    expect(stdout).toMatch(/^records +3,100 /m);
    // In the folder of another day it has other records, as in place.
    copyFileSync(join(folder, 'lake/day=1/moved.parquet'), join(folder, 'lake/day=2/copy.parquet'));
    expect((await run(folder, ['load', 'web'])).stdout).toContain('3,000 records of 1 file stored');
    expect(await answer(folder, 'web', 'day__eq=2', '--fields', 'timestamp')).toHaveLength(3100);
    expect(await run(folder, ['load', 'web', '-'])).toMatchObject({ code: 1 });
  });

  it('are stored while the server answers, with the columns of new files, and failures are reported', async () => {
    const folder = await lakeFolder(rows(0, 50, 'day=1/a.parquet'), rows(900, 950, 'day=1/torn.parquet'));
    truncateSync(join(folder, 'lake/day=1/torn.parquet'), 900);
    makeOld(folder, 'day=1/a.parquet', 'day=1/torn.parquet');
    const { server, url } = await serve(folder);
    await answered(url, 50);
    await server.shows('all archive files are stored');
    await write(
      folder,
      rows(50, 80, 'day=2/b.parquet', ", 'new' || i AS extra"),
      `COPY (SELECT 1 AS "@timestamp", 'x' AS "UserID") TO 'LAKE/day=2/clash.parquet' (FORMAT parquet)`,
    );
    makeOld(folder, 'day=2/b.parquet', 'day=2/clash.parquet');
    const records = await answered(url, 80);
    expect(users(records)).toEqual(upTo(80));
    const [newest] = records.filter(({ userid }) => userid === 79);
    expect(newest).toMatchObject({ extra: 'new79', day: 2 });
    while ((await importing(folder)).filesLeft > 0);
    expect(await importing(folder)).toMatchObject({ files: 4, records: 80, problems: 2, paused: null });
    const told = await stop(server);
    expect(told).toContain('day=1/torn.parquet');
    expect(told).toMatch(/clash\.parquet: the column \\"(@timestamp|UserID)\\" is/);
  });

  it('that were attached before are there once, and are not attached again', async () => {
    const folder = await lakeFolder(rows(0, 50, 'day=1/a.parquet'), rows(50, 80, 'day=2/b.parquet'));
    makeOld(folder, 'day=1/a.parquet', 'day=2/b.parquet');
    writeFileSync(join(folder, 'agents/web.yaml'), inPlace);
    await run(folder, ['index', 'web']);
    writeFileSync(join(folder, 'agents/web.yaml'), imported);
    const { server, url } = await serve(folder);
    await server.shows('all archive files are stored');
    expect(users(await answered(url, 80))).toEqual(upTo(80));
    await stop(server);
    const { stdout } = await run(folder, ['stats', 'web', '--json']);
    expect(JSON.parse(stdout)).toMatchObject({ records: 80, attached: { files: 0 } });
    writeFileSync(join(folder, 'agents/web.yaml'), inPlace);
    const indexed = await run(folder, ['index', 'web']);
    expect(indexed.code).toBe(1);
    expect(indexed.stderr).toContain('a.parquet are stored already');
    expect(users(await answer(folder, 'web'))).toEqual(upTo(80));
  });

  it('are there once after loads that were killed', async () => {
    const folder = await lakeFolder(
      rows(0, 20_000, 'day=1/a.parquet'),
      rows(20_000, 40_000, 'day=1/b.parquet'),
      rows(40_000, 60_000, 'day=2/c.parquet'),
    );
    const bytes = readFileSync(join(folder, 'lake/day=1/a.parquet'));
    const startedMs = performance.now();
    for (let kill = 0; kill < 3; kill++) {
      const running = start(folder, ['load', 'web']);
      const waitMs = kill === 0 ? 700 : (performance.now() - startedMs) / (kill + 1);
      await new Promise((resolve) => setTimeout(resolve, waitMs));
      running.child.kill('SIGKILL');
      await running.finished;
      const between = await run(folder, ['stats', 'web', '--json']);
      if (between.code === 0)
        expect((JSON.parse(between.stdout) as { records: number }).records % 20_000).toBe(0);
    }
    await run(folder, ['load', 'web']);
    const counted = await run(folder, ['count', 'web']);
    expect(counted.stdout).toBe('60000\n');
    expect((await run(folder, ['verify', 'web'])).stdout).toMatch(/^ok /);
    expect(readFileSync(join(folder, 'lake/day=1/a.parquet'))).toEqual(bytes);
  });
});
