import { afterEach, expect, it } from 'vitest';
import { GuardedThread } from '../../engine/workers/guarded-thread.js';
import type { Task } from '../../engine/workers/task.js';
import { LogstrataError } from '../../engine/core/errors.js';

/** A task whose module is this text; only the guarded thread may run it. */
function task(work: string): Task<unknown, unknown> {
  return {
    module: new URL(
      `data:text/javascript,${encodeURIComponent(`export async function work(job) { ${work} }`)}`,
    ),
    work: () => {
      throw new Error('done by the thread that asks');
    },
  };
}

const adding = task('return { result: job + 1, transfer: [] };');
const spinning = task('for (;;);');
const waiting = task('await new Promise(() => {});');
const hoarding = task('const held = []; for (;;) held.push(new Array(1000).fill(held.length));');
const failing = task('throw new Error("of the task");');
const about = { doing: 'reading column "x" of /archive/a.parquet', path: '/archive/a.parquet' };

let thread: GuardedThread | undefined;
afterEach(() => thread?.close());

it.each([
  ['loops for ever', spinning],
  ['waits for ever', waiting],
])('fails a job that %s, by name, and does the next ones on another thread', async (_, stuck) => {
  thread = new GuardedThread({ msMax: 4000 });
  expect(await thread.run(adding, 1, about)).toBe(2);
  const [ended, next] = await Promise.allSettled([
    thread.run(stuck, null, about),
    thread.run(adding, 2, about),
  ]);
  const reason = ended.status === 'rejected' ? (ended.reason as unknown) : null;
  expect(reason).toBeInstanceOf(LogstrataError);
  expect(reason).toMatchObject({
    code: 'limit',
    path: about.path,
    message: 'reading column "x" of /archive/a.parquet took more than 4 s and was stopped',
  });
  expect(next).toEqual({ status: 'fulfilled', value: 3 });
});

it('fails a job that exhausts the memory, by name, and does the next on another thread', async () => {
  thread = new GuardedThread({ heapMb: 32 });
  await expect(thread.run(hoarding, null, about)).rejects.toMatchObject({
    code: 'limit',
    path: about.path,
    message: expect.stringContaining('took more than 32 MB of memory') as string,
  });
  expect(await thread.run(adding, 3, about)).toBe(4);
});

it('rethrows errors of a task, ends when it is idle, starts again, and does nothing once it is closed', async () => {
  thread = new GuardedThread({ idleMs: 1 });
  await expect(thread.run(failing, null, about)).rejects.toThrow('of the task');
  for (let i = 0; i < 3; i++) {
    expect(await thread.run(adding, i, about)).toBe(i + 1);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  await thread.close();
  await expect(thread.run(adding, 1, about)).rejects.toMatchObject({ code: 'closed' });
});
