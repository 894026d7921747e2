import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { openArchive } from '../../engine/index.js';
import { run } from './here.js';
import { fetchAlone, freePort, recordsOf, start, workFolder } from './process.js';

const loadSample = ['load', 'app', 'data/samples/app.log'];

function filesOf(folder: string): string[] {
  const files = readdirSync(join(folder, 'data/store'), { recursive: true, encoding: 'utf8' });
  // This file exists only while the lock is held.
  return files.filter((name) => !/^\.(lock|writer)/.test(name)).sort();
}

it('a repair beside a server is refused, and names the process to stop', async () => {
  const folder = workFolder();
  await run(folder, loadSample);
  const listen = `127.0.0.1:${await freePort()}`;
  const server = start(folder, ['serve', '--no-follow', '--listen', listen]);
  await server.shows('serving ');
  const before = filesOf(folder);
  const refused = await run(folder, ['verify', '--repair', '--yes']);
  expect(refused.code).toBe(1);
  expect(refused.stderr).toContain(`process ${server.child.pid} (serve) writes to`);
  expect(refused.stderr).toContain('stop it before the repair');
  expect(filesOf(folder)).toEqual(before);
  server.child.kill('SIGTERM');
  await server.finished;
  expect((await run(folder, ['verify', '--repair', '--yes'])).code).toBe(0);
});

it('a server, a load and a query that start beside a repair are refused, and do not disturb it', async () => {
  const folder = workFolder();
  await run(folder, loadSample);
  const answer = (await run(folder, ['query', 'app', '--limit', '100000'])).stdout;
  const place = join(folder, 'data/store');
  for (const name of readdirSync(join(place, 'app')))
    if (name.startsWith('manifest-')) rmSync(join(place, 'app', name));
  // The repair needs files that no manifest names, which opening the archive would remove.
  const before = filesOf(folder);
  const archive = await openArchive(place, { mode: 'write', role: 'repair', alone: true });
  let adopt: (isWanted: boolean) => void = () => {};
  let repairing: Promise<unknown> = Promise.resolve();
  await new Promise<void>((asked) => {
    const wait = () => {
      asked();
      return new Promise<boolean>((decide) => (adopt = decide));
    };
    repairing = archive.repair('app', { adopt: wait });
  });
  const listen = `127.0.0.1:${await freePort()}`;
  for (const args of [['serve', '--listen', listen], loadSample, ['query', 'app']]) {
    const refused = await run(folder, args);
    expect(refused.code).toBe(1);
    expect(refused.stderr).toContain(
      `process ${process.pid} (repair) has ${place} for itself: wait until it has ended`,
    );
  }
  expect(filesOf(folder)).toEqual(before);
  adopt(true);
  await repairing;
  await archive.close();
  const server = start(folder, ['serve', '--no-follow', '--listen', listen]);
  await server.shows('serving ');
  const response = await fetchAlone(`http://${listen}/api/query/app?limit=100000`);
  expect(await response.text()).toBe(answer);
});

it('without manifests, a load, a server and a query leave the files unchanged, and name the command that restores them', async () => {
  const folder = workFolder();
  await run(folder, loadSample);
  const all = ['query', 'app', '--limit', '100000'];
  const answer = (await run(folder, all)).stdout;
  const place = join(folder, 'data/store/app');
  for (const name of readdirSync(place)) if (name.startsWith('manifest-')) rmSync(join(place, name));
  const before = filesOf(folder).filter((name) => name.startsWith('app'));
  const way = 'run `logstrata verify app --repair`';
  for (const args of [loadSample, all, ['stats', 'app'], ['verify', 'app'], loadSample]) {
    const refused = await run(folder, args);
    expect(refused.code).toBe(1);
    const told = args[0] === 'verify' ? refused.stdout : refused.stderr;
    expect(told).toContain('has lost its manifest and has only ');
    expect(told).toContain(way);
  }
  const server = start(folder, ['serve', '--listen', `127.0.0.1:${await freePort()}`]);
  await server.shows(way);
  await server.shows('its records are DAMAGED and not served');
  await server.shows('agent    nginx: ');
  await server.shows('serving ');
  server.child.kill('SIGTERM');
  await server.finished;
  expect(filesOf(folder).filter((name) => name.startsWith('app'))).toEqual(before);
  expect((await run(folder, ['verify', 'app', '--repair', '--yes'])).code).toBe(0);
  expect((await run(folder, all)).stdout).toBe(answer);
});

