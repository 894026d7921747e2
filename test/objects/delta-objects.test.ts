import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { ArchiveAttaching } from '../../agents/archive/archive-attaching.js';
import { parseAgentFile } from '../../agents/definition/agent-file.js';
import { completed } from '../../server/cli/opened-archive.js';
import { DeltaLake, hour } from '../agents/delta-table.js';
import { answer, openOn } from '../engine/store/memory-archive.js';
import { MemoryDirectory } from '../storage-doubles/memory-directory.js';
import { storageOf } from './object-storage.js';
import { S3Server } from './s3-server.js';

it('a Delta table in object storage is answered, and read on as it gets new versions', async () => {
  const lake = new DeltaLake({ ts: { type: 'timestamp' }, n: { type: 'long' } });
  const server = await S3Server.start();
  const folder = mkdtempSync(join(tmpdir(), 'logstrata-delta-objects-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const upload = (): void => {
    for (const name of readdirSync(lake.root, { recursive: true, encoding: 'utf8' }))
      if (/\.[a-z]+$/.test(name)) server.put(`lake/t/${name}`, readFileSync(join(lake.root, name)));
  };
  const row = (n: number) => ({ ts: hour + n, n });
  const adds = Array.from({ length: 120 }, (_, n) => lake.add([row(n)]));
  lake.commit(...adds);
  await lake.checkpoint('one part', adds);
  upload();
  const objects = storageOf(server, folder);
  const archive = await openOn(new MemoryDirectory(), () => lake.now, undefined, { objects });
  const text = "archive: { path: 's3://logs/lake/t/', format: delta }\n";
  const definition = await completed(archive, parseAgentFile(text, join(folder, 'web.yaml')));
  const store = await archive.agent('web', definition.schema);
  const attaching = new ArchiveAttaching({
    definition,
    archive: definition.archive!,
    store,
    dataFolder: undefined,
    objects,
    log: { info: () => {}, warn: () => {}, error: () => {} },
    now: () => lake.now,
    redefine: () => Promise.reject(new Error('the table has the same columns')),
  });
  const look = async (): Promise<number[]> => {
    const { problems } = await attaching.round(new AbortController().signal);
    expect(problems).toEqual([]);
    const lines = (await answer(store)).split('\n').filter((line) => line !== '');
    return lines.map((line) => (JSON.parse(line) as { n: number }).n);
  };
  expect((await look()).toSorted((a, b) => a - b)).toEqual(Array.from({ length: 120 }, (_, n) => n));
  const requests = server.seen.length;
  expect(await look()).toHaveLength(120);
  // The log is listed, and nothing else is asked for.
  expect(server.seen.length - requests).toBe(1);
  lake.commit(...adds.slice(0, 119).map((each) => lake.remove(each)), lake.add([row(200)]));
  upload();
  expect((await look()).toSorted((a, b) => a - b)).toEqual([119, 200]);
  await archive.close();
  await objects.close();
  await server.stop();
});
