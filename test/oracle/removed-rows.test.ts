import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { makeSchema } from '../../engine/core/schema.js';
import { openArchive } from '../../engine/index.js';
import { answer, load } from '../engine/store/memory-archive.js';
import { queryDuckDb } from './duckdb.js';

const hourMs = 3_600_000;
const nowMs = Date.UTC(2025, 2, 1, 12);
const schema = makeSchema([
  { name: 'time', type: 'time' },
  { name: 'level', type: 'string' },
]);

it('DuckDB sees rows that rules of retention have removed by their mark, without values, and the others as they are answered', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'logstrata-removed-'));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  const archive = await openArchive(folder, { mode: 'write', role: 'test', now: () => nowMs });
  const where = [{ field: 'level', type: 'string', op: 'exact', values: ['debug'] }] as const;
  const rules = [{ where, periodMs: 24 * hourMs }];
  const retention = { periodMs: null, bytesMax: null, intervalMs: hourMs, graceMs: 0, rules };
  const store = await archive.agent('web', schema, retention);
  const levels = ['debug', 'info', null];
  await load(
    store,
    Array.from({ length: 96 }, (_, i) => [BigInt(nowMs - (96 - i) * hourMs), levels[i % 3]!]),
  );
  await store.compact();
  const answered = (await answer(store)).split('\n').slice(0, -1);
  await archive.close();
  const files = `read_parquet('${folder}/web/dt=*/*.parquet', union_by_name = true)`;
  const counts = await queryDuckDb(
    `SELECT count(*) AS rows, count(_removed) AS removed, count(level) FILTER (WHERE _removed) AS levels,
       count(time) AS times, count(DISTINCT _cursor) AS cursors FROM ${files}`,
  );
  expect(counts).toEqual([{ rows: 96n, removed: 20n, levels: 0n, times: 96n, cursors: 96n }]);
  const left = await queryDuckDb(`SELECT level FROM ${files} WHERE _removed IS NULL ORDER BY _cursor`);
  expect(left.map(({ level }) => level)).toEqual(
    answered.map((line) => (JSON.parse(line) as { level: string | null }).level),
  );
});
