import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import type { ForeignFile } from '../../engine/foreign/foreign-file.js';
import { readForeignFile } from '../../engine/foreign/read-foreign.js';
import { queryDuckDb } from '../oracle/duckdb.js';
import { ourValue, type OurValue } from './duckdb-values.js';
import { missingCorpus, parquetCorpus } from './foreign-samples.js';
import { valuesOf } from './reading.js';
import { describeUnless } from '../needs.js';

/** Files whose pages are encrypted. */
const encrypted = /\.parquet\.encrypted$/;

/** Where values differ from those of DuckDB, or DuckDB has none: the columns by name, or all of them, and the reason. */
const exceptions: Record<string, { readonly columns?: readonly string[]; readonly reason: string }> = {
  'byte_stream_split_extended.gzip.parquet': {
    reason: 'read; DuckDB refuses BYTE_STREAM_SPLIT of integers',
  },
  'datapage_v1-corrupt-checksum.parquet': {
    reason: 'damaged: pages fail their checksum, which DuckDB does not look at',
  },
  'hadoop_lz4_compressed.parquet': { reason: 'read; DuckDB refuses the older LZ4' },
  'hadoop_lz4_compressed_larger.parquet': { reason: 'read; DuckDB refuses the older LZ4' },
  'int96_from_spark.parquet': {
    reason: 'as Spark wrote it; DuckDB gives another time for the year 290000',
  },
  'large_string_map.brotli.parquet': { reason: 'over the bound: a page of a gigabyte' },
  'map_no_value.parquet': { reason: 'read; DuckDB refuses maps without values' },
  'non_hadoop_lz4_compressed.parquet': { reason: 'read; DuckDB refuses the older LZ4' },
  'rle-dict-uncompressed-corrupt-checksum.parquet': {
    reason: 'damaged: pages fail their checksum, which DuckDB does not look at',
  },
};

const files = parquetCorpus('data').filter(({ name }) => !encrypted.test(name));

/** The values of a column, read by the complete decoder even if the fast one could read it. */
async function completely(file: ForeignFile, path: string, name: string): Promise<OurValue[]> {
  const index = file.columns.findIndex((column) => column.name === name);
  const columns = file.columns.map((column) => ({ ...column, way: 'complete' as const }));
  return await valuesOf({ ...file, columns }, path, index);
}

describeUnless(missingCorpus, 'the files with which the Parquet project tests readers', () => {
  const compared = files.filter(
    ({ name }) => exceptions[name] === undefined || 'columns' in exceptions[name],
  );

  it.each(compared)('$name has the values that DuckDB reads, with both decoders', async ({ name, path }) => {
    const file = await readForeignFile(path, 'parquet');
    const rows = await queryDuckDb(`SELECT * FROM read_parquet('${path}')`);
    for (const [i, column] of file.columns.entries()) {
      if (exceptions[name]?.columns?.includes(column.name) === true) continue;
      // DuckDB renames columns whose names differ only in case.
      const key = Object.keys(rows[0] ?? {})[i]!;
      const expected = rows.map((row) => ourValue(row[key]!, column));
      expect(await completely(file, path, column.name), column.name).toEqual(expected);
      if (column.way === 'fast')
        expect(await valuesOf(file, path, i, 1000), `${column.name}, fast`).toEqual(expected);
    }
  });

  it.each([
    ['datapage_v1-corrupt-checksum.parquet', 'a', 'damaged', /does not match its checksum/],
    [
      'rle-dict-uncompressed-corrupt-checksum.parquet',
      'binary_field',
      'damaged',
      /does not match its checksum/,
    ],
    ['large_string_map.brotli.parquet', 'arr', 'limit', /the page has 1073741828 bytes/],
  ])('%s is refused by path, column and place', async (name, column, code, message) => {
    const { path } = files.find((file) => file.name === name)!;
    const file = await readForeignFile(path, 'parquet');
    const error: unknown = await completely(file, path, column).catch((caught: unknown) => caught);
    expect(error).toMatchObject({ code, path, message: expect.stringMatching(message) as string });
    expect((error as Error).message).toContain(`column "${column}" of row group 0`);
  });

  it('files that DuckDB does not read have the expected values', async () => {
    const values = async (name: string, column: string): Promise<OurValue[]> => {
      const { path } = files.find((file) => file.name === name)!;
      return await completely(await readForeignFile(path, 'parquet'), path, column);
    };
    const extended = 'byte_stream_split_extended.gzip.parquet';
    for (const type of ['float16', 'flba5', 'decimal'])
      expect(await values(extended, `${type}_byte_stream_split`)).toEqual(
        await values(extended, `${type}_plain`),
      );
    for (const name of ['hadoop_lz4_compressed.parquet', 'non_hadoop_lz4_compressed.parquet'])
      for (const column of ['c0', 'c1', 'v11'])
        expect(await values(name, column)).toEqual(await values('lz4_raw_compressed.parquet', column));
    expect(await values('hadoop_lz4_compressed_larger.parquet', 'a')).toEqual(
      await values('lz4_raw_compressed_larger.parquet', 'a'),
    );
    expect(await values('int96_from_spark.parquet', 'a')).toEqual([
      1704141296123n,
      1704070800000n,
      253402225200000n,
      1735599600000n,
      null,
      9089380393200000n,
    ]);
    expect(await values('map_no_value.parquet', 'my_list')).toEqual(['[1,2,3]', '[4,5,6]', '[7,8,9]']);
  });

  it('files of the corpus, and those that DuckDB reads otherwise, are those of docs/archives-corpus.md', async () => {
    let fast = 0;
    for (const { path } of files) {
      const { columns } = await readForeignFile(path, 'parquet');
      if (columns.every(({ way }) => way === 'fast')) fast++;
    }
    const lines = Object.entries(exceptions).map(([name, { columns, reason }]) => {
      const named = columns?.map((column) => `\`${column}\``).join(', ');
      return `| \`${name}\` | ${named === undefined ? '' : `${named}: `}${reason} |`;
    });
    const page = readFileSync(join(import.meta.dirname, '../../docs/archives-corpus.md'), 'utf8');
    expect(page.split('\n').filter((line) => line.startsWith('| `'))).toEqual(lines);
    expect(page).toContain(`Of ${files.length} files, ${fast} are read by our own kernels alone`);
  });
});
