import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { run } from './here.js';
import { fetchAlone, freePort, recordsOf, root, start, workFolder } from './process.js';

it('gives the same bytes as the route for the same query', async () => {
  const folder = workFolder();
  const port = await freePort();
  const server = start(folder, ['demo', '--listen', `127.0.0.1:${port}`]);
  await server.shows('serving ');
  const cases: [string, string[], string][] = [
    ['nginx', [], ''],
    [
      'nginx',
      ['status__gte=500', 'time__since=2026-11-18', '--limit', '3'],
      'status__gte=500&time__since=2026-11-18&limit=3',
    ],
    ['nginx', ['user_agent__like=Linux; Android'], 'user_agent__like=Linux%3B%20Android'],
    [
      'nginx',
      ['path__exact=/api/v1/orders?page=2&size=50'],
      'path__exact=%2Fapi%2Fv1%2Forders%3Fpage%3D2%26size%3D50',
    ],
    ['app', ['message__like=ÅBJÖRK', '--limit', '5'], 'message__like=%C3%85BJ%C3%96RK&limit=5'],
    [
      'app',
      ['context__like="city":"Oslo"', 'level__exact=error'],
      'context__like=%22city%22%3A%22Oslo%22&level__exact=error',
    ],
    [
      'app',
      ['SPACE', 'left on', '--since', '2026-11-18', '--until', '2026-11-19 06:00:00'],
      '*__like=space&*__like=left%20on&time__since=2026-11-18&time__until=2026-11-19T06:00:00',
    ],
    ['app', ['=1', '--limit', '3'], '*__like==1&limit=3'],
    ['app,nginx', ['--limit', '7', '--fields', 'time,level,status'], 'limit=7&fields=time,level,status'],
    [
      'nginx,app',
      ['--since', '2026-11-18', 'level__exists=false', '--csv', '--limit', '5'],
      'time__since=2026-11-18&level__exists=false&format=csv&limit=5',
    ],
    [
      'app',
      ['any=level__exact=error', 'any=message__like=no space', 'context__exists=true', '--limit', '7'],
      'any=level__exact%3Derror&any=message__like=no+space&context__exists=true&limit=7',
    ],
    ['app', ['time__until=2026-11-18 10:00:00', '--limit', '2'], 'time__until=2026-11-18+10:00:00&limit=2'],
  ];
  for (const [i, [agent, words, query]] of cases.entries()) {
    const response = await fetchAlone(`http://127.0.0.1:${port}/api/query/${agent}?${query}`);
    expect(response.status).toBe(200);
    const text = await response.text();
    const ended = await run(folder, ['query', agent, ...words, '--workers', String(i % 3)]);
    expect(ended.stderr).toBe('');
    expect(ended.code).toBe(0);
    expect(ended.stdout).toBe(text);
  }
  const words = ['--since', '2026-11-18', 'level__exists=false', '--limit', '5'];
  const exported = await run(folder, ['export', 'nginx,app', ...words, '--format', 'csv']);
  expect(exported.stdout).toBe((await run(folder, ['query', 'nginx,app', ...words, '--csv'])).stdout);
  expect(exported.stdout.split('\r\n')).toHaveLength(7);
  const toFile = ['export', 'app,nginx', '--format', 'jsonl', '--output', 'both.jsonl'];
  expect((await run(folder, toFile)).stderr).toMatch(/records written to both\.jsonl/);
  for (const [names, format, message] of [
    ['nginx,app', 'parquet', /a Parquet file has the records of one agent.*one by one/s],
    ['nginx,nginx', 'csv', /the agent "nginx" is named twice/],
    ['nginx,apq', 'csv', /no records of an agent "apq".*did you mean "app"/],
  ] as const)
    expect((await run(folder, ['export', names, '--format', format, '--output', 'x'])).stderr).toMatch(
      message,
    );
});

it('takes words and times in counts and exports too, if the agent has texts and times', async () => {
  const folder = workFolder();
  await run(folder, ['load', 'app', 'data/samples/app.log']);
  const asked = ['space', '--since', '2026-11-18', '--until', '2026-11-19'];
  const records = recordsOf((await run(folder, ['query', 'app', '*__like=space', ...asked])).stdout);
  expect(records.length).toBeGreaterThan(2);
  expect((await run(folder, ['count', 'app', ...asked])).stdout).toBe(`${records.length}\n`);
  const exported = await run(folder, ['export', 'app', '--format', 'jsonl', ...asked]);
  expect(recordsOf(exported.stdout)).toEqual(records);
  const agent = "fields: [{ name: n, type: int }]\nfile: { path: '../logs/plain\\.log', format: json }\n";
  writeFileSync(join(folder, 'agents/plain.yaml'), agent);
  const untimed = await run(folder, ['query', 'plain', '--until', '1h']);
  expect([untimed.code, untimed.stderr]).toEqual([
    2,
    'logstrata: --until needs a field of type time, and the agent has none\n',
  ]);
  const textless = await run(folder, ['count', 'plain', 'timeout']);
  expect([textless.code, textless.stderr]).toEqual([
    2,
    expect.stringContaining('searches fields of type string, but the agent has none'),
  ]);
});

