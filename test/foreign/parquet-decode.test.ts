import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { decodeForeign } from '../../engine/foreign/read-foreign.js';
import { readForeignFile } from '../../engine/foreign/read-foreign.js';
import { crc32 } from '../../engine/kernels/crc32.js';
import { queryAllDuckDb } from '../oracle/duckdb.js';
import { ourValue, type OurValue } from './duckdb-values.js';
import { missingCorpus, parquetCorpus } from './foreign-samples.js';
import { columnValues, readingOf, valuesOf } from './reading.js';
import { describeUnless, itUnless } from '../needs.js';

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'logstrata-decode-'));
});
afterAll(async () => {
  await rm(folder, { recursive: true });
});

/** Columns of every type that the fast decoder reads, with values that repeat and values that don't, with nulls and without. */
const columns: readonly string[] = [
  'i',
  '(i * 7919 % 1000003) - 500000',
  'i % 17',
  '(i % 200 - 100)::TINYINT',
  '(i % 60000)::USMALLINT',
  '(4294967295 - i)::UINTEGER',
  'i::UBIGINT',
  '(i - 5000)::INTEGER',
  'CASE WHEN i % 3 = 0 THEN NULL ELSE i * i END',
  'CASE WHEN i % 1000 < 990 THEN NULL ELSE i END',
  'NULL::BIGINT',
  'i / 7',
  '(i / 7)::FLOAT',
  "CASE i % 5 WHEN 0 THEN 'NaN'::DOUBLE WHEN 1 THEN '-Infinity'::DOUBLE WHEN 2 THEN NULL ELSE i END",
  "CASE i % 5 WHEN 0 THEN 'Infinity'::FLOAT ELSE i % 7 END",
  'i % 2 = 0',
  'CASE WHEN i % 7 = 0 THEN NULL ELSE i % 3 = 0 END',
  "DATE '1969-12-01' + (i % 90)::INTEGER",
  "TIMESTAMP '1969-12-31 23:59:50' + to_microseconds(i * 1117)",
  "TIMESTAMPTZ '2024-01-01 00:00:00+00' + to_microseconds(i * 999)",
  "TIMESTAMP_MS '2024-01-01 00:00:00.123'",
  'make_timestamp_ns(1700000000000000000 + i * 1234567)',
  "TIMESTAMP_S '2024-01-01 00:00:01'",
  '(i / 100)::DECIMAL(9, 2)',
  'i::DECIMAL(15, 0)',
  "'message ' || i || ' of ' || hash(i)",
  "'host-' || (i % 40)",
  "CASE WHEN i % 4 = 0 THEN NULL WHEN i % 4 = 1 THEN '' ELSE 'zażółć ' || (i % 3000) END",
  "CASE WHEN i % 500 = 0 THEN repeat('long ', 2000) ELSE 'short' || i END",
  "CASE WHEN i % 9 = 0 THEN NULL ELSE unhex('c3') || unhex('28ff') || encode((i % 70)::VARCHAR) END",
];

describe('a file written by DuckDB', () => {
  const codecs = ['uncompressed', 'snappy', 'gzip', 'zstd', 'lz4_raw'] as const;
  const cases = codecs.flatMap((codec) => (['V1', 'V2'] as const).map((version) => ({ codec, version })));

  it.each(cases)('has the values that DuckDB reads: $codec, $version', async ({ codec, version }) => {
    const path = join(folder, `${codec}-${version}.parquet`);
    const selected = columns.map((sql, i) => `${sql} AS c${i}`).join(', ');
    const options = `FORMAT parquet, COMPRESSION ${codec}, PARQUET_VERSION ${version}, ROW_GROUP_SIZE 6144`;
    await queryAllDuckDb([`COPY (SELECT ${selected} FROM range(10000) t(i)) TO '${path}' (${options})`]);
    const file = await readForeignFile(path, 'parquet');
    const [rows] = await queryAllDuckDb([`SELECT * FROM read_parquet('${path}')`]);
    expect(file.columns.filter(({ way }) => way !== 'fast')).toEqual([]);
    for (const [i, column] of file.columns.entries()) {
      const values = await valuesOf(file, path, i, 1000);
      expect(values, `${columns[i]!} as ${column.stored}`).toEqual(
        rows!.map((row) => ourValue(row[column.name]!, column)),
      );
    }
  });
});

