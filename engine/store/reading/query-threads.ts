import { LogstrataError } from '../../terms/errors.js';
import { FilterProbes } from './filter-probes.js';
import type { JobQueue } from '../../workers/job-queue.js';
import type { Task } from '../../workers/task.js';
import type { WorkerPool } from '../../workers/worker-pool.js';

/** The error of jobs that are dropped when their query ends. Made once: its stack trace costs more than the rest of ending a query. */
const queryEnded = new LogstrataError('cancelled', 'the query has ended');

/**
 * One query's access to the worker threads, for work that may wait for the disk or would block the event loop. The jobs of different
 * queries take turns.
 */
export class QueryThreads {
  readonly #queue: JobQueue;
  /** Asks filters. */
  readonly filters: FilterProbes;
  /** Tracked work that has not ended. */
  readonly #underWay = new Set<Promise<unknown>>();

  private constructor(pool: WorkerPool, signal: AbortSignal | undefined) {
    this.#queue = pool.queue(signal);
    this.filters = new FilterProbes(this.#queue, (work) => this.track(work));
  }

  /** Null where the pool has no threads. */
  static of(pool: WorkerPool | undefined, signal: AbortSignal | undefined): QueryThreads | null {
    return pool === undefined || pool.threads === 0 ? null : new QueryThreads(pool, signal);
  }

  get count(): number {
    return this.#queue.threads;
  }

  /**
   * Has a thread do a job. Settles only when no thread accesses the job's memory and files any more.
   *
   * @param transfer buffers of the job that move to the thread instead of being copied
   * @param readBytes upper bound of the bytes that the job reads, if known
   */
  run<Job, Result>(
    task: Task<Job, Result>,
    job: Job,
    transfer?: readonly ArrayBuffer[],
    readBytes?: number,
  ): Promise<Result> {
    return this.#queue.run(task, job, transfer, readBytes);
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

  /** Ends the query: drops its jobs that no thread has begun. */
  end(): void {
    this.#queue.end(queryEnded);
  }
}
