import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { makeSchema } from '../../engine/core/schema.js';
import type { Counts } from '../../engine/scan/count-query.js';
import { parseCountRequest } from '../../server/http/count-request.js';
import { describeCounts, type Screen } from '../../server/cli/count.js';
import { textWidth } from '../../server/cli/terminal.js';
import { run } from './here.js';
import { fetchAlone, start, workFolder } from './process.js';

const lines = (text: string): string[] => text.trimEnd().split('\n');

it('counts the samples with the same result as the console', async () => {
  const folder = workFolder();
  await run(folder, ['load', 'nginx', 'data/samples/nginx.log']);
  const log = lines(readFileSync(join(folder, 'data/samples/nginx.log'), 'utf8'));
  const byStatus = new Map<string, number>();
  for (const line of log) {
    const status = /" (\d{3}) /.exec(line)![1]!;
    byStatus.set(status, (byStatus.get(status) ?? 0) + 1);
  }
  const sorted = [...byStatus].sort(([a, many], [b, few]) => few - many || Number(a) - Number(b));

  const sum = await run(folder, ['count', 'nginx']);
  expect([sum.code, sum.stderr, sum.stdout]).toEqual([0, '', `${log.length}\n`]);
  const csv = await run(folder, ['count', 'nginx', '--by', 'status', '--csv']);
  expect(csv.stdout).toBe(
    ['status,count', ...sorted.map(([status, count]) => `${status},${count}`)]
      .map((line) => `${line}\r\n`)
      .join(''),
  );
  const columns = await run(folder, ['count', 'nginx', '--by', 'status', '--top', '2']);
  expect(lines(columns.stdout).map((line) => line.split(/ +/))).toEqual([
    ['status', 'count'],
    ...sorted.slice(0, 2).map(([status, count]) => [status, String(count)]),
  ]);

  const server = start(folder, [
    'serve',
    '--no-follow',
    '--listen',
    '127.0.0.1:0',
    '--console',
    '127.0.0.1:0',
  ]);
  await server.shows('serving ');
  const operators = /^viewer {3}(\S+)$/m.exec(server.output())![1]!;
  const query = 'status__gte=400&by=time:1d&by=status&zone=Europe/Oslo&top=4';
  const answered = await (await fetchAlone(`${operators}/api/count/nginx?${query}`)).text();
  const words = [
    'status__gte=400',
    '--by',
    'time:1d',
    '--by',
    'status',
    '--zone',
    'Europe/Oslo',
    '--top',
    '4',
  ];
  const json = await run(folder, ['count', 'nginx', ...words, '--json', '--explain']);
  expect(json.stdout).toBe(answered);
  expect(json.stderr).toContain('row groups');
  server.child.kill('SIGTERM');
  await server.finished;
});

it('adds up several agents, within the times of each', async () => {
  const folder = workFolder();
  await run(folder, ['load', 'nginx', 'data/samples/nginx.log']);
  await run(folder, ['load', 'app', 'data/samples/app.log']);
  const words = ['--since', '2026-11-18', '--until', '2026-11-19'];
  const counts = [];
  for (const agent of ['nginx', 'app', 'nginx,app']) {
    const { stdout, stderr } = await run(folder, ['count', agent, ...words]);
    expect(stderr).toBe('');
    counts.push(Number(stdout));
  }
  expect(counts[0]).toBeGreaterThan(0);
  expect(counts[1]).toBeGreaterThan(0);
  expect(counts[2]).toBe(counts[0]! + counts[1]!);
  const { stdout } = await run(folder, [
    'count',
    'nginx,app',
    '--by',
    'status',
    '--of',
    'bytes',
    '--fn',
    'max',
    ...words,
  ]);
  expect(lines(stdout)[0]).toMatch(/^status +count +bytes_max$/);
  const none = await run(folder, ['count', 'nginx,app', '--by', 'nowhere']);
  expect([none.code, none.stderr]).toEqual([2, expect.stringContaining('unknown field "nowhere"')]);
});

it('reports mistakes in the form in which they were typed', async () => {
  const folder = workFolder();
  const cases: [string[], string][] = [
    [['--by', 'time'], 'write by=time:1h'],
    [['--by', 'levle'], 'did you mean "level"?'],
    [['--csv', '--json'], 'cannot be used with option'],
    [['--by', 'level', '--top', 'ten'], 'from 1 to 1000'],
  ];
  for (const [words, message] of cases) {
    const ended = await run(folder, ['count', 'app', ...words]);
    expect([ended.code, ended.stdout]).toEqual([2, '']);
    expect(ended.stderr).toContain(message);
  }
});

const schema = makeSchema([
  { name: 'time', type: 'time' },
  { name: 'level', type: 'string' },
  { name: 'bytes', type: 'int' },
  { name: 'took', type: 'float' },
]);
const request = (query: string) => parseCountRequest(query, { schema, now: 0, timezone: 'Europe/Oslo' });
const terminal: Screen = { width: 80, hasBlocks: true };
const stats = {} as never;

function byTime(firstMs: number, minutes: number, counts: readonly number[]): Counts {
  const buckets = counts.flatMap((count, i) => {
    const from = firstMs + i * minutes * 60_000;
    return count === 0 ? [] : [{ from, until: from + minutes * 60_000, count }];
  });
  return { count: 0, time: { buckets, nulls: 2 }, stats };
}