it('a repair without a manifest keeps the row groups of the first half of a segment whose second half is overwritten', async () => {
  const folder = workFolder();
  writeFileSync(
    join(folder, 'agents/many.yaml'),
    "fields:\n  - { name: time, timestamp: {} }\n  - { name: n, type: int }\nfile: { path: 'logs/many\\.log', format: json }\n",
  );
  const firstMs = Date.parse('2026-11-20T03:00:00Z');
  const lines = Array.from(
    { length: 200_000 },
    (_, n) => `{"time":"${new Date(firstMs + n * 100).toISOString()}","n":${n * 7919}}\n`,
  );
  expect((await run(folder, ['load', 'many', '-'], lines.join(''))).code).toBe(0);
  expect((await run(folder, ['compact', 'many'])).code).toBe(0);
  const all = ['query', 'many', '--limit', '1000000'];
  const answer = (await run(folder, all)).stdout.split('\n');
  for (const name of filesOf(folder)) {
    const path = join(folder, 'data/store', name);
    if (/manifest-\d+$/.test(name)) rmSync(path);
    if (!name.endsWith('.parquet')) continue;
    const bytes = readFileSync(path);
    writeFileSync(path, bytes.fill(0xa5, bytes.length >> 1));
  }
  const ended = await run(folder, ['verify', 'many', '--repair', '--yes']);
  expect(ended.code).toBe(1);
  expect(ended.stdout).toContain('the manifest, from the files alone');
  // The header gives the positions of lost records too. One line sums them up, the next lists them by hour.
  expect(ended.stdout.match(/^LOST/gm)).toHaveLength(1);
  expect(ended.stdout).toMatch(
    /^LOST {5}134,464 records: [0-9a-f]{16} … [0-9a-f]{16}, .*\n.*: the footer does not .*, and some row groups are damaged\n {11}[\d,]+ records: /m,
  );
  expect(ended.stdout).toContain('65,536 records can be queried');
  const left = (await run(folder, all)).stdout.split('\n');
  // Compared as one text: a difference between so many lines is not worth listing.
  expect(left.slice(0, -1).join('\n') === answer.slice(0, 65_536).join('\n')).toBe(true);
});

it('a repair restores the intact part of a segment that is cut off', async () => {
  const folder = workFolder();
  await run(folder, ['load', 'nginx', 'data/samples/nginx.log']);
  const answer = recordsOf((await run(folder, ['query', 'nginx', '--limit', '100000'])).stdout);
  const segments = filesOf(folder).filter((name) => name.endsWith('.parquet'));
  const file = join(folder, 'data/store', segments[1]!);
  const bytes = readFileSync(file);
  // The footer and the positions are at the end; the records themselves are intact.
  writeFileSync(file, bytes.subarray(0, Math.floor(bytes.length * 0.97)));
  expect((await run(folder, ['query', 'nginx', '--limit', '100000'])).code).toBe(1);
  const ended = await run(folder, ['verify', 'nginx', '--repair']);
  expect(ended.stdout).not.toContain('LOST');
  expect(ended.stdout).toContain('aside ');
  expect(ended.code).toBe(0);
  expect(recordsOf((await run(folder, ['query', 'nginx', '--limit', '100000'])).stdout)).toEqual(answer);
});

