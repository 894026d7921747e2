import {
  copyFileSync,
  existsSync,
  readdirSync,
  readFileSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import sqlite from 'node-sqlite3-wasm';
import { describe, expect, it, onTestFinished } from 'vitest';
import { FugoDatabase } from '../../agents/fugo/fugo-database.js';
import { run } from '../cli/here.js';
import { freePort, recordsOf, start, type Finished } from '../cli/process.js';
import { cursorText, webColumns, webFolder, writeDatabase, writeTable, type Cell } from './fugo-file.js';
import { itUnless, missingProgram, notLinux } from '../needs.js';

type Row = readonly [number, ...Cell[]];

const beginMs = Date.UTC(2026, 9, 1);

/** Rows whose cursors have gaps, as after retention and failed inserts. */
function webRows(count: number, first = 4): Row[] {
  return Array.from({ length: count }, (_, i): Row => {
    const cursor = first + i + Math.floor(i / 10) * 3;
    return [cursor, beginMs + i * 1000, 200 + (i % 5), i / 8, `line ${i} ☕`];
  });
}

const expected = (rows: readonly Row[]): object[] =>
  rows.map(([cursor, time, status, took, message]) => ({
    _cursor: cursorText(cursor),
    time,
    status,
    took,
    message,
  }));

const importFugo = (folder: string, ...words: string[]): Promise<Finished> =>
  run(folder, ['import', 'fugo', 'fugo.db', '--no-offsets', ...words]);

async function allOf(folder: string, agent = 'web'): Promise<object[]> {
  return recordsOf((await run(folder, ['query', agent, '--limit', '1000000'])).stdout);
}

itUnless(missingProgram('mkfifo'), 'a pipe in the place of a database is refused', async () => {
  const folder = webFolder();
  execFileSync('mkfifo', [join(folder, 'fugo.db')]);
  const { code, stderr } = await importFugo(folder);
  expect(code).toBe(1);
  expect(stderr).toBe(
    'logstrata: fugo.db is a pipe or a device, and SQLite reads a database in any order: write it to a file first\n',
  );
});

describe('an import', () => {
  it('keeps the cursor and the values of every record', async () => {
    const folder = webFolder();
    const rows = webRows(500);
    writeDatabase(join(folder, 'fugo.db'), (database) => writeTable(database, 'web', webColumns, rows));
    const before = readFileSync(join(folder, 'fugo.db'));
    const { code, stdout, stderr } = await importFugo(folder);
    expect(code, stderr).toBe(0);
    expect(stdout).toMatch(/^ok {7}web: 500 records, 0000000000000004 to 000000000000028a, /);
    expect(await allOf(folder)).toEqual(expected(rows));
    // In a folder of its own that no other records share.
    const store = join(folder, 'data/store/web');
    expect(readdirSync(store).filter((name) => name.startsWith('dt='))).toEqual(['dt=1969-12-31']);
    expect((await run(folder, ['verify', 'web'])).code).toBe(0);
    // Nothing was written to the database or next to it.
    expect(readFileSync(join(folder, 'fugo.db'))).toEqual(before);
    expect(readdirSync(folder).filter((name) => name.startsWith('fugo.db'))).toEqual(['fugo.db']);
    // A client's saved cursor remains valid.
    const after = await run(folder, ['query', 'web', '--after', cursorText(rows[99]![0]), '--limit', '2']);
    expect(recordsOf(after.stdout)).toEqual(expected(rows.slice(100, 102)));
  });

  it("reads every value that SQLite may store in a column, and counts those that do not fit the field's type", async () => {
    const folder = webFolder();
    const long = 'ü'.repeat(5000);
    const rows: Row[] = [
      [1, 9007199254740993n, 5.0, 2, Buffer.from('a\0b"\\')],
      [2, null, 'no number', 'nor this', null],
      [3, -1, -9223372036854775808n, Infinity, new Uint8Array([0x61, 0xff, 0x62])],
      [0x00ff_ffff_ffff, 0, 1.5, -0.25, long],
    ];
    writeDatabase(join(folder, 'fugo.db'), (database) => {
      writeTable(database, 'web', webColumns, rows);
      database.exec('UPDATE web SET message = CAST(message AS TEXT) WHERE _cursor = 1');
    });
    const { code, stdout } = await importFugo(folder);
    expect(code).toBe(0);
    expect(stdout).toContain('4 values did not fit');
    const answer = (await run(folder, ['query', 'web'])).stdout;
    expect(answer.split('\n').slice(0, 3)).toEqual([
      '{"_cursor":"0000000000000001","time":9007199254740993,"status":5,"took":2,"message":"a\\u0000b\\"\\\\"}',
      '{"_cursor":"0000000000000002","time":null,"status":null,"took":null,"message":null}',
      '{"_cursor":"0000000000000003","time":-1,"status":-9223372036854775808,"took":null,"message":"a\uFFFDb"}',
    ]);
    expect(recordsOf(answer)[3]).toEqual({
      _cursor: '000000ffffffffff',
      time: 0,
      status: null,
      took: -0.25,
      message: long,
    });
  });

  it('can be paged together with records collected later, forwards and backwards, each record once', async () => {
    const folder = webFolder();
    const rows = webRows(40);
    writeDatabase(join(folder, 'fugo.db'), (database) => writeTable(database, 'web', webColumns, rows));
    await importFugo(folder);
    const later = Array.from({ length: 40 }, (_, i) => {
      const time = (beginMs + 7_200_000 + i * 200_000) / 1000;
      return `{"time":${time},"status":${i},"took":0,"message":"later ${i}"}\n`;
    });
    writeFileSync(join(folder, 'later.log'), later.join(''));
    expect((await run(folder, ['load', 'web', 'later.log'])).code).toBe(0);
    const all = recordsOf((await run(folder, ['query', 'web', '--limit', '1000'])).stdout);
    expect(all.map(({ message }) => message)).toEqual([
      ...rows.map(([, , , , message]) => message),
      ...later.map((_, i) => `later ${i}`),
    ]);
    const address = `127.0.0.1:${await freePort()}`;
    const server = start(folder, ['serve', '--listen', address, '--console', 'off', '--no-follow']);
    await server.shows('serving ');
    const page = async (way: 'after' | 'before', cursor: string): Promise<typeof all> => {
      const answer = await fetch(`http://${address}/api/query/web?${way}=${cursor}&limit=11`);
      return recordsOf(await answer.text());
    };
    const forth: typeof all = [];
    for (let cursor = '0000000000000000'; ;) {
      const records = await page('after', cursor);
      if (records.length === 0) break;
      forth.push(...records);
      cursor = String(records.at(-1)!['_cursor']);
    }
    expect(forth).toEqual(all);
    const back: typeof all = [];
    for (let cursor = 'ffffffffffffffff'; ;) {
      const records = await page('before', cursor);
      if (records.length === 0) break;
      back.unshift(...records);
      cursor = String(records[0]!['_cursor']);
    }
    expect(back).toEqual(all);
  });

  it('continues the logs where the service had stopped', async () => {
    const folder = webFolder();
    const lines = Array.from(
      { length: 6 },
      (_, i) => `{"time":${beginMs / 1000 + i},"message":"line ${i}"}\n`,
    );
    const log = join(folder, 'logs/web.log');
    writeFileSync(log, lines.join(''));
    const other = join(folder, 'logs/other.log');
    writeFileSync(other, lines.join(''));
    const offset = lines.slice(0, 4).join('').length;
    writeFileSync(
      join(folder, 'offsets.yaml'),
      `${log}: ${offset}\n${other}: 10\n${folder}/logs/gone.log: 7\n`,
    );
    const rows = lines.slice(0, 4).map((_, i): Row => [i + 1, beginMs + i * 1000, null, null, `line ${i}`]);
    writeDatabase(join(folder, 'fugo.db'), (database) => writeTable(database, 'web', webColumns, rows));
    const imported = await run(folder, ['import', 'fugo', 'fugo.db']);
    expect(imported.code, imported.stderr).toBe(0);
    expect(imported.stderr).not.toContain('warning');
    expect(imported.stdout).toMatch(/1 log will be continued$/m);
    const loaded = await run(folder, ['load', 'web', 'logs/web.log', '--json']);
    expect(JSON.parse(loaded.stdout)).toMatchObject({ records: 2 });
    expect((await allOf(folder)).map((record) => (record as { message: string }).message)).toEqual(
      lines.map((_, i) => `line ${i}`),
    );
  });

  it('that is repeated adds the new rows', async () => {
    const folder = webFolder();
    const path = join(folder, 'fugo.db');
    const rows = webRows(30);
    writeDatabase(path, (database) => writeTable(database, 'web', webColumns, rows.slice(0, 20)));
    await importFugo(folder);
    expect((await importFugo(folder)).stdout).toMatch(/^ok {7}web: nothing new$/m);
    writeDatabase(path, (database) => {
      for (const row of rows.slice(20))
        database.run('INSERT INTO web VALUES (?, ?, ?, ?, ?)', row as unknown as Cell[]);
    });
    expect((await importFugo(folder)).stdout).toMatch(/^ok {7}web: 10 records/m);
    expect(await allOf(folder)).toEqual(expected(rows));
  });

  it('reads a database that was not closed properly, including rows that are only in its write-ahead log', async () => {
    const folder = webFolder();
    const rows = webRows(50);
    const working = join(folder, 'working.db');
    const database = new sqlite.Database(working);
    database.exec('PRAGMA locking_mode = EXCLUSIVE');
    database.all('PRAGMA journal_mode = WAL');
    writeTable(database, 'web', webColumns, rows);
    for (const suffix of ['', '-wal']) copyFileSync(working + suffix, join(folder, `fugo.db${suffix}`));
    database.close();
    expect((await importFugo(folder)).code).toBe(0);
    expect(await allOf(folder)).toEqual(expected(rows));
    expect(existsSync(join(folder, 'fugo.db-wal'))).toBe(true);
  });
});

describe('an import refuses', () => {
  it('an agent that has records of an earlier time, and imports the others', async () => {
    const folder = webFolder();
    copyFileSync(join(folder, 'agents/web.yaml'), join(folder, 'agents/shop.yaml'));
    writeFileSync(join(folder, 'earlier.log'), `{"time":${beginMs / 1000 - 7200},"message":"earlier"}\n`);
    await run(folder, ['load', 'web', 'earlier.log']);
    const rows = webRows(30);
    writeDatabase(join(folder, 'fugo.db'), (database) => {
      for (const name of ['web', 'shop', 'old']) writeTable(database, name, webColumns, rows);
    });
    const { code, stdout } = await importFugo(folder);
    expect(code).toBe(1);
    expect(stdout).toMatch(
      /^FAILED {3}web: agent web has records from 2026-09-30T22:00Z on, but the imported ones continue until 2026-10-01/m,
    );
    expect(stdout).toMatch(/^FAILED {3}old: there is no agent file for this table in /m);
    expect(stdout).toMatch(/^ok {7}shop: 30 records/m);
    expect(await allOf(folder)).toHaveLength(1);
    expect(await allOf(folder, 'shop')).toEqual(expected(rows));
    expect((await importFugo(folder, '--agent', 'shop')).code).toBe(0);
    const unknown = await importFugo(folder, '--agent', 'nobody');
    expect([unknown.code, unknown.stderr]).toEqual([2, expect.stringContaining('It has old, shop, web')]);
  });

  it('a file that is no database, and one that is cut off', async () => {
    const folder = webFolder();
    const refused = async (message: RegExp): Promise<void> => {
      const { code, stdout, stderr } = await importFugo(folder);
      expect([code, stdout + stderr]).toEqual([1, expect.stringMatching(message)]);
      expect(stderr).not.toMatch(/^ {4}at /m);
      const found = await run(folder, ['query', 'web']);
      expect(recordsOf(found.stdout)).toEqual([]);
    };
    const path = join(folder, 'fugo.db');
    await refused(/^logstrata: fugo\.db is not there/);
    writeFileSync(path, 'SQLite format 4\0'.padEnd(5000));
    await refused(/^logstrata: fugo\.db is not an SQLite database/);
    writeFileSync(path, '');
    await refused(/^logstrata: fugo\.db is not an SQLite database/);
    writeDatabase(`${path}2`, (database) => writeTable(database, 'web', webColumns, webRows(2000)));
    copyFileSync(`${path}2`, path);
    truncateSync(path, 20_000);
    await refused(/^logstrata: fugo\.db is truncated: it has 20000 of \d+/);
  });

  it('a damaged database, without storing any of it', async () => {
    const folder = webFolder();
    const path = join(folder, 'fugo.db');
    writeDatabase(path, (database) => writeTable(database, 'web', webColumns, webRows(3000)));
    const whole = readFileSync(path);
    // A page in the middle of the table that is overwritten.
    const damaged = Buffer.from(whole);
    damaged.fill(0x5a, 4096 * 10, 4096 * 11);
    writeFileSync(path, damaged);
    const { code, stdout } = await importFugo(folder);
    expect([code, stdout]).toEqual([
      1,
      expect.stringMatching(/^FAILED {3}web: fugo\.db: it can't be read: /),
    ]);
    expect(await allOf(folder)).toEqual([]);
  });

  itUnless(notLinux ?? missingProgram('python3'), 'a database that another process has open', async () => {
    const folder = webFolder();
    const script =
      'import sqlite3, sys\nc = sqlite3.connect("fugo.db")\nc.execute("PRAGMA journal_mode = wal")\nc.execute("CREATE TABLE web (_cursor INTEGER PRIMARY KEY AUTOINCREMENT)")\nc.commit()\nprint("open", flush=True)\nsys.stdin.read()\n';
    const service = spawn('python3', ['-c', script], { cwd: folder });
    onTestFinished(() => void service.kill('SIGKILL'));
    await once(service.stdout, 'data');
    const { code, stderr } = await importFugo(folder);
    expect([code, stderr]).toEqual([
      1,
      expect.stringContaining(`process ${service.pid} has fugo.db open: stop it first`),
    ]);
  });

  it('a database that is written to during the import', async () => {
    const folder = webFolder();
    const path = join(folder, 'fugo.db');
    writeDatabase(path, (database) => writeTable(database, 'web', webColumns, webRows(10)));
    const database = await FugoDatabase.open(path);
    onTestFinished(() => database.close());
    expect([...database.rows('web', ['message'], 1)]).toHaveLength(10);
    database.requireUnchanged();
    utimesSync(path, 1, 1);
    expect(() => database.requireUnchanged()).toThrow(/was changed while it was read/);
  });
});

it('a database with any changed byte is read, or reported as damaged', async () => {
  const folder = webFolder();
  const path = join(folder, 'fugo.db');
  writeDatabase(path, (database) => writeTable(database, 'web', webColumns, webRows(400)));
  const whole = readFileSync(path);
  for (let at = 18; at < whole.length; at += at < 300 ? 7 : 211) {
    const damaged = Buffer.from(whole);
    damaged[at]! ^= 0xff;
    writeFileSync(path, damaged);
    let database: FugoDatabase | undefined;
    try {
      database = await FugoDatabase.open(path);
      for (const table of database.tables()) {
        let last = 0;
        for (const { cursor } of database.rows(table.name, table.columns, 1)) {
          expect(cursor).toBeGreaterThan(last);
          last = cursor;
        }
      }
    } catch (error) {
      expect(['damaged', 'invalid', 'limit'], `byte ${at}: ${String(error)}`).toContain(
        (error as { code?: unknown }).code,
      );
    } finally {
      database?.close();
    }
  }
});

it('an import that is killed leaves all records of an agent, or none', async () => {
  const folder = webFolder();
  const rows = webRows(40_000);
  writeDatabase(join(folder, 'fugo.db'), (database) => writeTable(database, 'web', webColumns, rows));
  for (let round = 0; round < 3; round++) {
    const importing = start(folder, [
      'import',
      'fugo',
      'fugo.db',
      '--no-offsets',
      '--data',
      `store-${round}`,
    ]);
    // From the middle of the start to about the end, on an otherwise idle machine.
    await new Promise((resolve) => setTimeout(resolve, 300 + round * 300));
    importing.child.kill('SIGKILL');
    await importing.finished;
    const count = async (): Promise<number> => {
      const { stdout } = await run(folder, ['count', 'web', '--json', '--data', `store-${round}`]);
      return stdout === '' ? 0 : (JSON.parse(stdout) as { count: number }).count;
    };
    const found = await count();
    expect([0, rows.length]).toContain(found);
    const again = await importFugo(folder, '--data', `store-${round}`);
    expect(again.code, again.stderr).toBe(0);
    expect(await count()).toBe(rows.length);
    const { stdout } = await run(folder, ['verify', 'web', '--data', `store-${round}`]);
    expect(stdout).not.toContain('belongs to no record');
  }
});
