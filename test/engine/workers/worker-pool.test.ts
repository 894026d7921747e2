import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, afterEach, describe, expect, it } from 'vitest';
import { DamageError, LogstrataError } from '../../../engine/core/errors.js';
import { waitingMax } from '../../../engine/core/limits.js';
import {
  dropInOrder,
  finishInOrder,
  mapInOrder,
  startInOrder,
  type Pending,
} from '../../../engine/workers/in-order.js';
import type { JobQueue } from '../../../engine/workers/job-queue.js';
import type { Task } from '../../../engine/workers/task.js';
import { WorkerPool } from '../../../engine/workers/worker-pool.js';
import { root } from '../../tidy/source-files.js';

interface Job {
  readonly kind: 'where' | 'double' | 'limit' | 'damage' | 'bug' | 'exit' | 'wait' | 'hold' | 'spin';
  readonly values?: Float64Array;
  /** The gates that `hold` waits for. */
  readonly gate?: Int32Array;
}

const folder = mkdtempSync(join(tmpdir(), 'logstrata-workers-'));
const file = join(folder, 'task.mjs');
const built = (path: string): string => pathToFileURL(join(root, 'dist', path)).href;
writeFileSync(
  file,
  `import { threadId } from 'node:worker_threads';
import { DamageError, LogstrataError } from '${built('engine/core/errors.js')}';
export async function work({ kind, values, gate }) {
  if (kind === 'limit') throw new LogstrataError('limit', 'too much', { path: 'a/b', offset: 17 });
  if (kind === 'damage') throw new DamageError('bad bytes', { path: 'c', offset: 3, rowGroup: 2, column: 'x' });
  if (kind === 'bug') throw new TypeError('a bug of ours');
  if (kind === 'exit') process.exit(3);
  if (kind === 'wait') await new Promise((resolve) => setTimeout(resolve, 3_600_000));
  if (kind === 'hold') Atomics.wait(gate, 0, 0);
  if (kind === 'spin') for (const endMs = performance.now() + values[0]; performance.now() < endMs; );
  if (kind === 'double') {
    const doubled = values.map((value) => value * 2);
    return { result: doubled, transfer: [doubled.buffer] };
  }
  return { result: threadId, transfer: [] };
}
`,
);

const task: Task<Job, unknown> = {
  module: pathToFileURL(file),
  work: ({ kind }) => ({ result: `${kind} here`, transfer: [] }),
};

/** Releases every `hold` job with this gate, also those that come later. */
function open(gate: Int32Array): void {
  Atomics.store(gate, 0, 1);
  Atomics.notify(gate, 0);
}

const pools: WorkerPool[] = [];

function poolOf(threads: number): WorkerPool {
  const pool = new WorkerPool(threads);
  pools.push(pool);
  return pool;
}

afterEach(async () => {
  for (const pool of pools.splice(0)) await pool.close();
});
afterAll(() => rmSync(folder, { recursive: true }));