it('lost records of a loaded file are restored by loading it beside a server, also after loads that were killed', async () => {
  const folder = workFolder();
  const log = join(folder, 'data/samples/nginx.log');
  await run(folder, ['load', 'nginx', log]);
  const all = ['query', 'nginx', '--limit', '100000'];
  const answer = (await run(folder, all)).stdout;
  rmSync(
    join(
      folder,
      'data/store',
      filesOf(folder).find((name) => name.endsWith('.parquet'))!,
    ),
  );
  const repaired = await run(folder, ['verify', 'nginx', '--repair']);
  expect(repaired.code).toBe(1);
  const way = `to restore them: logstrata load nginx '${log}'`;
  expect(repaired.stdout).toContain(way);
  expect(repaired.stdout).not.toContain('came from no known load');
  const verified = await run(folder, ['verify', 'nginx']);
  expect(verified).toMatchObject({ code: 0, stdout: expect.stringContaining(way) });
  expect((await run(folder, ['stats', 'nginx'])).stdout).toMatch(
    /lost, until loaded again +[\d,]+ records of /,
  );
  const less = (await run(folder, all)).stdout;
  expect(less.length).toBeLessThan(answer.length);

  const listen = `127.0.0.1:${await freePort()}`;
  const server = start(folder, ['serve', '--no-follow', '--listen', listen]);
  await server.shows('serving ');
  const served = async (): Promise<string> =>
    (await fetchAlone(`http://${listen}/api/query/nginx?limit=100000`)).text();
  for (const delayMs of [150, 300, 450, 600]) {
    const killed = start(folder, ['load', 'nginx', log]);
    await new Promise((resolve) => setTimeout(resolve, delayMs));
    killed.child.kill('SIGKILL');
    await killed.finished;
    expect([less, answer]).toContain(await served());
  }
  const restored = await run(folder, ['load', 'nginx', log]);
  expect(await served()).toBe(answer);
  const known = await run(folder, ['load', 'nginx', log]);
  expect(known).toMatchObject({
    code: 0,
    stderr: expect.stringContaining('already stored'),
  });
  expect(await served()).toBe(answer);
  // If a killed load was already complete, there is nothing left to do.
  expect([0, 1]).toContain(restored.code);
  const stats = await run(folder, ['stats', 'nginx', '--json']);
  expect(JSON.parse(stats.stdout)).toMatchObject({ restorable: [] });
});

it('lost records of a followed log are reported, and loading the log stores nothing twice', async () => {
  const folder = workFolder();
  writeFileSync(
    join(folder, 'agents/many.yaml'),
    `fields:\n  - { name: time, timestamp: {} }\n  - { name: n, type: int }\nfile: { path: '${folder}/many\\.log', format: json }\n`,
  );
  const log = join(folder, 'many.log');
  const lines = Array.from({ length: 50 }, (_, n) => `{"time":"2026-11-20T03:00:00Z","n":${n}}\n`);
  writeFileSync(log, lines.join(''));
  const listen = `127.0.0.1:${await freePort()}`;
  const server = start(folder, ['serve', '--listen', listen]);
  await server.shows('serving ');
  const served = async (): Promise<string> =>
    (await fetchAlone(`http://${listen}/api/query/many?limit=100`)).text();
  while (recordsOf(await served()).length < 50) await new Promise((resolve) => setTimeout(resolve, 50));
  server.child.kill('SIGTERM');
  await server.finished;
  rmSync(
    join(
      folder,
      'data/store',
      filesOf(folder).find((name) => /^many\W.*arrows$/.test(name))!,
    ),
  );
  const repaired = await run(folder, ['verify', 'many', '--repair']);
  expect(repaired.code).toBe(1);
  expect(repaired.stdout).toContain('50 lost records came from no known load (a followed log, ');
  const again = await run(folder, ['load', 'many', log]);
  expect(again).toMatchObject({
    code: 0,
    stderr: expect.stringContaining('already stored'),
  });
  expect((await run(folder, ['query', 'many'])).stdout).toBe('');
});