it('pages by cursor', async () => {
  const folder = workFolder();
  await run(folder, ['load', 'app', 'data/samples/app.log']);
  const newest = recordsOf((await run(folder, ['query', 'app', '--limit', '10'])).stdout);
  const before = recordsOf(
    (await run(folder, ['query', 'app', '--limit', '10', '--before', String(newest[0]!._cursor)])).stdout,
  );
  const after = recordsOf(
    (await run(folder, ['query', 'app', '--after', String(before.at(-1)!._cursor)])).stdout,
  );
  expect(after).toEqual(newest);
});

it('starts no thread for a page of records', async () => {
  const folder = workFolder();
  await run(folder, ['load', 'app', 'data/samples/app.log']);
  const watch = "process.on('worker', () => console.error('a thread has begun'))";
  const environment = { NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(watch)}` };
  for (const filters of [[], ['level__exact=error', 'message__like=declined']]) {
    const ended = await run(folder, ['query', 'app', ...filters, '--workers', '2'], '', environment);
    expect(recordsOf(ended.stdout).length).toBeGreaterThan(0);
    expect(ended.stderr).toBe('');
  }
});

it('explains on standard error how the query was understood and what it cost', async () => {
  const folder = workFolder();
  await run(folder, ['load', 'nginx', 'data/samples/nginx.log']);
  const ended = await run(folder, ['query', 'nginx', 'status__eq=504', 'path__prefix=/API', '--explain']);
  expect(ended.code).toBe(0);
  expect(ended.stderr).toMatch(/reads +newest first/);
  expect(ended.stderr).toMatch(/filters +status = 504\n +path prefix "\/API"/);
  expect(ended.stderr).toMatch(/row groups +\d+/);
  const words = ['any=status__eq=504', 'any=path__prefix=/API', 'bytes__exists=true', '--explain'];
  const group = await run(folder, ['query', 'nginx', ...words]);
  expect(group.stderr).toMatch(/filters +bytes has a value\n +status = 504 or path prefix "\/API"\n/);
  expect(recordsOf(group.stdout).length).toBeGreaterThan(recordsOf(ended.stdout).length);
  expect(ended.stderr).toMatch(new RegExp(`rows returned +${recordsOf(ended.stdout).length}\n`));
});

it('ends silently when its output is no longer read', async () => {
  const folder = workFolder();
  await run(folder, ['load', 'nginx', 'data/samples/nginx.log']);
  const main = join(root, 'dist/program/server/main.js');
  // The exit status of each side of the pipe; a stack trace or a message would be on standard error.
  const script = `'${process.execPath}' '${main}' query nginx --limit 10000 | head -n 1; echo "\${PIPESTATUS[0]}" >&2`;
  const child = spawn('bash', ['-c', script], { cwd: folder });
  let stderr = '';
  let stdout = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => (stderr += text));
  child.stdout.setEncoding('utf8').on('data', (text: string) => (stdout += text));
  await once(child, 'close');
  expect(stderr).toBe('0\n');
  expect(recordsOf(stdout)).toHaveLength(1);
});

it('writes the requested fields in every format', async () => {
  const folder = workFolder();
  await run(folder, ['load', 'app', 'data/samples/app.log']);
  const asked = ['app', '--limit', '2', '--fields', 'level,service'];
  const lines = await run(folder, ['query', ...asked, '--jsonl']);
  const records = recordsOf(lines.stdout);
  expect(records.map((record) => Object.keys(record))).toEqual([
    ['_cursor', 'level', 'service'],
    ['_cursor', 'level', 'service'],
  ]);
  const array = await run(folder, ['query', ...asked, '--json']);
  expect(JSON.parse(array.stdout)).toEqual(records);
  const csv = await run(folder, ['query', ...asked, '--csv']);
  const rows = records.map((record) => Object.values(record).join(','));
  expect(csv.stdout).toBe(['_cursor,level,service', ...rows, ''].join('\r\n'));
  const exported = await run(folder, ['export', ...asked, '--format', 'csv']);
  expect(exported.stdout).toBe(csv.stdout);
  const parquet = await run(folder, ['export', ...asked, '--format', 'parquet', '--output', 'some.parquet']);
  expect(parquet.stderr).toContain('2 records written');
  const both = await run(folder, ['query', ...asked, '--json', '--csv']);
  expect(both.code).toBe(2);
  const none = await run(folder, ['export', 'app', '--format', 'parquet', '--fields', '', '--output', 'x']);
  expect(none).toMatchObject({ code: 2, stdout: '' });
  expect(none.stderr).toContain('a Parquet file needs at least one field');
});
