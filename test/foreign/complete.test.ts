import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { readForeignFile } from '../../engine/foreign/read-foreign.js';
import { decodeForeign } from '../../engine/foreign/read-foreign.js';
import { queryAllDuckDb } from '../oracle/duckdb.js';
import { ourValue } from './duckdb-values.js';
import { readingOf, valuesOf } from './reading.js';

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'logstrata-complete-'));
});
afterAll(async () => {
  await rm(folder, { recursive: true });
});

/** Every seventh row has no value. */
const types = [
  '(18446744073709551615 - i)::UBIGINT',
  "TIME '01:02:03' + to_microseconds(i * 1001)",
  '(i * 1234567 - 10)::DECIMAL(18, 3)',
  '(i * 1234567890123 - 10)::DECIMAL(38, 20)',
  'uuid()',
  'to_months((i % 20)::INTEGER) + to_days((i % 3)::INTEGER) + to_milliseconds(i * 7001 % 90000001)',
  '[i, NULL, -i]',
  "[['a' || i], NULL, [], [NULL]]",
  "{'a': i, 'b': [{'c': 9007199254740993 + i, 'd': NULL}], 'e f': {'g': 'x', 'é': i / 3}}",
  'MAP {i: [1, 2], i + 1: NULL}',
  "MAP {'k' || i: MAP {'x': DATE '1969-12-30' + i::INTEGER}}",
  "[TIMESTAMP '1969-12-31 23:59:59.999999' + to_microseconds(i), TIMESTAMP '2024-02-29']",
  "{'time': TIME '23:59:59.5', 'uuid': '00010203-0405-0607-0809-0a0b0c0d0e0f'::UUID, 'blob': encode('é')}",
  "{'nan': ['nan'::DOUBLE, 'inf'::DOUBLE, 0.1], 'float': 0.1::FLOAT, 'dec': (-i / 8)::DECIMAL(9, 3), 'yes': true}",
  'range(i % 50)',
  "{'quote': '\"\\' || chr(1 + (i % 200)::INTEGER), 'empty': ''}",
] as const;

describe('files written by DuckDB', () => {
  const rows = 5000;
  it.each([
    ['uncompressed', 'V1'],
    ['snappy', 'V2'],
    ['gzip', 'V1'],
    ['zstd', 'V2'],
    ['brotli', 'V1'],
    ['lz4_raw', 'V2'],
  ])('have the same values with the complete decoder in %s, pages of %s', async (codec, version) => {
    const path = join(folder, `${codec}.parquet`);
    const columns = types.map((sql, i) => `CASE WHEN i % 7 = 6 THEN NULL ELSE ${sql} END AS c${i}`);
    const options = `FORMAT parquet, COMPRESSION ${codec}, PARQUET_VERSION ${version}, ROW_GROUP_SIZE 2048`;
    const [, expected] = await queryAllDuckDb([
      `COPY (SELECT ${columns.join(', ')} FROM range(${rows}) t(i)) TO '${path}' (${options})`,
      `SELECT * FROM read_parquet('${path}')`,
    ]);
    const file = await readForeignFile(path, 'parquet');
    expect(file.columns.map(({ way }) => way)).toEqual(types.map(() => 'complete'));
    for (const [i, column] of file.columns.entries()) {
      const values = await valuesOf(file, path, i, 1000);
      expect(values, column.stored).toEqual(expected!.map((row) => ourValue(row[column.name]!, column)));
    }
  });

  it('keep names and keys that a JavaScript object would reorder or treat specially', async () => {
    const path = join(folder, 'names.parquet');
    const struct = "{'b': 1, '__proto__': [2], '1': {'toString': 3, '0': 4}}";
    const map = "MAP {'2': 'x', '__proto__': 'y', '1': 'z'}";
    await queryAllDuckDb([`COPY (SELECT ${struct} AS s, ${map} AS m) TO '${path}' (FORMAT parquet)`]);
    const file = await readForeignFile(path, 'parquet');
    expect(await valuesOf(file, path, 0)).toEqual(['{"b":1,"__proto__":[2],"1":{"toString":3,"0":4}}']);
    expect(await valuesOf(file, path, 1)).toEqual(['{"2":"x","__proto__":"y","1":"z"}']);
  });

  it('return the wanted span, the spans decoded with it, and the checksum of the bytes read', async () => {
    const path = join(folder, 'zstd.parquet');
    const file = await readForeignFile(path, 'parquet');
    const read = readingOf(file, path, 6, 1, 500);
    const first = await decodeForeign(read);
    const last = await decodeForeign({ ...read, wanted: read.spans.length - 1 });
    expect(first.spans.map(({ span }) => span)).toEqual(read.spans.map((_, span) => span));
    expect(last).toEqual(first);
    expect(first.bytesRead).toBe(read.chunk.bytes);
    expect(first.checksum).not.toBeNull();
  });

  it('are refused if another file has replaced the described one', async () => {
    const [one, other] = [join(folder, 'one.parquet'), join(folder, 'other.parquet')];
    await queryAllDuckDb([
      `COPY (SELECT [i] AS c FROM range(10) t(i)) TO '${one}' (FORMAT parquet)`,
      `COPY (SELECT [i] AS c FROM range(9) t(i)) TO '${other}' (FORMAT parquet)`,
    ]);
    const read = readingOf(await readForeignFile(one, 'parquet'), other, 0, 0);
    await expect(decodeForeign(read)).rejects.toMatchObject({ code: 'damaged', path: other });
  });
});
