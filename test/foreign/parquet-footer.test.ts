import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { ForeignColumn, ForeignFile } from '../../engine/foreign/foreign-file.js';
import { readForeignFile } from '../../engine/foreign/read-foreign.js';
import { i32, i64, writeThrift, type ThriftStruct } from '../../engine/parquet/thrift-writer.js';
import { LogstrataError } from '../../engine/core/errors.js';
import { queryAllDuckDb } from '../oracle/duckdb.js';
import { missingCorpus, parquetCorpus } from './foreign-samples.js';
import { describeUnless } from '../needs.js';

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'logstrata-footer-'));
});
afterAll(async () => {
  await rm(folder, { recursive: true });
});

function columnOf(file: ForeignFile, name: string): ForeignColumn {
  return file.columns.find((column) => column.name === name)!;
}

function boundsOf(file: ForeignFile, name: string, rowGroup = 0): unknown[] {
  const chunk = file.rowGroups[rowGroup]!.chunks[file.columns.indexOf(columnOf(file, name))]!;
  return [chunk.min?.value ?? null, chunk.max?.value ?? null, chunk.nullCount];
}

describe('a footer written by DuckDB', () => {
  const types: readonly (readonly [sql: string, expected: string])[] = [
    ["'z' || i", 'string fast'],
    ['i', 'int fast'],
    ['i::TINYINT', 'int fast'],
    ['i::UINTEGER', 'int fast'],
    ['i::UBIGINT', 'int fast'],
    ['18446744073709551615::UBIGINT', 'string complete'],
    ['i / 4', 'float fast'],
    ['(i / 4)::FLOAT', 'float fast'],
    ['i % 2 = 0', 'bool fast'],
    ["DATE '1969-12-30' + i::INTEGER", 'time fast'],
    ["TIMESTAMP '1969-12-31 23:59:59.999999' + to_microseconds(i)", 'time fast'],
    ["TIMESTAMPTZ '2024-01-01 00:00:00+00' + to_microseconds(i)", 'time fast'],
    ["TIMESTAMP_NS '2024-01-01 00:00:00.123456789'", 'time fast'],
    ["TIMESTAMP_MS '2024-01-01 00:00:00.123'", 'time fast'],
    ["TIME '01:02:03'", 'string complete'],
    ['(i / 100)::DECIMAL(9, 2)', 'float fast'],
    ['i::DECIMAL(15, 0)', 'int fast'],
    ['i::DECIMAL(18, 3)', 'string complete'],
    ['i::DECIMAL(38, 3)', 'string complete'],
    ['uuid()', 'string complete'],
    ["'a'::BLOB", 'string fast'],
    ['[i]', 'string complete'],
    ["{'a': i, 'b': [{'c': 1}]}", 'string complete'],
    ['MAP {i: 1}', 'string complete'],
    ["INTERVAL '1 day'", 'string complete'],
  ];

  it('describes the type, the decoder and the bounds of each column', async () => {
    const path = join(folder, 'types.parquet');
    const columns = types.map(([sql], i) => `${sql} AS c${i}`).join(', ');
    await queryAllDuckDb([
      `COPY (SELECT ${columns} FROM range(-3, 5) t(i)) TO '${path}' (FORMAT parquet, COMPRESSION zstd)`.replaceAll(
        'i::U',
        '(i + 3)::U',
      ),
    ]);
    const file = await readForeignFile(path, 'parquet');
    expect(file.columns.map(({ type, way }) => `${type} ${way}`)).toEqual(types.map(([, type]) => type));
    expect(file.rows).toBe(8);
    expect(file.writtenBy).toContain('DuckDB');
    expect(boundsOf(file, 'c0')).toEqual(['z-1', 'z4', 0]);
    expect(boundsOf(file, 'c1')).toEqual(['-3', '4', 0]);
    expect(boundsOf(file, 'c9')).toEqual([String(-5 * 86_400_000), String(2 * 86_400_000), 0]);
    // The first time is three microseconds before the last microsecond before the epoch.
    expect(boundsOf(file, 'c10')).toEqual(['-1', '0', 0]);
    expect(boundsOf(file, 'c6').slice(0, 2)).toEqual([-0.75, 1]);
  });

  it('has the same hash in any file, and another hash for other content', async () => {
    const write = (name: string, rows: number): string =>
      `COPY (SELECT i, CASE WHEN i % 3 = 0 THEN NULL ELSE i END AS n FROM range(${rows}) t(i)) ` +
      `TO '${join(folder, name)}' (FORMAT parquet, ROW_GROUP_SIZE 2048)`;
    await queryAllDuckDb([write('a.parquet', 5000), write('b.parquet', 5001)]);
    await writeFile(join(folder, 'c.parquet'), await readFile(join(folder, 'a.parquet')));
    const [a, b, c] = await Promise.all(
      ['a', 'b', 'c'].map((name) => readForeignFile(join(folder, `${name}.parquet`), 'parquet')),
    );
    expect(a!.footerHash).toMatch(/^xxh64:[0-9a-f]{16}\+xxh64:[0-9a-f]{16}$/);
    expect(c).toEqual(a);
    expect(b!.footerHash).not.toBe(a!.footerHash);
    expect(a!.rowGroups.map(({ rows }) => rows)).toEqual([2048, 2048, 904]);
    expect(boundsOf(a!, 'n', 1)).toEqual(['2048', '4094', 683]);
  });
});

/** A file that consists of a footer. */
async function fileOf(name: string, footer: ThriftStruct, front = 'PAR1'): Promise<string> {
  const bytes = writeThrift(footer);
  const tail = Buffer.alloc(8, 'xxxxPAR1');
  tail.writeUInt32LE(bytes.length);
  const path = join(folder, name);
  await writeFile(path, Buffer.concat([Buffer.from(front), bytes, tail]));
  return path;
}

