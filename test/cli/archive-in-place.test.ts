import {
  copyFileSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { createHash } from 'node:crypto';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import type { AttachStatus } from '../../agents/archive/archive-attaching.js';
import { queryAllDuckDb } from '../oracle/duckdb.js';
import { run } from './here.js';
import { fetchAlone, freePort, recordsOf, start, workFolder } from './process.js';

const inferred = "archive: { path: '../lake/**/*.parquet' }\n";

/** Rows from `from` up to but not including `to`, one per minute, as a Parquet file. */
function rows(from: number, to: number, path: string, more = ''): string {
  const select = `SELECT TIMESTAMP '2026-01-01' + INTERVAL (i) MINUTE AS "@timestamp", i AS "UserID", 'm' || i AS message${more}`;
  return `COPY (${select} FROM range(${from}, ${to}) t(i)) TO 'LAKE/${path}' (FORMAT parquet)`;
}

async function write(folder: string, ...statements: string[]): Promise<void> {
  await queryAllDuckDb(statements.map((statement) => statement.replaceAll('LAKE', join(folder, 'lake'))));
}

/** A folder with an agent `web` and its archive. */
async function lakeFolder(agentFile: string, ...statements: string[]): Promise<string> {
  const folder = workFolder();
  for (const key of ['day=1', 'day=2']) mkdirSync(join(folder, 'lake', key), { recursive: true });
  writeFileSync(join(folder, 'agents/web.yaml'), agentFile);
  await write(folder, ...statements);
  return folder;
}

/** The content of a folder, byte for byte. */
function contentOf(folder: string): string[] {
  return readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((path) => statSync(join(folder, path)).isFile())
    .map(
      (path) =>
        `${path} ${createHash('sha256')
          .update(readFileSync(join(folder, path)))
          .digest('hex')}`,
    )
    .sort();
}

async function answer(folder: string, ...words: string[]): Promise<ReturnType<typeof recordsOf>> {
  const { stdout, stderr } = await run(folder, ['query', 'web', '--limit', '1000', ...words]);
  expect(stderr).toBe('');
  return recordsOf(stdout);
}

interface Report {
  attached: number;
  rows: number;
  moved: number;
  removed: number;
  waiting: number;
  indexed: number;
  problems: { path: string; message: string }[];
}

async function index(folder: string): Promise<{ code: number | null; report: Report }> {
  const { code, stdout } = await run(folder, ['index', 'web', '--json']);
  return { code, report: JSON.parse(stdout) as Report };
}

function makeOld(path: string): void {
  const atS = Date.now() / 1000 - 600;
  utimesSync(path, atS, atS);
}

const users = (records: ReturnType<typeof recordsOf>): number[] =>
  records.map(({ userid }) => Number(userid));
const upTo = (count: number): number[] => Array.from({ length: count }, (_, i) => i);

describe('Parquet files', () => {
  it('are attached and indexed by a command once, and are only read', async () => {
    const folder = await lakeFolder(
      inferred,
      rows(0, 50, 'day=1/a.parquet'),
      rows(50, 80, 'day=2/b.parquet'),
    );
    const before = contentOf(join(folder, 'lake'));
    const shown = await run(folder, ['index', 'web']);
    expect(shown.code).toBe(0);
    expect(shown.stdout).toContain('attached 2 files, 80 rows\n');
    expect(shown.stdout).toMatch(/indexed {2}2 files, [\d.]+ kB; the index has/);
    const records = await answer(folder);
    expect(users(records)).toEqual(upTo(80));
    expect(records[79]).toMatchObject({ timestamp: Date.UTC(2026, 0, 1, 1, 19), message: 'm79', day: 2 });
    expect(users(await answer(folder, 'message__exact=m7'))).toEqual([7]);
    expect(users(await answer(folder, 'day__eq=2', 'userid__lt=52'))).toEqual([50, 51]);
    expect(await index(folder)).toMatchObject({ code: 0, report: { attached: 0, indexed: 0, problems: [] } });
    expect(contentOf(join(folder, 'lake'))).toEqual(before);
    const { stdout } = await run(folder, ['stats', 'web']);
    expect(stdout).toMatch(/^files in place +2 files, [\d.]+ kB, 80 records$/m);
    expect(stdout).toMatch(/^ {2}in order of time +2 of 2 files; 3 runs of rows$/m);
    const loaded = await run(folder, ['load', 'web']);
    expect(loaded).toMatchObject({ code: 1, stdout: '' });
    expect(loaded.stderr).toContain('agent "web" stores no files');
  });

  it('get a new index for a damaged one with the command that verify names', async () => {
    const folder = await lakeFolder(inferred, rows(0, 50, 'a.parquet'));
    await index(folder);
    const attached = join(folder, 'data/store/web/attached');
    const name = readdirSync(attached).find((file) => file.endsWith('.index'))!;
    truncateSync(join(attached, name), statSync(join(attached, name)).size - 1);
    const damaged = await run(folder, ['verify', 'web']);
    expect(damaged.code).toBe(1);
    expect(damaged.stdout + damaged.stderr).toContain('`logstrata index web --again` rebuilds it');
    expect(users(await answer(folder))).toEqual(upTo(50));
    expect(await index(folder)).toMatchObject({ report: { indexed: 0 } });
    expect((await run(folder, ['index', 'web', '--again'])).stdout).toContain('indexed  1 file,');
    expect((await run(folder, ['verify', 'web'])).code).toBe(0);
  });

  it('with rows in no order of time are answered in order of time, and counted', async () => {
    const shuffled = rows(0, 600, 'day=2/b.parquet').replace('t(i)', 't(i) ORDER BY hash(i)');
    const folder = await lakeFolder(inferred, rows(600, 660, 'day=1/a.parquet'), shuffled);
    const { stdout } = await run(folder, ['index', 'web']);
    const order = '1 of 2 files, 1 of 2 row groups sorted as they are read; 11 runs of rows';
    expect(stdout).toContain(`in order of time: ${order}\n`);
    const { attached } = JSON.parse((await run(folder, ['stats', 'web', '--json'])).stdout) as {
      attached: { order: object };
    };
    expect(attached.order).toEqual({ filesUnordered: 1, rowGroups: 2, rowGroupsUnordered: 1, runs: 11 });
    const hourOf = (userid: number): number => Math.floor(userid / 60);
    const hours = users(await answer(folder)).map(hourOf);
    expect(hours).toEqual(upTo(660).map(hourOf));
  });

  it('get more fields, and keep their cursors, when other files are added', async () => {
    const folder = await lakeFolder(inferred, rows(10, 20, 'day=1/a.parquet'));
    await index(folder);
    const before = await answer(folder);
    await write(
      folder,
      rows(0, 10, 'day=1/b.parquet', `, i * 0.5::DOUBLE AS score`),
      rows(20, 25, 'day=2/c.parquet').replace('i AS "UserID"', `'u' || i AS "UserID"`),
    );
    const { code, report } = await index(folder);
    expect(code).toBe(1);
    expect(report).toMatchObject({ attached: 1, rows: 10 });
    expect(report.problems).toEqual([
      {
        path: join(folder, 'lake/day=2/c.parquet'),
        message: expect.stringMatching(
          /the column "UserID" is string \(BYTE_ARRAY STRING\) here, which the field "userid" of type int can't hold without loss/,
        ) as string,
      },
    ]);
    const after = await answer(folder);
    expect(users(after).sort((a, b) => a - b)).toEqual(upTo(20));
    expect(Object.keys(after[0]!)).toEqual(['_cursor', 'timestamp', 'userid', 'message', 'day', 'score']);
    expect(users(await answer(folder, 'score__eq=2.5'))).toEqual([5]);
    const cursors = new Map(after.map(({ userid, _cursor }) => [userid, _cursor]));
    for (const { userid, _cursor } of before) expect(cursors.get(userid!)).toBe(_cursor);
  });

  it('keep every digit of unsigned integers, and become strings if a file has one above 2^63 - 1', async () => {
    const unsigned = (value: string): string => `, (${value})::UBIGINT AS hash`;
    const folder = await lakeFolder(inferred, rows(0, 2, 'a.parquet', unsigned('i')));
    await index(folder);
    expect((await answer(folder, 'hash__lt=1')).map(({ hash }) => hash)).toEqual([0]);
    await write(
      folder,
      rows(2, 4, 'b.parquet', unsigned('18446744073709551613 + i - 1')),
      rows(4, 6, 'c.parquet', unsigned('i')),
    );
    expect((await index(folder)).report).toMatchObject({ attached: 2, problems: [] });
    const hashes = (await answer(folder))
      .map(({ userid, hash }) => `${String(userid)}: ${String(hash)}`)
      .sort();
    expect(hashes).toEqual([
      '0: 0',
      '1: 1',
      '2: 18446744073709551614',
      '3: 18446744073709551615',
      '4: 4',
      '5: 5',
    ]);
    expect(users(await answer(folder, 'hash__exact=18446744073709551615'))).toEqual([3]);
    expect(users(await answer(folder, 'hash__exact=1'))).toEqual([1]);
    expect((await run(folder, ['check', 'web'])).code).toBe(0);
  });

  it('have the values of their folders, including null, or of their columns where no such folder exists', async () => {
    const folder = await lakeFolder(
      inferred,
      rows(0, 2, 'day=1/a.parquet', ", 'in the file' AS day"),
      rows(2, 4, 'b.parquet', ', 7 AS day'),
    );
    expect((await index(folder)).report.problems).toEqual([]);
    const nowhere = 'day=__HIVE_DEFAULT_PARTITION__';
    for (const name of [nowhere, 'day=']) mkdirSync(join(folder, 'lake', name));
    await write(
      folder,
      rows(4, 6, `${nowhere}/c.parquet`, ', 9 AS day'),
      rows(6, 8, 'day=/d.parquet', ', 9 AS day'),
    );
    expect((await index(folder)).report).toMatchObject({ attached: 2, problems: [] });
    const days = async (...words: string[]): Promise<unknown[]> =>
      (await answer(folder, ...words))
        .sort((x, y) => Number(x.userid) - Number(y.userid))
        .map(({ day }) => day);
    expect(await days()).toEqual([1, 1, 7, 7, null, null, null, null]);
    expect(await days('day__lt=9')).toEqual([1, 1, 7, 7]);
    expect(await days('day__in=7', 'day__in=9')).toEqual([7, 7]);
    expect((await run(folder, ['verify', 'web'])).code).toBe(0);
  });

  it('that are changed or missing fail the queries that need them until the user removes or replaces them', async () => {
    const folder = await lakeFolder(
      inferred,
      rows(0, 50, 'day=1/a.parquet'),
      rows(50, 80, 'day=2/b.parquet'),
    );
    await index(folder);
    await write(folder, rows(100, 120, 'day=1/a.parquet'));
    rmSync(join(folder, 'lake/day=2/b.parquet'));
    const refused = await index(folder);
    expect(refused.code).toBe(1);
    expect(refused.report).toMatchObject({ attached: 0, removed: 0 });
    expect(refused.report.problems.map(({ message }) => message)).toEqual([
      expect.stringContaining('a.parquet is not the file that was attached'),
      expect.stringContaining('b.parquet does not exist any more'),
    ]);
    const failed = await run(folder, ['query', 'web', 'userid__eq=60']);
    expect(failed.code).toBe(1);
    expect(failed.stderr).toContain(join(folder, 'lake/day=2/b.parquet'));
    writeFileSync(
      join(folder, 'agents/web.yaml'),
      "archive: { path: '../lake/**/*.parquet', changed: replace, missing: retire }\n",
    );
    expect(await index(folder)).toMatchObject({ code: 0, report: { attached: 1, rows: 20, removed: 2 } });
    expect(users(await answer(folder))).toEqual(upTo(120).slice(100));
  });

  it('that are moved keep their identity, copies have records of their own, and incomplete ones are named', async () => {
    const folder = await lakeFolder(
      inferred,
      rows(0, 50, 'day=1/a.parquet'),
      rows(50, 80, 'day=2/b.parquet'),
    );
    await index(folder);
    const before = await answer(folder);
    const lake = (path: string): string => join(folder, 'lake', path);
    renameSync(lake('day=1/a.parquet'), lake('day=1/renamed.parquet'));
    copyFileSync(lake('day=2/b.parquet'), lake('day=2/copy.parquet'));
    for (const name of ['torn', 'growing'])
      writeFileSync(lake(`${name}.parquet`), readFileSync(lake('day=2/b.parquet')).subarray(0, 500));
    makeOld(lake('torn.parquet'));
    const { code, report } = await index(folder);
    expect(code).toBe(1);
    expect(report).toMatchObject({ attached: 1, moved: 1, removed: 0, waiting: 1 });
    expect(report.problems.map(({ path }) => path)).toEqual([lake('torn.parquet')]);
    const after = await answer(folder);
    expect(after).toHaveLength(before.length + 30);
    expect(after).toEqual(expect.arrayContaining(before));
  });

  it('are found by a server, which answers from them and from stored records together', async () => {
    const agentFile = `${inferred}file: { path: '../logs/.*', format: json }
fields: [{ name: at, type: time, source: '@timestamp' }, { name: n, type: int, source: UserID }, { name: message }]
`;
    const folder = await lakeFolder(agentFile, rows(0, 50, 'day=1/a.parquet'));
    mkdirSync(join(folder, 'logs'));
    const port = await freePort();
    const server = start(folder, ['serve', '--listen', `127.0.0.1:${port}`]);
    const url = `http://127.0.0.1:${port}/api/query/web?limit=1000`;
    const numbers = async (): Promise<number[]> =>
      recordsOf(await (await fetchAlone(url)).text()).map(({ n }) => Number(n));
    const reaches = async (expected: readonly number[]): Promise<void> => {
      let found: number[] = [];
      while (found.length < expected.length) found = await numbers();
      expect(found.sort((a, b) => a - b)).toEqual(expected);
    };
    await server.shows('serving ');
    await reaches(upTo(50));
    await server.shows('all archive files are indexed');
    writeFileSync(join(folder, 'logs/x.log'), `{"@timestamp":"x","UserID":50,"message":"from a log"}\n`);
    await write(folder, rows(51, 60, 'day=2/b.parquet'));
    writeFileSync(join(folder, 'lake/bad.parquet'), 'this is none');
    makeOld(join(folder, 'lake/bad.parquet'));
    await reaches(upTo(60));
    const { stdout } = await run(folder, ['stats', 'web', '--json']);
    const { attaching, attached } = JSON.parse(stdout) as {
      attaching: AttachStatus;
      attached: { files: number };
    };
    expect(attached.files).toBe(2);
    expect(attaching).toMatchObject({ files: 3, filesLeft: 0, problems: 1, paused: null });
    server.child.kill('SIGTERM');
    const ended = await server.finished;
    expect(ended.code).toBe(0);
    expect(ended.stderr.match(/"path":"[^"]*bad\.parquet"/g)).toHaveLength(1);
  });

  it('that do not exist, for an agent without fields, are an error that names the agent', async () => {
    const folder = await lakeFolder(inferred);
    const { code, stderr } = await run(folder, ['index', 'web']);
    expect(code).toBe(1);
    expect(stderr).toContain(
      'agents/web.yaml:1:10: the agent "web" lists no fields, and its archive has none: no file was found',
    );
    const text = await run(folder, ['index', 'app']);
    expect(text.code).toBe(2);
    expect(text.stderr).toContain('agent "app" has no archive that is queried in place');
  });
});
