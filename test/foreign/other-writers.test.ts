import { mkdtemp, rm } from 'node:fs/promises';
import { readFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { readForeignFile } from '../../engine/foreign/read-foreign.js';
import { queryDuckDb, type DuckDbRow } from '../oracle/duckdb.js';
import { ourValue } from './duckdb-values.js';
import { otherWriters } from './other-writers.js';
import { valuesOf } from './reading.js';
import { itUnless } from '../needs.js';

/** Codecs that DuckDB does not read: the values are then compared with the same columns without compression. */
const refusedByDuckDb = new Set(['LZ4']);

const page = readFileSync(join(import.meta.dirname, '../../docs/archives-corpus.md'), 'utf8');

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'logstrata-writers-'));
});
afterAll(async () => {
  await rm(folder, { recursive: true, force: true });
});

describe.each(otherWriters)('files written by $name', ({ name, codecs, pages, write, whyNot }) => {
  const kinds = codecs.flatMap((codec) => pages.map((kind) => [codec, kind] as const));

  for (const [codec, kind] of kinds)
    itUnless(whyNot ?? null, `in ${codec}, ${kind}, have the values that DuckDB reads`, async () => {
      const path = join(folder, `${name}.parquet`);
      let rows: DuckDbRow[] | undefined;
      if (refusedByDuckDb.has(codec)) {
        await write(path, 'UNCOMPRESSED', kind);
        rows = await queryDuckDb(`SELECT * FROM read_parquet('${path}')`);
      }
      await write(path, codec, kind);
      rows ??= await queryDuckDb(`SELECT * FROM read_parquet('${path}')`);
      const file = await readForeignFile(path, 'parquet');
      expect(file.rowGroups.length).toBeGreaterThan(1);
      for (const [i, column] of file.columns.entries()) {
        const expected = rows.map((row) => ourValue(row[column.name]!, column));
        expect(await valuesOf(file, path, i, 1000), `${column.name} (${column.way})`).toEqual(expected);
      }
    });

  it('are listed in docs/archives-corpus.md', () => {
    expect(page).toContain(`| ${name} | ${codecs.join(', ')} | ${pages.join('; ')} |`);
  });
});
