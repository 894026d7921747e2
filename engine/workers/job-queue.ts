import { LogstrataError, isLogstrataError } from '../terms/errors.js';
import { jobsWaitingMax } from '../terms/limits.js';
import type { Task } from './task.js';

/** A job that no thread has taken yet. */
export interface WaitingJob {
  readonly queue: JobQueue;
  /** Address of the module that exports `work`. */
  readonly module: string;
  readonly isLong: boolean;
  readonly job: unknown;
  readonly transfer: readonly ArrayBuffer[];
  readonly resolve: (result: unknown) => void;
  readonly reject: (error: Error) => void;
}

/** What runs the jobs of queues: the worker pool. */
export interface JobRunner {
  /** At most; with 0 every task is done by the thread that asks. */
  readonly threads: number;
  /** What the jobs of a queue may read that the thread which asks does by itself; 0 once a thread has begun. */
  readonly ownBytesMax: number;
  /** Says that the queue has one more job. */
  announce(queue: JobQueue): void;
}

/**
 * The jobs of one query, or of one load. The queues of a pool take turns, job by job, so that a query with few jobs does
 * not wait for all jobs of another.
 */
export class JobQueue {
  /** In the order in which they were given. */
  readonly waiting: WaitingJob[] = [];
  readonly #pool: JobRunner;
  readonly #signal: AbortSignal | undefined;
  #ownBytes = 0;
  #ended: Error | undefined;

  /** @param signal when it is aborted, jobs that no thread has taken are dropped */
  constructor(pool: JobRunner, signal?: AbortSignal) {
    this.#pool = pool;
    this.#signal = signal;
    signal?.addEventListener('abort', this.#onAbort, { once: true });
    if (signal?.aborted === true) this.#onAbort();
  }

  /** Threads that may do its jobs at once; with 0 the thread that asks does them. */
  get threads(): number {
    return this.#pool.threads;
  }

  /**
   * Has a thread do `task` on `job`. The buffers in `transfer` move there: the caller must not use them again. Throws what
   * the task throws, `limit` when too many jobs wait or a thread's memory did not suffice, `cancelled` (or the signal's own
   * reason, where that is a `LogstrataError`) when it was dropped, and `closed` when the pool is closed meanwhile. A job that
   * a thread has begun is waited for whatever happens: until then it may write where it was told to.
   *
   * @param readBytes how much the job reads at most, where that is known: of little the thread that asks may do it
   */
  async run<Job, Result>(
    task: Task<Job, Result>,
    job: Job,
    transfer: readonly ArrayBuffer[] = [],
    readBytes = Infinity,
  ): Promise<Result> {
    if (this.#ended !== undefined) throw this.#ended;
    if (this.#pool.threads === 0 || this.#isLittle(readBytes)) return (await task.work(job)).result;
    if (this.waiting.length >= jobsWaitingMax) {
      throw new LogstrataError('limit', `${jobsWaitingMax} jobs wait for the worker threads already`);
    }
    return new Promise<Result>((resolve, reject) => {
      this.waiting.push({
        queue: this,
        module: task.module.href,
        isLong: task.isLong === true,
        job,
        transfer,
        resolve: (result) => resolve(result as Result),
        reject,
      });
      this.#pool.announce(this);
    });
  }

  #isLittle(readBytes: number): boolean {
    if (this.#ownBytes + readBytes > this.#pool.ownBytesMax) return false;
    this.#ownBytes += readBytes;
    return true;
  }

  /** Drops the jobs that no thread has taken: they fail with `reason`, and so does what comes later. */
  end(reason: Error): void {
    this.#signal?.removeEventListener('abort', this.#onAbort);
    this.#ended ??= reason;
    for (const { reject } of this.waiting.splice(0)) reject(reason);
  }

  readonly #onAbort = (): void => {
    const reason: unknown = this.#signal?.reason;
    this.end(
      isLogstrataError(reason)
        ? reason
        : new LogstrataError('cancelled', 'the work was cancelled', { cause: reason }),
    );
  };
}
