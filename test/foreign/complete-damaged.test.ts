import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { caseCount } from '../cases.js';
import { decodeForeign } from '../../engine/foreign/read-foreign.js';
import { readForeignFile } from '../../engine/foreign/read-foreign.js';
import { LogstrataError } from '../../engine/core/errors.js';
import { queryAllDuckDb } from '../oracle/duckdb.js';
import { readDamagedCopies } from './damaged-files.js';
import { missingCorpus, parquetCorpus } from './foreign-samples.js';
import { readingOf } from './reading.js';
import { itUnless } from '../needs.js';

const numRuns = caseCount(150, 10_000);
/** The footer's length and the magic number. */
const ending = 8;

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'logstrata-damaged-'));
});
afterAll(async () => {
  await rm(folder, { recursive: true });
});

/** Small files of many types, codecs and encodings. */
async function samples(): Promise<Uint8Array[]> {
  const columns = [
    'i',
    "'text ' || i AS s",
    '[i, NULL] AS l',
    "{'a': [{'b': i}], 'm': MAP {'k': i}} AS n",
    'uuid() AS u',
    '(i / 7)::DECIMAL(20, 3) AS d',
    "TIME '01:02:03' AS t",
    'i::DOUBLE AS f',
  ];
  const paths: string[] = [];
  const statements: string[] = [];
  for (const codec of ['uncompressed', 'snappy', 'gzip', 'zstd', 'brotli', 'lz4_raw'])
    for (const version of ['V1', 'V2']) {
      const path = join(folder, `${codec}-${version}.parquet`);
      const options = `FORMAT parquet, COMPRESSION ${codec}, PARQUET_VERSION ${version}`;
      statements.push(`COPY (SELECT ${columns.join(', ')} FROM range(300) t(i)) TO '${path}' (${options})`);
      paths.push(path);
    }
  await queryAllDuckDb(statements);
  const corpus = parquetCorpus('data').filter(({ name }) =>
    /nested|list|map|null|dictionary|byte_array|int96|delta_byte|rle|float16/.test(name),
  );
  const found = await Promise.all(
    [...paths, ...corpus.map(({ path }) => path)].map((path) => readFile(path)),
  );
  return found.filter(({ length }) => length < 100_000);
}

describe('damaged Parquet files', () => {
  it('are read, or refused with an error that names the file, in limited time and memory', async () => {
    await readDamagedCopies(await samples(), 'parquet', join(folder, 'copy.parquet'), ending, numRuns);
  });

  for (const { name, path } of parquetCorpus('bad_data'))
    itUnless(missingCorpus, `${name} is read, or refused with an error that names it`, async () => {
      const named = (error: unknown): void => {
        expect(error).toBeInstanceOf(LogstrataError);
        expect(error).toMatchObject({ path });
      };
      const file = await readForeignFile(path, 'parquet').catch(named);
      for (const [rowGroup] of file?.rowGroups.entries() ?? [])
        for (const column of file!.columns.keys()) {
          const read = readingOf(file!, path, column, rowGroup);
          if (read.spans.length > 0)
            await decodeForeign({ ...read, column: { ...read.column, way: 'complete' } }).catch(named);
        }
    });
});
