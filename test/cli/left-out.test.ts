import { appendFileSync, mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { openArchive } from '../../engine/index.js';
import { parseConfig } from '../../agents/definition/config-file.js';
import type { AgentDefinition } from '../../agents/definition/definition.js';
import type { Settings } from '../../server/cli/options.js';
import { whileCollecting } from '../../server/cli/serve.js';
import { readAgents } from '../../agents/definition/agent-file.js';
import { openAgents, describeServedAgents } from '../../server/cli/opened-archive.js';
import { ChangedAgents } from '../../server/cli/rereading.js';
import { writeParquet } from '../foreign/write-parquet.js';
import { run } from './here.js';
import { fetchAlone, freePort, recordsOf, start, workFolder } from './process.js';

const lakeFile = "archive: { path: '../lake/*.parquet' }\n";
const logFile = "fields: [{ name: text }]\nfile: { path: '../logs/shop\\.log', format: json }\n";

/** A folder with an agent `shop` that follows a log, and an agent `lake` whose folder is not there. */
function folderWithoutLake(): string {
  const folder = workFolder();
  rmSync(join(folder, 'agents'), { recursive: true });
  for (const each of ['agents', 'logs', 'made']) mkdirSync(join(folder, each));
  writeFileSync(join(folder, 'agents/lake.yaml'), lakeFile);
  writeFileSync(join(folder, 'agents/shop.yaml'), logFile);
  appendFileSync(join(folder, 'logs/shop.log'), '{"text":"one"}\n');
  return folder;
}

async function writeLake(folder: string, name: string): Promise<void> {
  const schema = { fields: [{ name: 'n', type: 'int' as const }] };
  await writeParquet(join(folder, name), schema, [[1n], [2n]], { rowGroupRows: 10, pageBytes: 1000 });
}

it('an agent whose files are not there is left out and named at every door; the others are served', async () => {
  const folder = folderWithoutLake();
  const [port, console] = [await freePort(), await freePort()];
  const [route, operators] = [`http://127.0.0.1:${port}`, `http://127.0.0.1:${console}`];
  const served = start(folder, ['serve', '--listen', route.slice(7), '--console', operators.slice(7)]);
  await served.shows('serving ');
  const reason = `the folder ${join(folder, 'lake')} is not there`;
  expect(served.output()).toMatch(new RegExp(`^LEFT OUT lake is not served: .*${reason}$`, 'm'));
  for (let records = ''; !records.includes('one');)
    records = await (await fetchAlone(`${route}/api/query/shop`)).text();
  for (const url of [
    `${route}/api/query/lake`,
    `${operators}/api/count/lake`,
    `${operators}/api/schema/lake`,
  ]) {
    const answer = await fetchAlone(url);
    const problem = (await answer.json()) as { detail: string };
    expect([url, answer.status]).toEqual([url, 503]);
    expect(problem.detail).toContain('the agent "lake" can\'t be served: ');
    expect(problem.detail).toContain(reason);
  }
  expect((await fetchAlone(`${route}/api/query/lakes`)).status).toBe(404);
  const readiness = await fetchAlone(`${operators}/readyz`);
  expect(readiness.status).toBe(503);
  expect(await readiness.json()).toMatchObject({
    reasons: [{ agent: 'lake', reason: expect.stringContaining(reason) as string }],
  });
  expect(await (await fetchAlone(`${operators}/metrics`)).text()).toContain('\nlogstrata_ready 0\n');
  const stats = await run(folder, ['stats']);
  expect(stats.stderr).toContain('problem: lake is not served: ');
  expect(stats.stdout).toMatch(/^shop +1 /m);
  const check = await run(folder, ['check']);
  expect(check.code).toBe(1);
  expect(check.stderr).toContain(reason);
  // Once the files are there, the server can be told to look again.
  await writeLake(folder, 'made/1.parquet');
  renameSync(join(folder, 'made'), join(folder, 'lake'));
  served.child.kill('SIGHUP');
  await served.shows('"added":1,"changed":0,"removed":0,"refused":0');
  for (let records = 0; records < 2;)
    records = recordsOf(await (await fetchAlone(`${route}/api/query/lake`)).text()).length;
  expect((await fetchAlone(`${operators}/readyz`)).status).toBe(200);
  served.child.kill('SIGTERM');
  expect((await served.finished).code).toBe(0);
});

it('an agent that is left out is tried again, and told once', async () => {
  const folder = folderWithoutLake();
  const archive = await openArchive(join(folder, 'data'), { mode: 'write', role: 'test' });
  const agents = join(folder, 'agents');
  const served = await openAgents(archive, readAgents(agents).agents);
  expect([...served.keys()]).toEqual(['shop']);
  expect([...served.leftOut.keys()]).toEqual(['lake']);
  expect(served.troubles).toEqual([
    { agent: 'lake', reason: expect.stringContaining('it is not served: ') as string },
  ]);
  expect((await describeServedAgents(served)).at(-1)).toMatch(/^LEFT OUT lake /);
  const told: string[] = [];
  const tell = (_facts: object, message: string): void => void told.push(message);
  const log = { info: tell, warn: tell, error: tell };
  const changed = new ChangedAgents({ archive, served, collection: undefined, folder: agents, log });
  await changed.retry();
  expect(told).toEqual([]);
  mkdirSync(join(folder, 'lake'));
  writeFileSync(join(folder, 'lake/bad.parquet'), 'PAR1 is not all that a file needs');
  await changed.retry();
  await changed.retry();
  expect(told).toEqual([expect.stringMatching(/bad\.parquet.*: it is not served$/)]);
  await writeLake(folder, 'lake/1.parquet');
  await changed.retry();
  expect(told.slice(1)).toEqual(['an agent was added']);
  expect([...served.keys()]).toEqual(['shop', 'lake']);
  expect(served.leftOut.size).toBe(0);
  await archive.close();
});

it('an agent whose files become those of a table is left out until they no longer are', async () => {
  const folder = folderWithoutLake();
  for (const name of ['lake/1.parquet', 'listed/1.parquet']) await writeLake(folder, name);
  writeFileSync(
    join(folder, 'agents/listed.yaml'),
    "archive: { path: '../listed/*.parquet' }\nfields: [{ name: n, type: int }]\n",
  );
  const agents = join(folder, 'agents');
  const readAll = (): readonly AgentDefinition[] => readAgents(agents).agents;
  const archive = await openArchive(join(folder, 'data'), { mode: 'write', role: 'test' });
  const log = { info: () => {}, warn: () => {}, error: () => {} };
  const settings = { config: parseConfig('', 'config.yaml') } as Settings;
  const flags = { follow: true, workers: 0 };
  // Nothing has been attached yet, so the files are looked at before the agent is served.
  for (const each of ['lake', 'listed']) mkdirSync(join(folder, each, '_delta_log'));
  for (const each of ['lake', 'listed']) writeFileSync(join(folder, each, '_delta_log/0.json'), '{}');
  expect([...(await openAgents(archive, readAll())).leftOut.keys()]).toEqual(['lake', 'listed']);
  for (const each of ['lake', 'listed']) rmSync(join(folder, each, '_delta_log'), { recursive: true });
  const served = await openAgents(archive, readAll());
  expect([...served.keys()]).toEqual(['lake', 'listed', 'shop']);
  await whileCollecting(archive, served, settings, flags, log, async (begin) => {
    const collection = begin()!;
    const changed = new ChangedAgents({ archive, served, collection, folder: agents, log });
    const rowsOf = async (name: string): Promise<number | undefined> =>
      (await served.get(name)?.store.stats())?.attached.records;
    for (const name of ['lake', 'listed']) await expect.poll(() => rowsOf(name), { timeout: 20_000 }).toBe(2);
    mkdirSync(join(folder, 'listed/_delta_log'));
    writeFileSync(join(folder, 'listed/_delta_log/0.json'), '{}');
    // Its files are searched every ten seconds, and at once when it is added.
    await collection.remove('listed');
    await collection.add(served.get('listed')!);
    await expect.poll(() => [...served.leftOut.keys()], { timeout: 20_000 }).toEqual(['listed']);
    expect([...served.keys()]).toEqual(['lake', 'shop']);
    await changed.retry();
    expect(served.leftOut.get('listed')).toContain('listed/_delta_log is the log of a Delta table');
    rmSync(join(folder, 'listed/_delta_log'), { recursive: true });
    await changed.retry();
    expect(await rowsOf('listed')).toBe(2);
    expect(served.leftOut.size).toBe(0);
  });
  await archive.close();
});

it('an agent that is left out is named by a server that collects nothing', async () => {
  const folder = folderWithoutLake();
  const archive = await openArchive(join(folder, 'data/store'), { mode: 'write', role: 'serve' });
  const served = await openAgents(archive, readAgents(join(folder, 'agents')).agents);
  const settings = { config: parseConfig('', 'config.yaml') } as Settings;
  const log = { info: () => {}, warn: () => {}, error: () => {} };
  await whileCollecting(archive, served, settings, { follow: false }, log, async () => {
    const { stderr } = await run(folder, ['stats']);
    const reason = `the folder ${join(folder, 'lake')} is not there`;
    expect(stderr).toMatch(new RegExp(`^problem: lake is not served: .*${reason}$`, 'm'));
  });
  await archive.close();
});
