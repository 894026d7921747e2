import * as arrow from 'apache-arrow';
import { parquetWriteBuffer } from 'hyparquet-writer';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { tableOf } from '../foreign/arrow-tables.js';
import { run } from './here.js';
import { workFolder } from './process.js';

const hours = [8, 9, 10];

/** The bytes of a file with three rows, whose column `at` has times in some form. */
function parquetOf(at: readonly unknown[], type: 'TIMESTAMP' | 'STRING' | 'INT64'): Uint8Array {
  const columnData = [
    { name: 'n', data: [1, 2, 3], type: 'INT32' as const },
    { name: 'at', data: [...at], type },
    { name: '日本', data: ['a', 'b', 'c'], type: 'STRING' as const },
  ];
  return new Uint8Array(parquetWriteBuffer({ columnData }));
}

const arrowBytes = arrow.tableToIPC(
  tableOf(
    {
      at: {
        type: new arrow.TimestampMillisecond(),
        values: hours.map((hour) => Date.UTC(2026, 10, 20, hour)),
      },
      n: { type: new arrow.Int32(), values: [1, 2, 3] },
    },
    10,
  ),
  'file',
);

const times = hours.map((hour) => new Date(Date.UTC(2026, 10, 20, hour)));

describe('logstrata agent new for Parquet and Arrow files', () => {
  it.each([
    ['a folder', 'lake', 'day=1/a.parquet', parquetOf(times, 'TIMESTAMP'), ''],
    ['a file', 'lake/a[1].parquet', 'a[1].parquet', parquetOf(times, 'TIMESTAMP'), ''],
    ['a file without an ending', 'lake/part-0', 'part-0', parquetOf(times, 'TIMESTAMP'), ''],
    ['a pattern', 'lake/*.feather', 'a.feather', arrowBytes, ''],
    [
      'a folder with texts as times',
      'lake',
      'a.parquet',
      parquetOf(
        hours.map((hour) => `20261120T${String(hour).padStart(2, '0')}0000Z`),
        'STRING',
      ),
      'timestamp: { format: rfc3339 }',
    ],
    [
      'a folder with numbers as times',
      'lake',
      'a.parquet',
      parquetOf(
        times.map((time) => BigInt(time.getTime())),
        'INT64',
      ),
      'unit: ms',
    ],
  ])('writes the file of an agent for %s, which is served as it is', async (_, named, name, bytes, time) => {
    const folder = workFolder();
    const path = join(folder, 'lake', name);
    mkdirSync(join(path, '..'), { recursive: true });
    writeFileSync(path, bytes);
    const written = await run(folder, ['agent', 'new', 'lake', '--log', join(folder, named)]);
    expect([written.code, written.stderr]).toEqual([0, '']);
    const text = readFileSync(join(folder, 'agents/lake.yaml'), 'utf8');
    expect(text).toContain('archive: { path: ');
    expect(text.includes('fields:')).toBe(time !== '');
    expect(text).toContain(time);
    const isParquet = !named.endsWith('.feather');
    const note = 'the name of the column "日本" has none of a to z and 0 to 9, so its field is called column';
    expect(written.stdout.includes(`note: ${note}`)).toBe(isParquet);
    const checked = await run(folder, ['check', 'lake', '--json']);
    const { fields } = JSON.parse(checked.stdout) as {
      fields: { name: string; type: string; source: string }[];
    };
    expect(fields[0]).toMatchObject({ name: 'at', type: 'time', source: 'at' });
    expect(fields.some((field) => field.name === 'column' && field.source === '日本')).toBe(isParquet);
    expect((await run(folder, ['index', 'lake'])).code).toBe(0);
    const { stdout } = await run(folder, ['query', 'lake', 'at__since=2026-11-20 09:00:00', 'fields=n']);
    const numbers = stdout
      .trimEnd()
      .split('\n')
      .map((line) => (JSON.parse(line) as { n: number }).n);
    expect(numbers).toEqual([2, 3]);
  });

  it('names what check would, prints without writing, and refuses a table', async () => {
    const folder = workFolder();
    mkdirSync(join(folder, 'lake'));
    writeFileSync(join(folder, 'lake/1.parquet'), parquetOf(times, 'TIMESTAMP'));
    const columnData = [{ name: 'n', data: [5], type: 'INT32' as const }];
    writeFileSync(join(folder, 'lake/2.parquet'), new Uint8Array(parquetWriteBuffer({ columnData })));
    const printed = await run(folder, ['agent', 'new', 'lake', '--log', join(folder, 'lake'), '--print']);
    expect(printed.stdout).toContain(`archive: { path: '${folder}/lake/**/*.parquet' }\n`);
    expect(printed.stderr).toContain('2.parquet has no times in the column "at", which places records');
    const checked = await run(folder, ['check', 'lake']);
    expect(checked.code).toBe(1);
    expect(checked.stderr).toContain('there is no agent "lake"');
    mkdirSync(join(folder, 'lake/.hoodie'));
    writeFileSync(join(folder, 'lake/.hoodie/hoodie.properties'), '');
    const refused = await run(folder, ['agent', 'new', 'lake', '--log', join(folder, 'lake')]);
    expect([refused.code, refused.stderr]).toEqual([
      1,
      expect.stringContaining('is the log of a Hudi table'),
    ]);
  });
});
