import { spawnSync } from 'node:child_process';
import { appendFileSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { fetchAlone, recordsOf, run, start, workFolder } from '../cli/process.js';
import { addressesOf, anyPorts } from '../cli/serving.js';
import { LoopDisk } from './loop-disk.js';

interface Readiness {
  readonly status: number;
  readonly reasons: readonly { readonly agent?: string; readonly reason: string }[];
}

async function readinessOf(operators: string): Promise<Readiness> {
  const response = await fetchAlone(`${operators}/readyz`);
  const { reasons = [] } = (await response.json()) as Partial<Readiness>;
  return { status: response.status, reasons };
}

const ready = { status: 200, reasons: [] };

it('a damaged manifest makes a server not ready, while it continues with the other agents', async () => {
  const folder = workFolder();
  for (const agent of ['app', 'nginx']) await run(folder, ['load', agent, `data/samples/${agent}.log`]);
  const manifests = readdirSync(join(folder, 'data/store/app')).filter((name) => /^manifest-/.test(name));
  for (const name of manifests) {
    const path = join(folder, 'data/store/app', name);
    const bytes = readFileSync(path);
    bytes[bytes.length >> 1]! ^= 1;
    writeFileSync(path, bytes);
  }
  const server = start(folder, ['serve', '--no-follow', ...anyPorts]);
  const { operators, route } = await addressesOf(server);
  const { status, reasons } = await readinessOf(operators);
  expect(status).toBe(503);
  expect(reasons).toHaveLength(1);
  expect(reasons[0]).toMatchObject({ agent: 'app' });
  expect(reasons[0]!.reason).toMatch(/^its records can't be read: .*manifest/);
  expect((await fetchAlone(`${operators}/livez`)).status).toBe(200);
  const answered = await fetchAlone(`${route}/api/query/nginx?limit=2`);
  expect(recordsOf(await answered.text())).toHaveLength(2);
  const metrics = await (await fetchAlone(`${operators}/metrics`)).text();
  expect(metrics).toContain('logstrata_damaged{agent="app"} 1\n');
  expect(metrics).toContain('logstrata_damaged{agent="nginx"} 0\n');
  expect(metrics).toContain('logstrata_ready 0\n');
});

it('a lock whose files are removed makes a server not ready', async () => {
  const folder = workFolder();
  const server = start(folder, ['serve', '--no-follow', ...anyPorts]);
  const { operators } = await addressesOf(server);
  expect(await readinessOf(operators)).toEqual(ready);
  rmSync(join(folder, 'data/store/.lock'), { recursive: true });
  const { status, reasons } = await readinessOf(operators);
  expect(status).toBe(503);
  expect(reasons).toMatchObject([{ reason: expect.stringMatching(/^the lock on .* is lost/) as string }]);
});

it('a full disk makes a server not ready until there is room again', async (context) => {
  const disk = LoopDisk.make(context);
  const folder = workFolder();
  mkdirSync(join(folder, 'logs'));
  const log = join(folder, 'logs/app.log');
  writeFileSync(
    join(folder, 'agents/live.yaml'),
    "fields: [{ name: text }]\nfile: { path: '../logs/app\\.log', format: json }\n",
  );
  writeFileSync(log, '{"text":"first"}\n');
  const server = start(folder, ['serve', '--data', join(disk.folder, 'store'), ...anyPorts]);
  const { operators, route } = await addressesOf(server);
  const count = async (): Promise<number> =>
    recordsOf(await (await fetchAlone(`${route}/api/query/live?limit=1000`)).text()).length;
  await expect.poll(count, { timeout: 30_000 }).toBe(1);
  expect(await readinessOf(operators)).toEqual(ready);

  const ballast = join(disk.folder, 'ballast');
  spawnSync('dd', ['if=/dev/zero', `of=${ballast}`, 'bs=1M']);
  expect((await readinessOf(operators)).status).toBe(503);
  // More than any disk has free.
  const line = `{"text":"${'x'.repeat(60_000)}"}\n`;
  appendFileSync(log, line.repeat(50));
  await expect
    .poll(async () => (await readinessOf(operators)).reasons.map(({ agent }) => agent), { timeout: 30_000 })
    .toEqual(['live', undefined]);
  const { reasons } = await readinessOf(operators);
  expect(reasons[0]!.reason).toContain('nothing can be stored: ');
  expect(reasons[1]!.reason).toMatch(/^the disk of .* is full: \d+ bytes are free/);
  expect(await count()).toBe(1);

  rmSync(ballast);
  await expect.poll(() => readinessOf(operators), { timeout: 30_000 }).toEqual(ready);
  await expect.poll(count, { timeout: 60_000 }).toBe(51);
  server.child.kill('SIGTERM');
  expect((await server.finished).code).toBe(0);
});