describe('a read of a column', () => {
  it('returns the wanted span and the spans decoded with it, and the page locations', async () => {
    const path = join(folder, 'spans.parquet');
    const options = 'FORMAT parquet, COMPRESSION snappy, ROW_GROUP_SIZE 100000';
    await queryAllDuckDb([
      `COPY (SELECT i, 'host' || (i % 9) AS h FROM range(100000) t(i)) TO '${path}' (${options})`,
    ]);
    const file = await readForeignFile(path, 'parquet');
    const chunk = file.rowGroups[0]!.chunks[0]!;
    const first = await decodeForeign({ ...readingOf(file, path, 0, 0), wanted: 1 });
    expect(first.spans.map(({ span, column }) => [span, column.length])).toEqual([
      [0, 65_536],
      [1, 34_464],
    ]);
    expect(columnValues(first.spans[1]!.column)[0]).toBe(65_536n);
    const bytes = (await readFile(path)).subarray(chunk.offset, chunk.offset + chunk.bytes);
    expect(first).toMatchObject({ checksum: crc32(bytes), bytesRead: chunk.bytes, replaced: 0 });
    expect(first.pages!.firstRows).toEqual([0, 100_000]);
    const again = await decodeForeign({ ...readingOf(file, path, 0, 0), pages: first.pages });
    expect(again.checksum).toBeNull();
    expect(again.spans.map(({ column }) => columnValues(column))).toEqual(
      first.spans.map(({ column }) => columnValues(column)),
    );
    const coded = await decodeForeign(readingOf(file, path, 1, 0));
    expect(coded.spans[0]!.column).toMatchObject({ kind: 'dictionary', values: { length: 9 } });
  });

  itUnless(missingCorpus, 'reads only the pages of the span if their locations are known', async () => {
    const { path } = parquetCorpus('data').find(({ name }) => name === 'alltypes_tiny_pages.parquet')!;
    const file = await readForeignFile(path, 'parquet');
    const whole = await decodeForeign(readingOf(file, path, 0, 0));
    expect(whole.pages!.offsets.length).toBeGreaterThan(50);
    const reading = { ...readingOf(file, path, 0, 0, 1000), wanted: 3, pages: whole.pages };
    const part = await decodeForeign(reading);
    expect(part.spans.map(({ span }) => span)).toEqual([3]);
    expect(part.bytesRead).toBeLessThan(reading.chunk.bytes / 2);
    expect(columnValues(part.spans[0]!.column)).toEqual(
      columnValues(whole.spans[0]!.column).slice(3000, 4000),
    );
  });

  it('replaces invalid UTF-8 by U+FFFD, and counts the replacements', async () => {
    const path = join(folder, 'bytes.parquet');
    // Two strings that are valid UTF-8 only together, one that is invalid, and one that is valid.
    const blobs = "[unhex('61c5'), unhex('bc'), unhex('ff61ff'), unhex('c5bc')]";
    await queryAllDuckDb([`COPY (SELECT unnest(${blobs}) AS b) TO '${path}' (FORMAT parquet)`]);
    const file = await readForeignFile(path, 'parquet');
    const { spans, replaced } = await decodeForeign(readingOf(file, path, 0, 0));
    expect(columnValues(spans[0]!.column)).toEqual(['a\ufffd', '\ufffd', '\ufffda\ufffd', 'ż']);
    expect(replaced).toBe(4);
  });
});

describeUnless(missingCorpus, 'the files with which the Parquet project tests readers', () => {
  // The same values in older LZ4 and in LZ4_RAW.
  it.each([
    ['hadoop_lz4_compressed', 'lz4_raw_compressed'],
    ['non_hadoop_lz4_compressed', 'lz4_raw_compressed'],
    ['hadoop_lz4_compressed_larger', 'lz4_raw_compressed_larger'],
  ])('%s has the values of %s', async (name, otherName) => {
    const [own, other] = await Promise.all([name, otherName].map((each) => allValues(pathOf(each))));
    expect([...own!.values()]).toEqual([...other!.values()]);
  });

  it('byte_stream_split_extended has the same values in two encodings', async () => {
    const values = await allValues(pathOf('byte_stream_split_extended.gzip'));
    const split = [...values.keys()].filter((name) => name.endsWith('_byte_stream_split'));
    expect(split.length).toBeGreaterThan(4);
    for (const name of split)
      expect(values.get(name), name).toEqual(values.get(name.replace('_byte_stream_split', '_plain')));
  });

  it.each(parquetCorpus('data').filter(({ name }) => name.includes('corrupt-checksum')))(
    '$name is refused',
    async ({ path }) => {
      await expect(allValues(path)).rejects.toMatchObject({ code: 'damaged', path });
    },
  );

  function pathOf(name: string): string {
    return parquetCorpus('data').find((sample) => sample.name === `${name}.parquet`)!.path;
  }

  async function allValues(path: string): Promise<Map<string, OurValue[]>> {
    const file = await readForeignFile(path, 'parquet');
    const values = new Map<string, OurValue[]>();
    for (const [i, { name, way }] of file.columns.entries())
      if (way === 'fast') values.set(name, await valuesOf(file, path, i));
    return values;
  }
});