describe('a worker pool', () => {
  it('runs jobs on at most the allowed number of threads, and transfers the memory', async () => {
    const pool = poolOf(2);
    const ids = await Promise.all(Array.from({ length: 9 }, () => pool.run(task, { kind: 'where' })));
    expect(new Set(ids).size).toBe(2);
    expect(ids).not.toContain(0);
    const values = new Float64Array([1, 2.5, -3]);
    expect(await pool.run(task, { kind: 'double', values }, [values.buffer])).toEqual(
      new Float64Array([2, 5, -6]),
    );
    expect(values.length).toBe(0);
  });

  it('reuses an idle thread', async () => {
    const pool = poolOf(4);
    const first = await pool.run(task, { kind: 'where' });
    expect(await pool.run(task, { kind: 'where' })).toBe(first);
  });

  it('starts all its threads at once if told to, before there is a job for them', async () => {
    const pool = poolOf(3);
    const gate = new Int32Array(new SharedArrayBuffer(4));
    const begun = pool.begin(task, { kind: 'hold', gate });
    expect(pool.busy).toBe(3);
    const next = pool.run(task, { kind: 'where' });
    expect(pool.waiting).toBe(1);
    open(gate);
    await begun;
    expect(await next).toBeGreaterThan(0);
    // The threads have already started, so nothing is left to do.
    await pool.begin(task, { kind: 'bug' });
    await expect(poolOf(1).begin(task, { kind: 'limit' })).rejects.toMatchObject({ code: 'limit' });
    await poolOf(0).begin(task, { kind: 'bug' });
  });

  it('without threads runs jobs on the calling thread', async () => {
    expect(await poolOf(0).run(task, { kind: 'where' })).toBe('where here');
  });

  it('starts no thread for jobs that read little, and runs none on the calling thread once a thread has started', async () => {
    const pool = new WorkerPool(2, undefined, 100);
    pools.push(pool);
    const [queue, other] = [pool.queue(), pool.queue()];
    const where = (asked: JobQueue, readBytes?: number): Promise<unknown> =>
      asked.run(task, { kind: 'where' }, [], readBytes);
    for (const readBytes of [60, 40, 0]) expect(await where(queue, readBytes)).toBe('where here');
    // Each queue may read that much.
    expect(await where(other, 99)).toBe('where here');
    expect(await where(queue, 1)).toBeGreaterThan(0);
    expect(await where(other, 1)).toBeGreaterThan(0);
    const unknown = new WorkerPool(1, undefined, Infinity);
    pools.push(unknown);
    expect(await where(unknown.queue())).toBe('where here');
  });

  it('rethrows expected failures of a task as they are, and unexpected ones with their place in the thread', async () => {
    const pool = poolOf(1);
    const limit = await pool.run(task, { kind: 'limit' }).catch((error: unknown) => error);
    expect(limit).toBeInstanceOf(LogstrataError);
    expect(limit).toMatchObject({ code: 'limit', message: 'too much', path: 'a/b', offset: 17 });
    const damage = await pool.run(task, { kind: 'damage' }).catch((error: unknown) => error);
    expect(damage).toBeInstanceOf(DamageError);
    expect(damage).toMatchObject({ code: 'damaged', path: 'c', offset: 3, rowGroup: 2, column: 'x' });
    const bug = await pool.run(task, { kind: 'bug' }).catch((error: unknown) => error);
    expect(bug).not.toBeInstanceOf(LogstrataError);
    expect(bug).toMatchObject({ message: 'a bug of ours' });
    expect((bug as Error).stack).toContain('task.mjs');
    expect(await pool.run(task, { kind: 'where' })).toBeGreaterThan(0);
  });

  it('fails the jobs of a thread that ends, and starts another thread', async () => {
    const pool = poolOf(1);
    const lost = pool.run(task, { kind: 'exit' });
    const behind = pool.run(task, { kind: 'where' });
    await expect(lost).rejects.toThrow('ended with code 3');
    await expect(behind).rejects.toThrow('ended with code 3');
    expect(await pool.run(task, { kind: 'where' })).toBeGreaterThan(0);
  });

  it('that is closed fails the jobs under way, and accepts no more', async () => {
    const pool = poolOf(1);
    const waiting = pool.run(task, { kind: 'wait' });
    const failure = expect(waiting).rejects.toMatchObject({ code: 'closed' });
    await pool.close();
    await failure;
    await expect(pool.run(task, { kind: 'where' })).rejects.toMatchObject({ code: 'closed' });
  });

  it('serves the owners that have used the least time of threads first, whoever has how many jobs waiting', async () => {
    const pool = poolOf(1);
    const many = pool.queue();
    await many.run(task, { kind: 'spin', values: Float64Array.of(300) });
    const gate = new Int32Array(new SharedArrayBuffer(4));
    const held = pool.run({ ...task, isLong: true }, { kind: 'hold', gate });
    const done: string[] = [];
    const give = (queue: JobQueue, name: string): Promise<unknown> =>
      queue.run(task, { kind: 'where' }).then(() => done.push(name));
    const few = pool.queue();
    const all = ['a0', 'a1', 'a2', 'a3'].map((name) => give(many, name));
    all.push(give(few, 'b0'), give(few, 'b1'), give(pool.queue(), 'c0'));
    open(gate);
    await held;
    await Promise.all(all);
    expect(done).toEqual(['b0', 'c0', 'b1', 'a0', 'a1', 'a2', 'a3']);
  });

  it('gives a thread no job of a second owner while its first job may take long', async () => {
    const pool = poolOf(2);
    const gate = new Int32Array(new SharedArrayBuffer(4));
    const held = pool.queue().run(task, { kind: 'hold', gate });
    const other = pool.queue();
    for (let i = 0; i < 20; i++)
      await Promise.all([other.run(task, { kind: 'where' }), other.run(task, { kind: 'where' })]);
    open(gate);
    await held;
  });

  it('lets no job wait behind a long one while another thread has only short jobs', async () => {
    const pool = poolOf(2);
    const gate = new Int32Array(new SharedArrayBuffer(4));
    const held = pool.run({ ...task, isLong: true }, { kind: 'hold', gate });
    // A job that was given to the held thread would never end.
    await Promise.all(Array.from({ length: 20 }, () => pool.run(task, { kind: 'where' })));
    open(gate);
    await held;
  });

  it('drops the waiting jobs of an owner that is cancelled, with its own reason, and waits for those that have begun', async () => {
    const pool = poolOf(1);
    const gate = new Int32Array(new SharedArrayBuffer(4));
    const abort = new AbortController();
    const queue = pool.queue(abort.signal);
    let isHeldDone = false;
    const held = queue.run(task, { kind: 'hold', gate }).then(() => (isHeldDone = true));
    const second = queue.run(task, { kind: 'where' });
    const waiting = queue.run(task, { kind: 'where' });
    const untouched = pool.queue().run(task, { kind: 'where' });
    abort.abort(new LogstrataError('timeout', 'the time is over'));
    await expect(waiting).rejects.toMatchObject({ code: 'timeout' });
    await expect(queue.run(task, { kind: 'where' })).rejects.toMatchObject({ code: 'timeout' });
    expect(isHeldDone).toBe(false);
    open(gate);
    await Promise.all([held, second, untouched]);
    await expect(pool.queue(AbortSignal.abort()).run(task, { kind: 'where' })).rejects.toMatchObject({
      code: 'cancelled',
    });
  });

  it('limits how many jobs wait', async () => {
    const pool = poolOf(1);
    const gate = new Int32Array(new SharedArrayBuffer(4));
    const queue = pool.queue();
    const jobs = Array.from({ length: waitingMax + 2 }, () => queue.run(task, { kind: 'hold', gate }));
    await expect(queue.run(task, { kind: 'where' })).rejects.toMatchObject({ code: 'limit' });
    open(gate);
    await Promise.all(jobs);
  });

  it('rejects a job that cannot be cloned, and continues', async () => {
    const pool = poolOf(1);
    const values = (() => 1) as unknown as Float64Array;
    await expect(pool.run(task, { kind: 'double', values })).rejects.toThrow('could not be cloned');
    expect(await pool.run(task, { kind: 'where' })).toBeGreaterThan(0);
  });

  it('does not keep the process alive once its jobs are done', async () => {
    const script = `import { WorkerPool } from '${built('engine/workers/worker-pool.js')}';
const task = { module: new URL('${task.module.href}'), work: () => ({}) };
console.log(await new WorkerPool(2).run(task, { kind: 'where' }));`;
    const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '-e', script]);
    expect(stdout).toBe('1\n');
  });

  it('keeps the process alive while the pool is being closed, even if a job has just ended', async () => {
    const script = `import { WorkerPool } from '${built('engine/workers/worker-pool.js')}';
const pool = new WorkerPool(1);
const task = { module: new URL('${pathToFileURL(file).href}') };
await pool.run(task, { kind: 'where' });
const job = pool.run(task, { kind: 'where' });
// The thread answers now, and the answer is read only after the pool was told to close.
Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 300);
const closed = pool.close();
console.log(await job.catch(({ code }) => code));
await closed;
console.log('closed');`;
    const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '-e', script]);
    expect(stdout).toMatch(/^(1|closed)\nclosed\n$/);
  });
});

