import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { parquetReadObjects } from 'hyparquet';
import { describe, expect, it } from 'vitest';
import { openDecompressor } from '../../engine/parquet/compression.js';
import { run } from './here.js';
import { recordsOf, start, workFolder, type Finished } from './process.js';

const agentFile = `fields:
  - { name: time, timestamp: { format: rfc3339 } }
  - { name: n, type: int }
file: { path: 'logs/shop\\.log', format: json }
`;

/** A folder with an agent, and a log of one line for each of the times. */
function folderOf(times: readonly string[]): string {
  const folder = workFolder();
  writeFileSync(join(folder, 'agents/shop.yaml'), agentFile);
  const lines = times.map((time, n) => `${JSON.stringify({ time, n })}\n`);
  writeFileSync(join(folder, 'shop.log'), lines.join(''));
  return folder;
}

/** Runs a command whose clock is `aheadMs` ahead of the machine's, on all of its threads. */
function runAhead(
  folder: string,
  aheadMs: number,
  args: readonly string[],
  input: string,
): Promise<Finished> {
  const clock = join(folder, 'clock.mjs');
  writeFileSync(clock, `const now = Date.now; Date.now = () => now() + ${aheadMs};\n`);
  const { child, finished } = start(folder, args, { NODE_OPTIONS: `--import=${pathToFileURL(clock).href}` });
  child.stdin.end(input);
  return finished;
}

describe('a clock before 1970', () => {
  it('stores records, and leaves an archive that can be read and written once the clock is right', async () => {
    const folder = folderOf(['1955-11-05T06:00:00Z', '2026-11-20T12:00:00Z']);
    const untilThen = Date.UTC(1960, 0, 1) - Date.now();
    const streamed = '{"time":"2026-11-20T12:00:01Z","n":2}\n{"n":3}\n';
    const stored = await runAhead(folder, untilThen, ['load', 'shop', '-'], streamed);
    expect(stored).toMatchObject({ code: 0 });
    const loaded = await runAhead(folder, untilThen, ['load', 'shop', 'shop.log'], '');
    expect(loaded).toMatchObject({ code: 0 });
    expect((await run(folder, ['load', 'shop', '-'], '{"time":"2026-11-20T12:00:02Z","n":4}\n')).code).toBe(
      0,
    );

    const { stdout, stderr } = await run(folder, ['query', 'shop']);
    expect(stderr).toBe('');
    const records = recordsOf(stdout);
    expect(records.map(({ n }) => n)).toEqual([2, 3, 0, 1, 4]);
    expect(records[2]).toMatchObject({ time: Date.UTC(1955, 10, 5, 6) });
    expect(records[3]).toMatchObject({ time: Date.UTC(2026, 10, 20, 12) });
    // All are in the first possible hour, except for the one that was stored when the clock was right.
    const hours = records.map(({ _cursor }) => String(_cursor).slice(0, 6));
    expect(hours.slice(0, 4)).toEqual(['000001', '000001', '000001', '000001']);
    expect(hours[4]! > '000001').toBe(true);
    expect((await run(folder, ['verify'])).code).toBe(0);
  });
});

it('a clock that was ahead is told of, and remove --ahead lets new records be placed by the clock again', async () => {
  const folder = folderOf([]);
  const century = 74 * 365 * 86_400_000;
  const line = (ms: number, n: number): string =>
    `${JSON.stringify({ time: new Date(ms).toISOString(), n })}\n`;
  await runAhead(folder, century, ['load', 'shop', '-'], line(Date.now() + century - 5000, 0));
  const stats = await run(folder, ['stats', 'shop']);
  expect(stats.stdout).toContain('warning: agent shop: its newest hour is 2');
  expect(stats.stdout).toContain('"logstrata remove shop --ahead"');
  const removed = await run(folder, ['remove', 'shop', '--ahead', '--yes']);
  expect(removed.stderr).toContain('1 record of agent shop');
  expect(removed.stderr).toContain('new records will be placed by it');
  expect(removed.stdout).toBe('removed 1 record of agent shop\n');
  expect((await run(folder, ['remove', 'shop', '--ahead', '--yes'])).stdout).toContain('nothing to remove');
  expect((await run(folder, ['stats', 'shop'])).stdout).not.toContain('warning');
  expect((await run(folder, ['remove', 'shop', '--ahead', '--load', 'x'])).code).toBe(2);
});

describe('times long ago', () => {
  const times = [
    '0001-01-01T00:00:00Z',
    '1582-10-04T12:00:00Z',
    // The Gregorian calendar is applied to these days too, which did not exist in 1582.
    '1582-10-05T00:00:00Z',
    '1582-10-14T23:59:59.999Z',
    '1582-10-15T00:00:00Z',
    '1969-12-31T23:59:59.999Z',
  ];

  it('are answered, filtered and exported unchanged', async () => {
    const folder = folderOf(times);
    expect((await run(folder, ['load', 'shop', 'shop.log'])).code).toBe(0);
    const numbers = async (...filters: string[]): Promise<unknown[]> =>
      recordsOf((await run(folder, ['query', 'shop', ...filters])).stdout).map(({ n }) => n);
    expect(await numbers('time__since=1582-10-05', 'time__until=1582-10-15')).toEqual([2, 3]);
    expect(await numbers('time__since=1582-10-15', 'time__until=1970-01-01')).toEqual([4, 5]);
    expect(await numbers('time__until=1000-01-01')).toEqual([0]);
    expect(await numbers('time__lt=-12219292800000')).toEqual([0, 1, 2, 3]);

    const exported = await run(folder, ['export', 'shop', '--format', 'parquet', '--output', 'shop.parquet']);
    expect(exported.code).toBe(0);
    const { buffer, byteOffset, byteLength } = readFileSync(join(folder, 'shop.parquet'));
    const zstd = await openDecompressor('zstd');
    const rows = await parquetReadObjects({
      file: buffer.slice(byteOffset, byteOffset + byteLength) as ArrayBuffer,
      compressors: {
        ZSTD: (input, length) => {
          const page = new Uint8Array(length);
          expect(zstd(input, page)).toBe(true);
          return page;
        },
      },
    });
    expect(rows.map(({ time }) => time as Date)).toEqual(times.map((time) => new Date(time)));
    expect((await run(folder, ['stats', 'shop'])).stdout).toContain(
      '0001-01-01 00:00:00 to 1969-12-31 23:59:59\n',
    );
  });

  it('are shown completely if their year has more than four digits or is before 0', async () => {
    const folder = folderOf(['0000-01-01T00:00:00+01:00', '9999-12-31T23:59:59-01:00']);
    expect((await run(folder, ['load', 'shop', 'shop.log'])).code).toBe(0);
    expect((await run(folder, ['stats', 'shop'])).stdout).toContain(
      ' -000001-12-31 23:00:00 to +010000-01-01 00:59:59\n',
    );
  });
});
