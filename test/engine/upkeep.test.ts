import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { Archive } from '../../engine/archive/archive.js';
import { upkeepMsMax } from '../../engine/core/limits.js';
import { MemoryDirectory } from '../storage-doubles/memory-directory.js';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

it('an archive is healthy until a round of maintenance does not end', async () => {
  let hangs = false;
  const archive = new Archive(
    new MemoryDirectory(),
    { mode: 'write', role: 'serve' },
    {
      lock: () => (hangs ? new Promise(() => {}) : Promise.resolve(undefined)),
      connect: () =>
        Promise.resolve({
          holder: { role: 'load', pid: 1 },
          alive: false,
          request: () => Promise.reject(new Error('nothing is asked')),
          close: () => Promise.resolve(),
        }),
    },
  );
  await archive.start();
  await vi.advanceTimersByTimeAsync(2 * upkeepMsMax);
  expect(archive.isWell()).toBe(true);
  hangs = true;
  await vi.advanceTimersByTimeAsync(upkeepMsMax);
  expect(archive.isWell()).toBe(true);
  await vi.advanceTimersByTimeAsync(2000);
  expect(archive.isWell()).toBe(false);
});
