import { spawnSync } from 'node:child_process';
import { copyFileSync, mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { run } from './here.js';
import { root, workFolder } from './process.js';

const agents = ['--agents', join(root, 'agents')];

async function loaded(): Promise<string> {
  const folder = workFolder();
  const sample = join(root, 'data/samples/app.log');
  expect((await run(folder, ['load', 'app', sample, ...agents])).code).toBe(0);
  return folder;
}

it('files in the data folder that belong to no agent are ignored and named', async () => {
  const folder = await loaded();
  writeFileSync(join(folder, 'data/store/README'), 'whose is this?');
  writeFileSync(join(folder, 'data/store/nohup.out'), '');
  writeFileSync(join(folder, 'data/store/app/nohup.out'), '');
  for (const args of [
    ['stats'],
    ['verify'],
    ['compact'],
    ['export', 'app', '--format', 'jsonl', '--output', 'a.jsonl'],
  ]) {
    const { code, stderr } = await run(folder, args);
    expect([args, code, stderr]).toMatchObject([args, 0, {}]);
    if (args[0] !== 'export') {
      expect(stderr).toContain('store/README is skipped');
      expect(stderr).toContain('store/nohup.out is skipped');
    }
  }
});

it('a named pipe in the place of a segment is reported as damage, and blocks nothing', async () => {
  const folder = await loaded();
  const place = join(folder, 'data/store/app');
  const segment = readdirSync(place, { recursive: true, encoding: 'utf8' }).find((name) =>
    name.endsWith('.parquet'),
  )!;
  rmSync(join(place, segment));
  expect(spawnSync('mkfifo', [join(place, segment)]).status).toBe(0);
  for (const workers of ['0', '2']) {
    const { code, stderr } = await run(folder, ['query', 'app', '--limit', '3000', '--workers', workers]);
    expect([code, stderr]).toMatchObject([1, expect.stringContaining('named pipe') as unknown]);
  }
  const verified = await run(folder, ['verify']);
  expect([verified.code, verified.stdout + verified.stderr]).toMatchObject([
    1,
    expect.stringContaining('named pipe') as unknown,
  ]);
});

it('a file whose name is not UTF-8 is skipped by a pattern and named', async () => {
  const folder = workFolder();
  const logs = join(folder, 'logs');
  mkdirSync(logs);
  copyFileSync(join(root, 'data/samples/app.log'), join(logs, 'good.log'));
  const odd = Buffer.concat([Buffer.from(`${logs}/odd-`), Buffer.from([0xff, 0xfe]), Buffer.from('.log')]);
  writeFileSync(odd, 'x\n');
  const { code, stderr } = await run(folder, ['load', 'app', 'logs/*.log', ...agents]);
  expect([code, stderr]).toMatchObject([0, expect.stringContaining('its name is not UTF-8') as unknown]);
});

it('an agent that follows its own rejected lines is refused, and such a file may be loaded by hand', async () => {
  const folder = workFolder();
  const file = (path: string): string =>
    `fields: [{ name: n, type: int }]\nfile:\n  format: plain\n  regex: '^n=(?P<n>\\d+)$'\n  path: '${path}'\n`;
  const agent = join(folder, 'agents/own.yaml');
  writeFileSync(agent, file('../logs/.*'));
  writeFileSync(join(folder, 'own.log'), 'n=1\nodd\n');
  expect((await run(folder, ['load', 'own', 'own.log'])).code).toBe(0);
  const rejected = readdirSync(join(folder, 'data/store/own/rejected')).map((name) =>
    join('data/store/own/rejected', name),
  );
  expect(rejected).toHaveLength(1);
  const lines = `fields: [{ name: line }]\nfile: { path: '../logs/.*', format: json }\n`;
  writeFileSync(join(folder, 'agents/lines.yaml'), lines);
  expect((await run(folder, ['load', 'lines', ...rejected])).code).toBe(0);
  expect((await run(folder, ['query', 'lines'])).stdout).toContain('"line":"odd"');

  writeFileSync(agent, file('../data/store/own/rejected/.*\\.jsonl'));
  for (const args of [['check', 'own'], ['serve']]) {
    const { code, stdout, stderr } = await run(folder, args);
    expect([code, stdout + stderr]).toMatchObject([
      1,
      expect.stringContaining('own.yaml:5:9: path is inside the data folder data/store') as unknown,
    ]);
  }
});

it('loading a named pipe is refused at once, also if it has replaced a file', async () => {
  const folder = workFolder();
  expect(spawnSync('mkfifo', [join(folder, 'pipe.log')]).status).toBe(0);
  const { code, stderr } = await run(folder, ['load', 'app', 'pipe.log', ...agents]);
  expect([code, stderr]).toMatchObject([1, expect.stringContaining('is not a regular file') as unknown]);
});
