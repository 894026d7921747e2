import { setImmediate } from 'node:timers/promises';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import type { Archive } from '../../../engine/archive/archive.js';
import { maintenanceIntervalMs, queryTimeoutMsDefault } from '../../../engine/core/limits.js';
import { MemoryDirectory } from '../../storage-doubles/memory-directory.js';
import type { Value } from '../../model/dataset.js';
import { answer, append, load, noon, openOn, schema } from './memory-archive.js';

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
});
afterEach(() => {
  vi.useRealTimers();
});

const rows = (from: number): Value[][] =>
  Array.from({ length: 5 }, (_, i) => [BigInt(noon - 1000 + from + i), 1n, null, `line ${from + i}`]);

/** Files under the names that they had while they were live. */
async function filesOf(directory: MemoryDirectory): Promise<string[]> {
  const files: string[] = [];
  for (const folder of await directory.list('web'))
    if (/^(dt=|hot$)/.test(folder))
      for (const name of await directory.list(`web/${folder}`))
        files.push(`${folder}/${name.replace(/\.left$/, '')}`);
  return files;
}

/** Lets the writer remove retired files, which in memory waits for nothing else. */
async function maintain(): Promise<void> {
  vi.advanceTimersByTime(maintenanceIntervalMs);
  await setImmediate();
}

async function opened(
  directory: MemoryDirectory,
  now: () => number,
  removalDelayMs: number,
): Promise<Archive> {
  return openOn(directory, now, undefined, { removalDelayMs });
}

it('a replaced file stays as long as a snapshot may read it, and no longer', async () => {
  const directory = new MemoryDirectory();
  const archive = await opened(directory, () => noon, 0);
  const store = await archive.agent('web', schema);
  for (let i = 0; i < 3; i++) await load(store, rows(i * 5));
  await append(store, rows(15), 'live');
  const replaced = await filesOf(directory);
  expect(replaced).toHaveLength(4);
  const whole = await answer(store);
  const snapshots = [await store.snapshot(), await store.snapshot()];
  await store.compact();
  const later = await store.snapshot();
  for (const snapshot of snapshots) {
    await maintain();
    expect(await filesOf(directory)).toEqual(expect.arrayContaining(replaced));
    snapshot.release();
  }
  await maintain();
  // The snapshot that was taken after the compaction does not need them.
  expect((await filesOf(directory)).filter((file) => replaced.includes(file))).toEqual([]);
  later.release();
  expect(await answer(store)).toBe(whole);
  await archive.close();
});

it('a replaced file stays for readers in other processes as long as a query may take', async () => {
  const directory = new MemoryDirectory();
  let now = noon;
  const archive = await opened(directory, () => now, queryTimeoutMsDefault);
  const store = await archive.agent('web', schema);
  for (let i = 0; i < 3; i++) await load(store, rows(i * 5));
  const replaced = await filesOf(directory);
  await store.compact();
  now += queryTimeoutMsDefault - 1;
  await maintain();
  expect(await filesOf(directory)).toEqual(expect.arrayContaining(replaced));
  now += 1;
  await maintain();
  expect((await filesOf(directory)).filter((file) => replaced.includes(file))).toEqual([]);
  await archive.close();
});
