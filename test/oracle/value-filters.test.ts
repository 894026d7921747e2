import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { batchFromRows } from '../model/rows.js';
import { openArchive } from '../../engine/index.js';
import { makeSchema } from '../../engine/core/schema.js';
import { queryAllDuckDb } from './duckdb.js';

const dayMs = Date.UTC(2026, 10, 20);
const rows = 70_000;

/** Distinct ids, and 64-bit integers. */
const idOf = (i: number): string => `id-${(BigInt(i) * 0x9e3779b97f4a7c15n) & ((1n << 64n) - 1n)}`;
const numberOf = (i: number): bigint => BigInt.asIntN(64, BigInt(i) * 0x9e3779b97f4a7c15n);

let folder = '';
let file = '';

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'logstrata-oracle-'));
  const schema = makeSchema([
    { name: 'time', type: 'time' },
    { name: 'id', type: 'string' },
    { name: 'trace', type: 'int' },
  ]);
  const archive = await openArchive(folder, { mode: 'write', role: 'test', now: () => dayMs + 86_000_000 });
  const session = await (await archive.agent('web', schema)).beginLoad();
  for (let from = 0; from < rows; from += 10_000) {
    const batch = Array.from({ length: 10_000 }, (_, k) => {
      const i = from + k;
      return [dayMs + i * 1000, idOf(i), i % 7 === 0 ? null : numberOf(i)];
    });
    await session.append(batchFromRows(schema, batch), 0);
  }
  await session.commit({
    checkpoints: [],
    counters: { unreadableValues: 0, replacedBytes: 0, inputBytes: 0 },
  });
  await archive.close();
  const day = join(folder, 'web', 'dt=2026-11-20');
  file = join(day, (await readdir(day))[0]!);
});

afterAll(() => rm(folder, { recursive: true, force: true }));

it('DuckDB finds the value filters, and skips row groups by them where they are right', async () => {
  const probe = (column: string, value: string): string =>
    `SELECT row_group_id AS number, bloom_filter_excludes AS excluded FROM parquet_bloom_probe('${file}', '${column}', ${value})`;
  const there = [5, 17_000, 65_535, 65_536, 69_999];
  const absent = Array.from({ length: 200 }, (_, i) => rows + i);
  const groupOf = (i: number): bigint => (i < 65_536 ? 0n : 1n);
  const answers = await queryAllDuckDb([
    ...there.map((i) => probe('id', `'${idOf(i)}'`)),
    ...there.filter((i) => i % 7 !== 0).map((i) => probe('trace', `${numberOf(i)}`)),
    ...absent.map((i) => probe('id', `'${idOf(i)}'`)),
    ...absent.map((i) => probe('trace', `${numberOf(i)}`)),
  ]);
  const known = [...there, ...there.filter((i) => i % 7 !== 0)];
  for (const [k, i] of known.entries()) {
    const found = answers[k]!.find(({ number }) => number === groupOf(i));
    expect(found, `value ${i}`).toMatchObject({ excluded: false });
  }
  const excluded = answers
    .slice(known.length)
    .flat()
    .filter((row) => row['excluded'] === true);
  expect(excluded.length).toBeGreaterThan(4 * absent.length * 0.97);
});

it('DuckDB answers filters on the columns that have value filters', async () => {
  const [counted] = await queryAllDuckDb([
    `SELECT count(*) AS n FROM '${file}' WHERE id = '${idOf(123)}' AND trace = ${numberOf(123)}`,
  ]);
  expect(counted).toEqual([{ n: 1n }]);
});
