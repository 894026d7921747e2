import { availableParallelism } from 'node:os';
import { Worker } from 'node:worker_threads';
import { LogstrataError } from '../errors.js';
import { workersDefaultMax } from '../limits.js';
import { builtModule, type Task } from './task.js';
import { errorOf, type Reply, type Request } from './thread-message.js';

const youngGenerationMb = 6;

interface Caller {
  readonly resolve: (result: unknown) => void;
  readonly reject: (error: Error) => void;
}

interface Thread {
  readonly worker: Worker;
  readonly jobs: Map<number, Caller>;
}

/** How many threads a process takes by itself: as many as there are cores, since the main thread mostly waits for them. */
export function workersDefault(): number {
  return Math.min(workersDefaultMax, Math.max(1, availableParallelism()));
}

/**
 * Threads that do tasks. A thread begins when there is a job that no idle one can take, stays for the next, and does not
 * keep the process alive while it has none. The pool holds no queue of its own: whoever gives it jobs bounds how many, by
 * `depth`.
 */
export class WorkerPool {
  private readonly started: Thread[] = [];
  private nextId = 0;
  private closed = false;

  /** @param threads at most; with 0 every task is done by the thread that asks */
  constructor(readonly threads: number) {}

  /** Row groups that one caller has under way: each takes tens of megabytes, so hardly more than there are threads. */
  get depth(): number {
    return this.threads === 0 ? 0 : Math.max(2, this.threads);
  }

  /**
   * Has a thread do `task` on `job`. The buffers in `transfer` move there: the caller must not use them again. Throws what
   * the task throws, `limit` when the thread's memory did not suffice, and `closed` when the pool is closed meanwhile.
   */
  async run<Job, Result>(
    task: Task<Job, Result>,
    job: Job,
    transfer: readonly ArrayBuffer[] = [],
  ): Promise<Result> {
    if (this.closed) throw new LogstrataError('closed', 'the worker threads have ended');
    if (this.threads === 0) return (await task.work(job)).result;
    const thread = this.leastBusy();
    const id = this.nextId++;
    return new Promise<Result>((resolve, reject) => {
      const request: Request = { id, module: task.module.href, job };
      thread.worker.postMessage(request, transfer);
      thread.worker.ref();
      thread.jobs.set(id, { resolve: (result) => resolve(result as Result), reject });
    });
  }

  private leastBusy(): Thread {
    let best: Thread | undefined;
    for (const thread of this.started)
      if (best === undefined || thread.jobs.size < best.jobs.size) best = thread;
    if (best !== undefined && (best.jobs.size === 0 || this.started.length === this.threads)) return best;
    return this.start();
  }

  private start(): Thread {
    // Options meant for this process, such as a debugger's port, are not for its threads.
    const worker = new Worker(new URL('./thread.js', builtModule(import.meta.url)), {
      execArgv: [],
      // Tasks work in typed arrays and make few objects, so that more room for new ones would only be touched in turn.
      resourceLimits: { maxYoungGenerationSizeMb: youngGenerationMb },
    });
    const thread: Thread = { worker, jobs: new Map() };
    worker.on('message', (reply: Reply) => settle(thread, reply));
    worker.on('error', (error) => this.lose(thread, describeLoss(error)));
    worker.on('exit', (code) => this.lose(thread, new Error(`a worker thread ended with code ${code}`)));
    this.started.push(thread);
    return thread;
  }

  private lose(thread: Thread, error: Error): void {
    const index = this.started.indexOf(thread);
    if (index >= 0) this.started.splice(index, 1);
    const reason = this.closed ? new LogstrataError('closed', 'the worker threads have ended') : error;
    for (const { reject } of thread.jobs.values()) reject(reason);
    thread.jobs.clear();
  }

  /** Ends the threads, and with them the jobs under way. */
  async close(): Promise<void> {
    this.closed = true;
    await Promise.all([...this.started].map(({ worker }) => worker.terminate()));
  }
}

function settle(thread: Thread, reply: Reply): void {
  const caller = thread.jobs.get(reply.id);
  if (caller === undefined) return;
  thread.jobs.delete(reply.id);
  if (thread.jobs.size === 0) thread.worker.unref();
  if ('failure' in reply) caller.reject(errorOf(reply.failure));
  else caller.resolve(reply.result);
}

function describeLoss(error: Error): Error {
  if ('code' in error && error.code === 'ERR_WORKER_OUT_OF_MEMORY')
    return new LogstrataError('limit', 'a worker thread ran out of memory', { cause: error });
  return error;
}
