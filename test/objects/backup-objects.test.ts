import { mkdtempSync, rmSync, mkdirSync, writeFileSync } from 'node:fs';
import { hostname, tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, beforeEach, expect, it, onTestFinished } from 'vitest';
import type { AgentStore } from '../../engine/archive/agent-store.js';
import { openArchive } from '../../engine/archive/open-archive.js';
import { openBackupObjects } from '../../engine/archive/backup-folder.js';
import type { BackupResult } from '../../engine/maintenance/backup.js';
import { objectPartBytes } from '../../engine/core/limits.js';
import { run } from '../cli/here.js';
import { workFolder } from '../cli/process.js';
import { append, answer, load, noon, openOn, schema } from '../engine/store/memory-archive.js';
import { MemoryDirectory } from '../storage-doubles/memory-directory.js';
import { environment, storageOf } from './object-storage.js';
import { S3Server } from './s3-server.js';

let server: S3Server;

beforeAll(async () => {
  server = await S3Server.start();
});

afterAll(() => server.stop());

beforeEach(() => {
  server.fault = () => undefined;
  server.goesByIfNoneMatch = true;
  for (const key of server.objects.keys()) server.remove(key);
  server.uploads.clear();
  server.seen.length = 0;
});

const copy = (): string => server.pathOf('copies/one');

function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'logstrata-copy-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/** Updates the copy. */
async function backup(store: AgentStore): Promise<BackupResult> {
  const storage = storageOf(server, temporaryFolder());
  try {
    const target = await openBackupObjects(copy(), storage);
    try {
      return await store.backup(target);
    } finally {
      await target.close();
    }
  } finally {
    await storage.close();
  }
}

/** The answers of a data folder into which the objects were copied. */
async function restored(): Promise<string> {
  const folder = temporaryFolder();
  for (const [key, bytes] of server.objects) {
    const path = join(folder, key.slice('copies/one/'.length));
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, bytes);
  }
  const archive = await openArchive(folder, { mode: 'read', role: 'test', now: () => noon });
  try {
    const store = await archive.agent('web');
    expect((await store.verify()).damages).toEqual([]);
    return await answer(store, { limit: 1_000_000 });
  } finally {
    await archive.close();
  }
}

const rows = (from: number, count: number, text = 'a line'): (bigint | null | string)[][] =>
  Array.from({ length: count }, (_, i) => [
    BigInt(noon - 1_000_000 + from + i),
    1n,
    null,
    `${text} ${from + i}`,
  ]);

const keysWritten = (): string[] =>
  server.seen.filter(({ method }) => method === 'PUT').map(({ key }) => key);

it('a copy in objects is restored unchanged, and updated with new data only', async () => {
  const archive = await openOn(new MemoryDirectory());
  const store = await archive.agent('web', schema);
  await load(store, rows(0, 3000));
  await append(store, rows(3000, 10), 'live');
  const first = await backup(store);
  expect(first).toMatchObject({ records: 3010, filesCopied: 2 });
  expect(await restored()).toBe(await answer(store, { limit: 1_000_000 }));
  // The manifest is uploaded last, and the lock is removed.
  expect(keysWritten().at(-1)).toMatch(/^copies\/one\/web\/manifest-0\d{15}$/);
  expect([...server.objects.keys()].filter((key) => key.includes('lock'))).toEqual([]);

  expect(await backup(store)).toMatchObject({ filesCopied: 0, filesRemoved: 0 });
  // A hot file has grown, and since objects cannot grow, it is uploaded again.
  await append(store, rows(3010, 10), 'live');
  expect(await backup(store)).toMatchObject({ records: 3020, filesCopied: 1 });
  expect(await restored()).toBe(await answer(store, { limit: 1_000_000 }));
  await load(store, rows(4000, 100));
  await store.compact();
  expect(await backup(store)).toMatchObject({ records: 3120, filesRemoved: 2 });
  expect(await restored()).toBe(await answer(store, { limit: 1_000_000 }));
  await archive.close();
});

it('a file larger than a part is uploaded in parts, and is present completely or not at all', async () => {
  const archive = await openOn(new MemoryDirectory());
  const store = await archive.agent('web', schema);
  const noise = (i: number): string =>
    Array.from({ length: 40 }, (_, k) => ((i * 2654435761 + k * 40503) % 2 ** 32).toString(36)).join('');
  for (let i = 0; i < 4; i++)
    await load(
      store,
      Array.from({ length: 12_000 }, (_, k) => rows(i * 12_000 + k, 1, noise(i * 12_000 + k))[0]!),
      12_000,
    );
  await store.compact();
  const { bytesCopied } = await backup(store);
  expect(bytesCopied).toBeGreaterThan(objectPartBytes);
  expect(server.uploads.size).toBe(0);
  expect(await restored()).toBe(await answer(store, { limit: 1_000_000 }));
  await archive.close();
});