describe('work in order', () => {
  it('is consumed in the order in which it was begun, and never exceeds the limit of concurrent jobs', async () => {
    for (const depth of [0, 1, 3]) {
      const order: Pending[] = [];
      const consumed: number[] = [];
      let underWay = 0;
      let most = 0;
      for (let i = 0; i < 20; i++) {
        const start = async (): Promise<number> => {
          most = Math.max(most, ++underWay);
          for (let turn = 0; turn < (i * 7) % 5; turn++) await Promise.resolve();
          return i;
        };
        const consume = async (result: number): Promise<void> => {
          await Promise.resolve();
          underWay--;
          consumed.push(result);
        };
        await startInOrder(order, depth, start, consume);
      }
      await finishInOrder(order);
      expect(consumed).toEqual(Array.from({ length: 20 }, (_, i) => i));
      expect(most).toBe(Math.max(1, depth));
    }
  });

  it('reports a failure when its turn comes, and does not consume dropped results', async () => {
    const order: Pending[] = [];
    const consumed: number[] = [];
    const consume = (result: number): Promise<void> => {
      consumed.push(result);
      return Promise.resolve();
    };
    await startInOrder(order, 3, () => Promise.resolve(1), consume);
    await startInOrder(order, 3, () => Promise.reject(new Error('the second')), consume);
    await startInOrder(order, 3, () => Promise.resolve(3), consume);
    await expect(finishInOrder(order)).rejects.toThrow('the second');
    await dropInOrder(order);
    await finishInOrder(order);
    expect(consumed).toEqual([1]);
  });

  it('releases results that were never consumed, once they are done', async () => {
    const order: Pending[] = [];
    const consume = (): Promise<void> => Promise.reject(new Error('no room'));
    const discarded: number[] = [];
    let ended = 0;
    for (let i = 0; i < 4; i++) {
      const start = async (): Promise<number> => {
        await new Promise((resolve) => setTimeout(resolve, 5 * (4 - i)));
        ended++;
        if (i === 2) throw new Error('the third');
        return i;
      };
      await startInOrder(order, 4, start, consume, (result) => discarded.push(result));
    }
    await expect(finishInOrder(order)).rejects.toThrow('no room');
    await dropInOrder(order);
    expect([ended, discarded]).toEqual([4, [1, 3]]);
  });

  it('is done for several items of a list at once, and its results are in the order of the list', async () => {
    let underWay = 0;
    let most = 0;
    const double = async (item: number, i: number): Promise<number> => {
      most = Math.max(most, ++underWay);
      await new Promise((resolve) => setTimeout(resolve, (item * 7) % 5));
      underWay--;
      return item + i;
    };
    const items = Array.from({ length: 10 }, (_, i) => i);
    expect(await mapInOrder(items, 3, double)).toEqual(items.map((item) => 2 * item));
    expect(most).toBe(3);
  });

  it('on a list ends with the first failure, but not before the work in progress', async () => {
    const ended: number[] = [];
    const work = async (item: number): Promise<void> => {
      await new Promise((resolve) => setTimeout(resolve, 5 * (4 - item)));
      ended.push(item);
      if (item === 1) throw new Error('the second');
    };
    await expect(mapInOrder([0, 1, 2, 3, 4, 5, 6], 3, work)).rejects.toThrow('the second');
    expect(ended.toSorted()).toEqual([0, 1, 2, 3]);
  });
});
