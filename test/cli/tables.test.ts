import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { DeltaLake, hour } from '../agents/delta-table.js';
import { IcebergLake } from '../agents/iceberg-table.js';
import { run } from './here.js';

const columns = { ts: { type: 'timestamp', id: 1 }, n: { type: 'long', id: 2 } } as const;

it.each([
  ['delta', DeltaLake],
  ['iceberg', IcebergLake],
])('a table (%s) is found by agent new, shown by check, and answered after index', async (format, Lake) => {
  const lake = new Lake(columns);
  const action = lake.add([0, 1, 2].map((n) => ({ ts: hour + n, n })));
  lake.commit(action, lake.add([{ ts: hour + 3, n: 3 }]));
  lake.commit(...lake.deleting(action, [1]));
  const { folder } = lake;
  if (format === 'iceberg') rmSync(join(lake.root, '_delta_log'), { recursive: true });
  mkdirSync(join(folder, 'agents'));
  const at = ['--agents', 'agents', '--data', 'data'];
  const made = await run(folder, [...at, 'agent', 'new', 'web', '--log', 'table/']);
  expect(made.stderr).toBe('');
  expect(readFileSync(join(folder, 'agents/web.yaml'), 'utf8')).toContain(
    `archive: { path: '${lake.root}', format: ${format} }`,
  );
  const checked = await run(folder, [...at, 'check']);
  expect(checked.code).toBe(0);
  expect(checked.stdout).toMatch(
    /archive: 2 files of parquet, \S+ k?B\w*, 3 rows\n|archive: 2 files of parquet.*, 3 rows\n/,
  );
  expect(checked.stdout).toContain(`the table is at ${lake.newestVersion}\n`);
  const indexed = await run(folder, [...at, 'index', 'web']);
  expect(indexed.stdout).toContain(`table    ${lake.newestVersion}\nattached 2 files, 3 rows\n`);
  const { stdout } = await run(folder, [...at, 'query', 'web', '--json']);
  expect((JSON.parse(stdout) as { n: number }[]).map(({ n }) => n)).toEqual([0, 2, 3]);
  expect((await run(folder, [...at, 'stats', 'web'])).stdout).toMatch(
    /files in place +2 files, .*, 3 records/,
  );
  expect((await run(folder, [...at, 'verify'])).code).toBe(0);
  // The pattern of its files is refused, with what to write instead.
  writeFileSync(join(folder, 'agents/web.yaml'), "archive: { path: '../table/**/*.parquet' }\n");
  rmSync(join(folder, 'data'), { recursive: true });
  const refused = await run(folder, [...at, 'check']);
  expect(refused.stderr).toContain(
    `so name the folder with its format: archive: { path: '${lake.root}', format: ${format} }`,
  );
});