it('after a failed request at any moment the copy has its earlier state, and a repetition completes it', async () => {
  const archive = await openOn(new MemoryDirectory());
  const store = await archive.agent('web', schema);
  await load(store, rows(0, 200));
  await append(store, rows(200, 5), 'live');
  await backup(store);
  const before = await restored();
  const copied = server.objects;
  const startAnew = (): void => {
    for (const key of server.objects.keys()) server.remove(key);
    for (const [key, bytes] of copied) server.put(key, bytes);
  };
  await append(store, rows(205, 5), 'live');
  await load(store, rows(1000, 50));
  const after = await answer(store, { limit: 1_000_000 });
  let failures = 0;
  for (let failing = 0; ; failing++) {
    startAnew();
    let writes = 0;
    server.fault = ({ method }) =>
      method === 'PUT' && writes++ === failing
        ? { kind: 'status', status: 403, code: 'AccessDenied' }
        : undefined;
    const outcome = await backup(store).then(
      () => 'done' as const,
      (error: unknown) => error as { code?: string; message: string },
    );
    server.fault = () => undefined;
    if (outcome === 'done') break;
    failures++;
    expect(outcome.code).toBe('io');
    expect(outcome.message).toContain('s3:PutObject');
    // Hot files that have grown may be uploaded already: their batches belong to the newer state, which is also complete.
    const found = await restored();
    expect(found.split('\n').length).toBeGreaterThanOrEqual(before.split('\n').length);
    for (const line of before.split('\n')) expect(found).toContain(line);
  }
  expect(await restored()).toBe(after);
  // The lock, the manifest before, the segment, the hot file and the manifest have each failed once.
  expect(failures).toBe(5);
  await archive.close();
});

it.each([true, false])(
  'two processes do not update a copy at once (conditions are supported: %s)',
  async (keeps) => {
    server.goesByIfNoneMatch = keeps;
    const storage = storageOf(server, temporaryFolder());
    const target = await openBackupObjects(copy(), storage);
    const lock = 'copies/one/.backup-lock';
    if (keeps) {
      await expect(openBackupObjects(copy(), storage)).rejects.toMatchObject({
        code: 'locked',
        message: expect.stringContaining(`process ${process.pid} of ${hostname()}`) as string,
      });
    }
    await target.close();
    expect(server.objects.has(lock)).toBe(false);
    // The lock of a killed process of this machine is taken over; that of another machine is not.
    const holder = { id: 'x', pid: 2 ** 22 + 1, since: '2026-11-24T10:00:00Z' };
    server.put(lock, Buffer.from(JSON.stringify({ ...holder, host: hostname() })));
    await (await openBackupObjects(copy(), storage)).close();
    if (keeps) {
      server.put(lock, Buffer.from(JSON.stringify({ ...holder, host: 'elsewhere' })));
      await expect(openBackupObjects(copy(), storage)).rejects.toThrow(
        /of elsewhere .*remove s3:\/\/logs\/copies\/one\/\.backup-lock/,
      );
    }
    await storage.close();
  },
);

it('the command copies all agents and the tokens, and refuses to restore from anything but a copy', async () => {
  const folder = workFolder();
  writeFileSync(join(folder, 'config.yaml'), `s3: { endpoint: '${server.endpoint}' }\n`);
  await run(folder, ['load', 'app', 'data/samples/app.log']);
  await run(folder, ['token', 'new', '--name', 'one']);
  const command = (place: string): ReturnType<typeof run> => run(folder, ['backup', place], '', environment);
  const done = await command(`${copy()}/`);
  expect(done.code, done.stderr).toBe(0);
  expect(done.stdout).toMatch(/^ok {7}app: [\d,]+ records in \d files?, .* copied$/m);
  const keys = [...server.objects.keys()];
  expect(keys.filter((key) => key.startsWith('copies/one/.tokens/'))).toHaveLength(1);
  server.put('other/readme.txt', Buffer.from('x'));
  const refused = await command(server.pathOf('other'));
  expect([refused.code, refused.stderr]).toEqual([
    1,
    expect.stringContaining('s3://logs/other contains "readme.txt" but no records'),
  ]);
  const bare = await command('s3://logs');
  expect([bare.code, bare.stderr]).toEqual([2, expect.stringContaining('s3://logs has no prefix')]);
});