it('draws bars that fit the terminal, with local times, and marks times without records', () => {
  const counts = byTime(Date.UTC(2026, 9, 25, 0), 60, [1234, 617, 0, 0, 1]);
  const shown = describeCounts(request('by=time:1h'), counts, terminal);
  // Clocks are put back at 01:00 UTC, so 02:00 occurs twice.
  expect(shown).toEqual([
    'time (Europe/Oslo)      count',
    `2026-10-25 02:00+02:00  1,234  ${'█'.repeat(49)}`,
    `2026-10-25 02:00+01:00    617  ${'█'.repeat(24)}▌`,
    '…',
    '2026-10-25 05:00+01:00      1  ▏',
    '',
    '0 records, 2 without a time',
  ]);
  expect(describeCounts(request('by=time:1h'), counts, { width: 40, hasBlocks: false })[1]).toBe(
    `2026-10-25 02:00+02:00  1,234  ${'#'.repeat(9)}`,
  );
  const days = byTime(Date.UTC(2026, 10, 1, 23), 1440, [5, 6]);
  expect(describeCounts(request('by=time:1d'), days, { width: null, hasBlocks: false })).toEqual([
    'time (Europe/Oslo)  count',
    '2026-11-02              5',
    '2026-11-03              6',
  ]);
});

it('shows numbers as columns: rounded on a terminal, in full elsewhere', () => {
  const numbers = [
    [9007199254740993n, 1234567n, 12],
    [0.1 + 0.2, null, 1e-9],
  ];
  const top = [{ value: 'error', count: 3, numbers }];
  const counts: Counts = {
    count: 3,
    approximate: [],
    values: { top, other: 0, nulls: 0, distinct: 1 },
    stats,
  };
  const asked = request('by=level&of=bytes,took&fn=sum,max,avg');
  expect(describeCounts(asked, counts, { width: 120, hasBlocks: false }).slice(0, 2)).toEqual([
    'level  count              bytes_sum  bytes_max  bytes_avg  took_sum  took_max  took_avg',
    `error      3  9,007,199,254,740,993  1,234,567         12       0.3         -      1e-9  ${'#'.repeat(31)}`,
  ]);
  expect(describeCounts(asked, counts, { width: null, hasBlocks: false })).toEqual([
    'level  count         bytes_sum  bytes_max  bytes_avg             took_sum  took_max  took_avg',
    'error      3  9007199254740993    1234567         12  0.30000000000000004         -      1e-9',
  ]);
  const times = request('of=time&fn=max,p50');
  const total: Counts = { count: 2, approximate: ['p50'], numbers: [[1_795_132_783_000n, null]], stats };
  expect(describeCounts(times, total, terminal)).toEqual([
    '2 records',
    'time_max  2026-11-19 23:59:43',
    'time_p50  -',
  ]);
});

it('shows the numbers of each value beside its counts by time', () => {
  const numbers = [[1.5]];
  const buckets = [
    { from: 0, until: 3_600_000, count: 4, values: [3, 1], numbers, numbersOfValues: [[[2]], [[null]]] },
  ];
  const top = [
    { value: 'a', count: 3, numbers },
    { value: 'b', count: 1, numbers },
  ];
  const counts: Counts = {
    count: 4,
    approximate: [],
    time: { buckets, nulls: 0 },
    values: { top, other: 0, nulls: 0, distinct: 2 },
    stats,
  };
  expect(
    describeCounts(request('by=time:1h&by=level&of=took&fn=avg'), counts, { ...terminal, width: null }),
  ).toEqual([
    'time (Europe/Oslo)  count  took_avg  a  took_avg  b  took_avg',
    '1970-01-01 01:00        4       1.5  3         2  1         -',
  ]);
});

it('shortens long values in the middle, measures wide ones, and escapes control characters', () => {
  const top = [
    { value: `begin ${'x'.repeat(200)} end`, count: 10 },
    { value: '請求が失敗しました'.repeat(9), count: 9 },
    { value: '\u001b[31mred\r\n\u202etxt', count: 8 },
    { value: '', count: 7 },
  ];
  const counts: Counts = { count: 40, values: { top, other: 5, nulls: 1, distinct: 6 }, stats };
  const shown = describeCounts(request('by=level'), counts, terminal);
  for (const line of shown) expect(textWidth(line)).toBeLessThanOrEqual(80);
  expect(shown[1]).toMatch(/^begin x+…x+ end {5}10 {2}█+$/);
  expect(shown[3]).toContain('\\u001b[31mred\\u000d\\u000a\\u202etxt');
  expect(shown.at(-1)).toBe('40 records, 5 with one of 2 other values, 1 with none');
  const whole = describeCounts(request('by=level'), counts, { width: null, hasBlocks: true });
  expect(whole[1]).toContain('x'.repeat(200));
});

it('shows as many values as there is room for next to times, and states how many are left out', () => {
  const top = Array.from({ length: 20 }, (_, i) => ({ value: `value ${i}`, count: 20 - i }));
  const buckets = [{ from: 0, until: 3_600_000, count: 210, values: top.map(({ count }) => count) }];
  const counts: Counts = {
    count: 210,
    time: { buckets, nulls: 0 },
    values: { top, other: 0, nulls: 0, distinct: 20 },
    stats,
  };
  const shown = describeCounts(request('by=time:1h&by=level&top=20'), counts, terminal);
  expect(shown[0]).toMatch(/^time \(Europe\/Oslo\) {2}count {2}value 0 {2}value 1/);
  for (const line of shown) expect(line.length).toBeLessThanOrEqual(80);
  expect(shown.find((line) => line.startsWith('('))).toMatch(/^\(\d+ more columns do not fit here/);
});