const root = { 4: 'schema', 5: i32(1) };
const text = { 1: i32(6), 3: i32(1), 4: 'message', 6: i32(0) };
const chunkAt = (offset: number, bytes: number, statistics?: ThriftStruct): ThriftStruct => ({
  3: {
    1: i32(6),
    2: [],
    3: [],
    4: i32(0),
    5: i64(1),
    6: i64(10),
    7: i64(bytes),
    9: i64(offset),
    12: statistics,
  },
});

describe('an invalid footer', () => {
  const groups = (chunk: ThriftStruct, rows = 1): ThriftStruct => ({
    1: i32(1),
    2: [root, text],
    3: i64(rows),
    4: [{ 1: [chunk], 3: i64(rows) }],
  });

  it.each<readonly [string, ThriftStruct, RegExp]>([
    ['pages outside the file', groups(chunkAt(4, 1000)), /"message" of row group 0 claims bytes 4 to 1004/],
    ['pages before the file', groups(chunkAt(0, 1)), /claims bytes 0 to 1/],
    ['more nulls than rows', groups(chunkAt(4, 0, { 3: i64(2) })), /the statistics count 2 nulls in 1 rows/],
    [
      'fewer chunks than columns',
      { 1: i32(1), 2: [root, text], 3: i64(0), 4: [{ 1: [], 3: i64(0) }] },
      /0 column chunks/,
    ],
    [
      'fewer columns than it says',
      { 1: i32(1), 2: [{ 4: 'schema', 5: i32(2) }, text], 3: i64(0) },
      /fewer columns/,
    ],
    ['more columns than it says', { 1: i32(1), 2: [root, text, text], 3: i64(0) }, /more columns/],
    ['a negative count', { 1: i32(1), 2: [{ 4: 'schema', 5: i32(-1) }], 3: i64(0) }, /field 5/],
    [
      'a million columns',
      { 1: i32(1), 2: [{ 5: i32(1_000_000) }, ...new Array<ThriftStruct>(1_000_000).fill({ 1: i32(1) })] },
      /the schema has 1000001 columns, more than the maximum of 10000/,
    ],
    [
      'groups without end',
      { 1: i32(1), 2: [root, ...new Array<ThriftStruct>(5000).fill({ 4: 'g', 5: i32(1) })] },
      /nested more than 512 deep/,
    ],
    [
      'structures that take more memory than their bytes',
      { 1: i32(1), 2: [root, text], 3: i64(0), 5: new Array<ThriftStruct>(1_000_000).fill({}) },
      /more values than can be read/,
    ],
  ])('is refused for %s, with path and place', async (name, footer, message) => {
    const path = await fileOf(name.replaceAll(' ', '-'), footer);
    const error: unknown = await readForeignFile(path, 'parquet').catch((caught: unknown) => caught);
    expect(error).toBeInstanceOf(LogstrataError);
    expect(error).toMatchObject({ code: 'damaged', path, offset: expect.any(Number) as number });
    expect((error as LogstrataError).message).toMatch(message);
  });

  it('is refused for files that have none or are cut off', async () => {
    const whole = await readFile(await fileOf('whole', groups(chunkAt(4, 0))));
    for (let length = 0; length < whole.length; length++) {
      const path = join(folder, 'cut.parquet');
      await writeFile(path, whole.subarray(0, length));
      await expect(readForeignFile(path, 'parquet')).rejects.toMatchObject({ code: 'damaged', path });
    }
    await expect(readForeignFile(folder, 'parquet')).rejects.toMatchObject({ code: 'io' });
    await expect(readForeignFile(join(folder, 'none'), 'parquet')).rejects.toMatchObject({
      code: 'not_found',
    });
  });

  it('has no bounds if their bytes would change when they are read as text', async () => {
    const bounds = async (min: Buffer | string, max: Buffer | string): Promise<unknown> => {
      const facts = { 3: i64(0), 5: Buffer.from(max), 6: Buffer.from(min) };
      const file = await readForeignFile(await fileOf('bounds', groups(chunkAt(4, 0, facts))), 'parquet');
      return boundsOf(file, 'message').slice(0, 2);
    };
    expect(await bounds('abc', 'abd')).toEqual(['abc', 'abd']);
    expect(await bounds('zażółć', 'zażółć')).toEqual(['zażółć', 'zb']);
    expect(await bounds('\uffff', '\u{1f600}')).toEqual(['', null]);
    expect(await bounds('aż\ufffdb', '\x7f\x7fż')).toEqual(['aż', null]);
    expect(await bounds(Buffer.of(0x61, 0xc5), Buffer.of(0x61, 0xc5))).toEqual(['a', 'b']);
    expect(await bounds(Buffer.of(0x61, 0x80, 0x62), Buffer.of(0x61, 0x7f, 0xff))).toEqual(['a', 'b']);
  });
});

describeUnless(missingCorpus, 'the files with which the Parquet project tests readers', () => {
  const refused = /encrypt|external_key_material/;

  it.each(parquetCorpus('data'))('$name is described, or refused as encrypted', async ({ name, path }) => {
    const described = await readForeignFile(path, 'parquet').catch((error: unknown) => {
      expect(error).toMatchObject({ code: 'unsupported', path });
      return null;
    });
    if (described === null) expect(name).toMatch(refused);
    else
      expect(described.rowGroups.every(({ chunks }) => chunks.length === described.columns.length)).toBe(
        true,
      );
  });

  it.each(parquetCorpus('bad_data'))(
    '$name is described, or refused with an error that names it',
    async ({ path }) => {
      await readForeignFile(path, 'parquet').catch((error: unknown) => {
        expect(error).toMatchObject({ code: 'damaged', path });
      });
    },
  );
});
