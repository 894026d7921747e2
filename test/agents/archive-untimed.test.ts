import { mkdirSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { ArchiveImport } from '../../agents/archive/archive-import.js';
import { silentLog } from '../../agents/collect/logs/collect-log.js';
import { WakeUp } from '../../agents/collect/logs/wake-up.js';
import { parseAgentFile } from '../../agents/definition/agent-file.js';
import { loadFiles } from '../../agents/load/load.js';
import { WorkerPool } from '../../engine/workers/worker-pool.js';
import { answer, openOn } from '../engine/store/memory-archive.js';
import { MemoryDirectory } from '../storage-doubles/memory-directory.js';
import { closeAtEnd, temporaryFolder } from './load/temporary.js';

const nowMs = Date.UTC(2026, 10, 28, 12);

it('a served archive does not store a file that a load would not store without being asked', async () => {
  const folder = await temporaryFolder();
  mkdirSync(join(folder, 'trail'));
  const put = (name: string, content: string): string => {
    const path = join(folder, 'trail', name);
    writeFileSync(path, content);
    utimesSync(path, nowMs / 1000 - 3600, nowMs / 1000 - 3600);
    return path;
  };
  // All records of one event, in an object of its own, are one line without any of the fields.
  const wrapped = put('wrapped.json', '{"Records":[{"time":"2026-11-17T10:00:00Z","n":1}]}\n');
  put('good.json', '{"time":"2026-11-17T10:00:00Z","n":2}\n{"n":3}\n');
  const source = [
    `archive: { path: '${folder}/trail/*.json', format: json }`,
    'fields: [{ name: time, timestamp: {} }, { name: n, type: int }]',
    '',
  ].join('\n');
  const definition = parseAgentFile(source, join(folder, 'trail.yaml'));
  const archive = await openOn(new MemoryDirectory(), () => nowMs);
  closeAtEnd(() => archive.close());
  const store = await archive.agent('trail', definition.schema);
  const importing = new ArchiveImport({
    definition,
    archive: definition.archive!,
    store,
    dataFolder: undefined,
    objects: undefined,
    workers: new WorkerPool(0),
    log: silentLog,
    now: () => nowMs,
    timezone: 'UTC',
    redefine: () => Promise.resolve(),
  });
  const stop = new AbortController();
  const wakeUp = new WakeUp();
  const running = importing.run(stop.signal, wakeUp);
  await expect.poll(() => importing.status()).toMatchObject({ files: 2, filesLeft: 0 });
  stop.abort();
  wakeUp.call();
  await running;
  const stored = (await answer(store, { limit: 10 })).trimEnd().split('\n');
  expect(stored.map((line) => (JSON.parse(line) as { n: number }).n).sort()).toEqual([2, 3]);
  const reason = 'none of the 1 records of';
  const { problemsListed } = importing.status();
  expect(problemsListed).toMatchObject([
    { path: wrapped, message: expect.stringContaining(reason) as string },
  ]);
  const accepts = { acceptUntimed: () => Promise.resolve(false) };
  const load = await loadFiles({
    store,
    definition,
    now: () => nowMs,
    timezone: 'UTC',
    files: [wrapped],
    ...accepts,
  });
  expect(load.files[0]!.error!.message).toBe(problemsListed[0]!.message);
});
