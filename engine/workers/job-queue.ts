import { LogstrataError, isLogstrataError } from '../core/errors.js';
import { waitingMax } from '../core/limits.js';
import type { Task } from './task.js';

/** The error of jobs that are dropped when their query ends. Made once: its stack trace costs more than the rest of ending a query. */
const queryEnded = new LogstrataError('cancelled', 'the query has ended');

/** Called by a job between its steps: throws where the queue has ended, which the job's `ended` tells. */
export function throwIfEnded(ended: Int32Array | null): void {
  if (ended !== null && Atomics.load(ended, 0) !== 0) throw queryEnded;
}

/** The estimate of the first job of a queue (ms). */
const firstJobMs = 1;

/** A job that no thread has taken yet. */
export interface WaitingJob {
  readonly queue: JobQueue;
  readonly task: Pick<Task<never, unknown>, 'module' | 'name' | 'isLong'>;
  readonly job: unknown;
  readonly transfer: readonly ArrayBuffer[];
  readonly resolve: (result: unknown) => void;
  readonly reject: (error: Error) => void;
}

/** The worker pool, as queues see it. */
export interface JobRunner {
  /** Maximum number of threads. With 0 every task runs on the calling thread. */
  readonly threads: number;
  /** Bytes that the jobs of a queue may read on the calling thread; 0 once a thread has started. */
  readonly ownBytesMax: number;
  /** Called when the queue has one more job. */
  announce(queue: JobQueue): void;
}

/**
 * The jobs of one query or load. The next job is of the queue that has used the least time of threads, so that a query with few jobs does
 * not wait for those of others, however many there are.
 */
export class JobQueue {
  /** In the order in which they were added. */
  readonly waiting: WaitingJob[] = [];
  #ownBytes = 0;
  /** Number of jobs that threads have done, and how long they took (ms). */
  #done = 0;
  #doneMs = 0;
  /** Time of threads that it has used, counted from the time that others had used when it began to have jobs (ms). */
  #usedMs = 0;
  #ended: Error | undefined;
  #endedFlag: Int32Array | undefined;
  /** Tracked work that has not ended. */
  readonly #underWay = new Set<Promise<unknown>>();

  /** @param signal when aborted, jobs that no thread has taken are dropped */
  constructor(
    private readonly pool: JobRunner,
    private readonly signal?: AbortSignal,
  ) {
    signal?.addEventListener('abort', this.#onAbort, { once: true });
    if (signal?.aborted === true) this.#onAbort();
  }

  /** Number of threads that may run its jobs at once. With 0 the calling thread runs them. */
  get threadCount(): number {
    return this.pool.threads;
  }

  /** For jobs that may take long: memory that threads share, which is set once the queue has ended (see `throwIfEnded`). */
  get ended(): Int32Array {
    this.#endedFlag ??= new Int32Array(new SharedArrayBuffer(4)).fill(this.#ended === undefined ? 0 : 1);
    return this.#endedFlag;
  }

  /** How long (ms) its jobs have taken on average; a guess before the first. */
  get jobMs(): number {
    return this.#done === 0 ? Infinity : Math.max(this.#doneMs / this.#done, 0.01);
  }

  get usedMs(): number {
    return this.#usedMs;
  }

  /** Makes up for the time in which it had no jobs: it does not go before the others for longer because of that. */
  catchUp(usedMs: number): void {
    this.#usedMs = Math.max(this.#usedMs, usedMs);
  }

  /** Notes that a thread begins a job. Its time is estimated until it is known. Returns the estimate. */
  begins(): number {
    const ms = this.#done === 0 ? firstJobMs : this.jobMs;
    this.#usedMs += ms;
    return ms;
  }

  /** Notes that a thread has done a job, whose time was estimated when it began. */
  took(ms: number, estimatedMs: number): void {
    this.#done++;
    this.#doneMs += ms;
    this.#usedMs += ms - estimatedMs;
  }

  /**
   * Runs `task` on `job` on a thread. The buffers in `transfer` are moved to the thread and must not be used any more. A job that a thread
   * has taken is always waited for, because until it ends it may write to memory that it was given.
   *
   * @param readBytes maximum number of bytes that the job reads, if known. The calling thread may run a job that reads little.
   * @throws the error of the task; LogstrataError `limit` if too many jobs wait or a thread ran out of memory, `cancelled` (or the signal's
   * reason, if that is a `LogstrataError`) if the job was dropped, `closed` if the pool was closed meanwhile
   */
  async run<Job, Result>(
    task: Task<Job, Result>,
    job: Job,
    transfer: readonly ArrayBuffer[] = [],
    readBytes = Infinity,
  ): Promise<Result> {
    if (this.#ended !== undefined) throw this.#ended;
    if (this.pool.threads === 0 || this.#isLittle(readBytes)) return (await task.work(job)).result;
    if (this.waiting.length >= waitingMax) {
      throw new LogstrataError('limit', `${waitingMax} jobs are already waiting for the worker threads`);
    }
    return new Promise<Result>((resolve, reject) => {
      this.waiting.push({
        queue: this,
        task,
        job,
        transfer,
        resolve: (result) => resolve(result as Result),
        reject,
      });
      this.pool.announce(this);
    });
  }

  #isLittle(readBytes: number): boolean {
    if (this.#ownBytes + readBytes > this.pool.ownBytesMax) return false;
    this.#ownBytes += readBytes;
    return true;
  }

  /** Remembers work that uses the query's files, so that `underWay` can tell when the files are free. */
  track(work: Promise<unknown>): void {
    const ended: Promise<unknown> = work.catch(() => undefined).finally(() => this.#underWay.delete(ended));
    this.#underWay.add(ended);
  }

  /** Resolves when all tracked work has ended; null when there is none. */
  underWay(): Promise<unknown> | null {
    return this.#underWay.size === 0 ? null : Promise.all(this.#underWay);
  }

  /** Drops the jobs that no thread has taken. They and all later ones fail with `reason`. */
  end(reason: Error = queryEnded): void {
    this.signal?.removeEventListener('abort', this.#onAbort);
    this.#ended ??= reason;
    this.#endedFlag?.fill(1);
    for (const { reject } of this.waiting.splice(0)) reject(reason);
  }

  readonly #onAbort = (): void => {
    const reason: unknown = this.signal?.reason;
    this.end(
      isLogstrataError(reason)
        ? reason
        : new LogstrataError('cancelled', 'the work was cancelled', { cause: reason }),
    );
  };
}
