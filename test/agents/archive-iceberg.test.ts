import { execFileSync } from 'node:child_process';
import { cpSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { describe, expect, it } from 'vitest';
import { readAvro } from '../../agents/archive/avro.js';
import { resolvePeer } from '../../bench/sides/peer-package.js';
import { caseCount, fc, seed } from '../cases.js';
import { describeWithChdb } from '../far/with-chdb.js';
import { avroBytes } from './avro-bytes.js';
import { hour } from './delta-table.js';
import { IcebergLake } from './iceberg-table.js';

const columns = { ts: { type: 'timestamp', id: 1 }, n: { type: 'long', id: 2 } } as const;

describe('an Iceberg table', () => {
  it('finds columns by their ids, also after they were renamed, widened and added', async () => {
    const lake = new IcebergLake({
      ...columns,
      a: { type: 'integer', id: 3 },
      f: { type: 'float', id: 4 },
      d: { type: 'decimal(10,2)', id: 5 },
    });
    lake.commit(lake.add([{ ts: hour, n: 1, a: 7, f: 0.5, d: 1.5 }]));
    lake.columns = {
      ts: { type: 'timestamp', id: 1 },
      b: { type: 'long', id: 3 },
      f: { type: 'double', id: 4 },
      d: { type: 'decimal(18,2)', id: 5 },
      n: { type: 'string', id: 6 },
    };
    lake.commit(lake.add([{ ts: hour + 1, b: 2n ** 60n, f: 0.25, d: 2.5, n: 'new' }]));
    expect(await lake.look()).toEqual([]);
    const text = JSON.stringify(await lake.rows());
    expect(JSON.parse(text)).toEqual([
      { ts: hour, b: 7, f: 0.5, d: '1.50', n: null },
      { ts: hour + 1, b: 2 ** 60, f: 0.25, d: '2.50', n: 'new' },
    ]);
  });

  it('has values of its partition where files lack the column', async () => {
    const lake = new IcebergLake({ ...columns, p: { type: 'string', id: 3, partition: true } });
    lake.commit(
      lake.add([{ ts: hour, n: 1 }], { values: { p: 'x' } }),
      lake.add([{ ts: hour + 1, n: 2 }], { values: { p: null } }),
    );
    lake.columns = { ...columns, p: { type: 'string', id: 3 } };
    lake.commit(lake.add([{ ts: hour + 2, n: 3, p: 'own' }], { values: { p: 'own' } }));
    expect(await lake.look()).toEqual([]);
    expect((await lake.rows()).map(({ n, p }) => [n, p])).toEqual([
      [1, 'x'],
      [2, null],
      [3, 'own'],
    ]);
  });

  it('is answered as of a snapshot that is named', async () => {
    const lake = new IcebergLake(columns);
    const first = lake.add([{ ts: hour, n: 1 }]);
    lake.commit(first);
    lake.commit(lake.remove(first), lake.add([{ ts: hour, n: 2 }]));
    expect(await lake.look(`, snapshot: ${lake.snapshotOf(1)}`)).toEqual([]);
    expect((await lake.rows()).map(({ n }) => n)).toEqual([1]);
    expect(lake.status.version).toBe(`snapshot ${lake.snapshotOf(1)}`);
    const other = new IcebergLake(columns);
    await expect(other.look(', snapshot: 12')).rejects.toThrow(
      `has no snapshot 12: the last ones that it has are ${other.snapshotOf(0)}`,
    );
  });

  it.each([
    [
      'a newer format',
      (lake: IcebergLake) => ((lake.format = 4), lake.commit()),
      'has the format version 4, which is not supported',
    ],
    [
      'no metadata',
      (lake: IcebergLake) => rmSync(join(lake.root, 'metadata'), { recursive: true }),
      'metadata',
    ],
    [
      'metadata that is no JSON',
      (lake: IcebergLake) => writeFileSync(join(lake.root, 'metadata/v9.metadata.json'), '{'),
      "has metadata that can't be read",
    ],
    [
      'metadata that is a text without an end',
      (lake: IcebergLake) =>
        writeFileSync(join(lake.root, 'metadata/v9.metadata.json'), `"${'\\"'.repeat(2_000_000)}`),
      "has metadata that can't be read",
    ],
    [
      'equality deletes',
      (lake: IcebergLake) =>
        lake.commit({ deletes: { path: 'd.parquet', version: 2, of: '', isEquality: true } }),
      'has equality deletes, which is not supported',
    ],
    [
      'a manifest that is cut off',
      (lake: IcebergLake) => {
        const path = join(lake.root, 'metadata/1-added.avro');
        writeFileSync(path, readFileSync(path).subarray(0, -20));
      },
      'added.avro is no manifest of an Iceberg table: it ends',
    ],
  ])('is refused with %s', async (_, change, why) => {
    const lake = new IcebergLake(columns);
    lake.commit(lake.add([{ ts: hour, n: 1 }]));
    change(lake);
    await expect(lake.look()).rejects.toThrow(why);
  });
});

/** Has ClickHouse run statements in a folder, in a process of its own: it opens only files below its working directory. */
function runClickHouse(folder: string, statements: readonly string[]): unknown[] {
  const script = `
    import chdb from ${JSON.stringify(pathToFileURL(resolvePeer('clickhouse', 'chdb')).href)};
    const session = new chdb.Session(${JSON.stringify(join(folder, 'session'))});
    const answers = ${JSON.stringify(statements)}.map((sql) => String(session.query(sql, 'JSONEachRow')));
    console.log(JSON.stringify(answers));
    session.cleanup?.();`;
  const answers = execFileSync(process.execPath, ['--input-type=module', '-e', script], { cwd: folder });
  return (JSON.parse(answers.toString()) as string[]).map((text) =>
    text.split('\n').flatMap((line) => (line === '' ? [] : [JSON.parse(line) as unknown])),
  );
}

describeWithChdb('an Iceberg table that ClickHouse has written', () => {
  it('has the rows that ClickHouse reads, before and after its columns change', async () => {
    const lake = new IcebergLake(columns);
    rmSync(lake.root, { recursive: true });
    const writes = 'SETTINGS allow_experimental_insert_into_iceberg = 1';
    const read =
      'SELECT toUnixTimestamp64Milli(ts) AS ts, * EXCEPT ts FROM d.t ORDER BY n SETTINGS output_format_json_quote_64bit_integers = 0';
    const answers = runClickHouse(lake.folder, [
      'CREATE DATABASE d',
      "CREATE TABLE d.t (ts DateTime64(6, 'UTC'), n Int32, msg String, f Float32) ENGINE = IcebergLocal('table/')",
      `INSERT INTO d.t ${writes} SELECT toDateTime64('2026-01-01 00:00:00', 6, 'UTC') + number, number, 'm' || number, number / 4 FROM numbers(500)`,
      `INSERT INTO d.t ${writes} VALUES ('2026-01-02 00:00:00', 1000, 'x', 1.5)`,
      read,
      `ALTER TABLE d.t ADD COLUMN extra Nullable(Int64) ${writes}`,
      `ALTER TABLE d.t MODIFY COLUMN n Int64 ${writes}`,
      `ALTER TABLE d.t RENAME COLUMN msg TO message ${writes}`,
      `INSERT INTO d.t ${writes} SELECT toDateTime64('2026-01-03 00:00:00', 6, 'UTC') AS ts, 5000000000 AS n, 'y' AS message, 2.5 AS f, 7 AS extra`,
      // It deletes rows by their positions.
      `ALTER TABLE d.t DELETE WHERE n % 7 = 3 ${writes}`,
      read,
    ]);
    lake.now = Date.UTC(2027, 0, 1);
    expect(await lake.look()).toEqual([]);
    expect((await lake.rows()).toSorted((a, b) => Number(a['n']) - Number(b['n']))).toEqual(answers.at(-1));
    expect(lake.status.version).toMatch(/^snapshot \d+$/);
    const before = new IcebergLake(columns);
    rmSync(before.root, { recursive: true });
    cpSync(lake.root, before.root, { recursive: true });
    before.now = lake.now;
    const newest = readdirSync(join(lake.root, 'metadata')).filter((name) =>
      name.endsWith('.metadata.json'),
    ).length;
    const text = readFileSync(join(lake.root, `metadata/v${newest}.metadata.json`), 'utf8');
    const { snapshots } = JSON.parse(text.replace(/: (\d{16,})/g, ': "$1"')) as {
      snapshots: Record<string, string | number>[];
    };
    const second = snapshots.find((snapshot) => snapshot['sequence-number'] === 2)!['snapshot-id'];
    expect(await before.look(`, snapshot: ${second}`)).toEqual([]);
    expect((await before.rows()).toSorted((a, b) => Number(a['n']) - Number(b['n']))).toEqual(answers[4]);
  });
});

describe('Avro', () => {
  const type = {
    type: 'record',
    name: 'a',
    fields: [
      { name: 'n', type: 'long' },
      { name: 's', type: ['null', 'string'] },
      { name: 'l', type: { type: 'array', items: { type: 'map', values: 'long' } } },
      { name: 'b', type: 'boolean' },
    ],
  };
  const record = fc.record({
    n: fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }),
    s: fc.option(fc.string()),
    l: fc.array(
      fc.dictionary(
        fc.string().filter((key) => key !== '__proto__'),
        fc.integer(),
      ),
    ),
    b: fc.boolean(),
  });

  const nothing = (): void => {};

  it('is read as it was written', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(record), fc.constantFrom('null', 'deflate'), async (records, codec) => {
        const read: Readonly<Record<string, unknown>>[] = [];
        await readAvro(avroBytes(type, records, { codec }), (each) => void read.push(each));
        expect(
          read.map((each) => ({
            ...each,
            n: BigInt(each['n'] as bigint),
            l: (each['l'] as object[]).map((map) => ({ ...map })),
          })),
        ).toEqual(records.map((each) => ({ ...each, l: each.l.map((map) => ({ ...map })) })));
      }),
      { seed, numRuns: caseCount(100, 1000) },
    );
  });

  it('that is damaged is an error or other records, in bounded time and memory', async () => {
    const whole = avroBytes(type, [{ n: 1n, s: 'abc', l: [{ a: 1 }], b: true }]);
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.tuple(fc.nat(whole.length - 1), fc.nat(255)), { minLength: 1, maxLength: 8 }),
        fc.nat(whole.length),
        async (changes, end) => {
          const bytes = Buffer.from(whole);
          for (const [at, byte] of changes) bytes[at] = byte;
          try {
            await readAvro(bytes.subarray(0, end), nothing);
          } catch (error) {
            expect(error).toBeInstanceOf(Error);
          }
        },
      ),
      { seed, numRuns: caseCount(2000, 50_000) },
    );
    // More items than bytes, each of no bytes.
    const nulls = { type: 'array', items: 'null' };
    const bomb = avroBytes({ type: 'record', name: 'a', fields: [{ name: 'n', type: nulls }] }, []);
    const block = Buffer.concat([
      Buffer.from([2, 20]),
      Buffer.from('feffffffffffffff3f00', 'hex'),
      Buffer.alloc(16, 7),
    ]);
    await expect(readAvro(Buffer.concat([bomb, block]), nothing)).rejects.toThrow(
      'it has more values than its bytes can hold',
    );
    const loop = avroBytes({ type: 'record', name: 'a', fields: [{ name: 'a', type: 'a' }] } as never, []);
    const long = Buffer.concat([Buffer.from([2, 200, 1]), Buffer.alloc(100), Buffer.alloc(16, 7)]);
    await expect(readAvro(Buffer.concat([loop, long]), nothing)).rejects.toThrow('nested more than');
  });
});
