import { orDeadline } from '../core/waiting.js';
import { LogstrataError, isLogstrataError } from '../core/errors.js';
import { guardedHeapMb, idleMs, guardedMsMax } from '../core/limits.js';
import { Semaphore } from './semaphore.js';
import type { Task } from './task.js';
import { WorkerPool } from './worker-pool.js';

/** What a job does, for the error if it is ended. */
export interface GuardedWork {
  /** As in "reading column x of /a/file". */
  readonly doing: string;
  readonly path: string;
}

/** Limits of a job on a guarded thread, and how long (ms) the thread stays idle. */
export interface GuardLimits {
  readonly msMax: number;
  readonly heapMb: number;
  readonly idleMs: number;
}

const limitsDefault: GuardLimits = { msMax: guardedMsMax, heapMb: guardedHeapMb, idleMs: idleMs };

/**
 * A thread for tasks on foreign bytes, which may be crafted to take forever or all memory. A job that exceeds a limit is ended together
 * with the thread, and the next job gets a new thread. Jobs run one at a time. The thread starts with the first job, ends after some idle
 * time, and does not keep the process alive while idle.
 *
 * The limit on memory covers the thread's JavaScript heap. Tasks have to limit the sizes of array buffers themselves.
 */
export class GuardedThread {
  readonly #limits: GuardLimits;
  readonly #turns = new Semaphore(1);
  #pool: WorkerPool | undefined;
  #idle: NodeJS.Timeout | undefined;
  #closed = false;

  constructor(limits: Partial<GuardLimits> = {}) {
    this.#limits = { ...limitsDefault, ...limits };
  }

  /** Runs `task` on `job` on the thread. Throws the error of the task, `limit` if the job was ended, `closed` after `close`. */
  async run<Job, Result>(task: Task<Job, Result>, job: Job, work: GuardedWork): Promise<Result> {
    return this.#turns.run(async () => {
      if (this.#closed) throw new LogstrataError('closed', 'the guarded thread has ended');
      clearTimeout(this.#idle);
      this.#pool ??= new WorkerPool(1, this.#limits.heapMb);
      try {
        return await this.#runWithin(this.#pool, task, job, work);
      } finally {
        this.#idle = setTimeout(() => void this.#end(), this.#limits.idleMs).unref();
      }
    });
  }

  async #runWithin<Job, Result>(
    pool: WorkerPool,
    task: Task<Job, Result>,
    job: Job,
    { doing, path }: GuardedWork,
  ): Promise<Result> {
    const { msMax, heapMb } = this.#limits;
    let lost: unknown;
    const answer = pool.run(task, job).catch((error: unknown) => {
      lost = error;
      return 'failed' as const;
    });
    const result = await orDeadline(answer, msMax);
    if (result === 'deadline') {
      await this.#end();
      throw new LogstrataError('limit', `${doing} took more than ${msMax / 1000} s and was stopped`, {
        path,
      });
    }
    if (result !== 'failed') return result;
    const isOutOfMemory = isLogstrataError(lost) && lost.code === 'limit' && lost.path === undefined;
    if (!isOutOfMemory) throw lost;
    const message = `${doing} took more than ${heapMb} MB of memory and was stopped`;
    throw new LogstrataError('limit', message, { path, cause: lost });
  }

  async #end(): Promise<void> {
    clearTimeout(this.#idle);
    const pool = this.#pool;
    this.#pool = undefined;
    await pool?.close();
  }

  /** Ends the thread, and with it the current job. */
  async close(): Promise<void> {
    this.#closed = true;
    await this.#end();
  }
}
