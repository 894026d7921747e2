import { availableParallelism } from 'node:os';
import { Worker } from 'node:worker_threads';
import { memoryToLend } from '../memory/shared-memory.js';
import { LogstrataError } from '../terms/errors.js';
import { workersDefaultMax } from '../terms/limits.js';
import { JobQueue, type JobRunner, type WaitingJob } from './job-queue.js';
import { builtModule, type Task } from './task.js';
import { errorOf, type JobReply, type JobRequest } from './thread-message.js';

const youngGenerationMb = 6;

interface Thread {
  readonly worker: Worker;
  /** The jobs it was handed and has not answered, by their numbers. */
  readonly jobs: Map<number, WaitingJob>;
}

/** How many threads a process starts unless it is told otherwise: one for each core, because the main thread mostly waits for them. */
export function workersDefault(): number {
  return Math.min(workersDefaultMax, Math.max(1, availableParallelism()));
}

/**
 * Threads that do tasks. A thread begins when there is a job that no idle one can take, stays for the next, and does not
 * keep the process alive while it has none. Each owner of jobs has a queue, and the queues take turns.
 */
export class WorkerPool implements JobRunner {
  private readonly started: Thread[] = [];
  /** Queues with waiting jobs, the one whose turn is next first. */
  private readonly turns: JobQueue[] = [];
  private readonly own: JobQueue;
  private nextId = 0;
  private closed = false;

  /**
   * @param threads at most; with 0 every task is done by the thread that asks
   * @param heapMb what the objects of a thread may take; without it, as much as V8 gives
   * @param bytesBeforeThreads what the jobs of a queue may read before a thread begins for them: for a process that ends with its answer
   */
  constructor(
    readonly threads: number,
    private readonly heapMb?: number,
    private readonly bytesBeforeThreads = 0,
  ) {
    this.own = new JobQueue(this);
  }

  get ownBytesMax(): number {
    return this.started.length > 0 ? 0 : this.bytesBeforeThreads;
  }

  /** How many row groups one caller may have under way. Each takes tens of megabytes, so there are hardly more than threads. */
  get depth(): number {
    return this.threads === 0 ? 0 : Math.max(2, this.threads);
  }

  /** Threads that have a job. */
  get busy(): number {
    return this.started.reduce((sum, { jobs }) => sum + (jobs.size > 0 ? 1 : 0), 0);
  }

  /** Jobs that wait for a thread. */
  get waiting(): number {
    return this.turns.reduce((sum, queue) => sum + queue.waiting.length, 0);
  }

  /** A queue for the jobs of one owner, whose jobs are dropped when `signal` is aborted. */
  queue(signal?: AbortSignal): JobQueue {
    const queue = new JobQueue(this, signal);
    if (this.closed) queue.end(threadsEnded());
    return queue;
  }

  /** As `JobQueue.run`, in the one queue that all loads share. */
  run<Job, Result>(
    task: Task<Job, Result>,
    job: Job,
    transfer: readonly ArrayBuffer[] = [],
  ): Promise<Result> {
    return this.own.run(task, job, transfer);
  }

  /**
   * Begins every thread that has not begun, and has each do a job first. Until then, and else from its first job on, a thread has its modules
   * to load, which takes a hundred milliseconds. Resolves when all have done so; throws what the task throws.
   */
  async begin<Job>({ module }: Task<Job, unknown>, job: Job): Promise<void> {
    const begun: Promise<unknown>[] = [];
    while (!this.closed && this.started.length < this.threads) {
      const thread = this.start();
      const first = { queue: this.own, module: module.href, isLong: true, job, transfer: [] };
      begun.push(new Promise((resolve, reject) => this.hand(thread, { ...first, resolve, reject })));
    }
    await Promise.all(begun);
  }

  /** Gives the job its turn. */
  announce(queue: JobQueue): void {
    if (this.closed) queue.end(threadsEnded());
    if (queue.waiting.length === 1) this.turns.push(queue);
    this.dispatch();
  }

  /** Hands out jobs, one of each queue in turn, while there is a thread for them. */
  private dispatch(): void {
    for (;;) {
      const queue = this.turns[0];
      if (queue === undefined) return;
      if (queue.waiting.length === 0) {
        this.turns.shift();
        continue;
      }
      const thread = this.idleThread() ?? this.threadBusyWith(queue);
      if (thread === undefined) return;
      this.turns.shift();
      this.hand(thread, queue.waiting.shift()!);
      if (queue.waiting.length > 0) this.turns.push(queue);
    }
  }

  private idleThread(): Thread | undefined {
    const idle = this.started.find((thread) => thread.jobs.size === 0);
    return idle ?? (this.started.length < this.threads ? this.start() : undefined);
  }

  /**
   * A thread that may be sent a second job before it has answered the first, so that it goes on without waiting for this thread. Only where
   * no other queue waits, and behind a short job of the same queue: behind another job the second one could wait long.
   */
  private threadBusyWith(queue: JobQueue): Thread | undefined {
    if (this.turns.length > 1) return undefined;
    return this.started.find(({ jobs }) => {
      const [job] = jobs.values();
      return jobs.size === 1 && job!.queue === queue && !job!.isLong;
    });
  }

  private hand(thread: Thread, waiting: WaitingJob): void {
    const id = this.nextId++;
    const request: JobRequest = { id, module: waiting.module, job: waiting.job };
    try {
      thread.worker.postMessage(request, waiting.transfer);
    } catch (error) {
      // A job that can't be copied is a bug of its caller: only that caller is told.
      waiting.reject(error as Error);
      return;
    }
    thread.worker.ref();
    thread.jobs.set(id, waiting);
  }

  private start(): Thread {
    // Options meant for this process, such as a debugger's port, are not for its threads.
    const worker = new Worker(new URL('./thread.js', builtModule(import.meta.url)), {
      execArgv: [],
      workerData: memoryToLend(),
      // Tasks make few objects. With more room for new ones, V8 would use all of that room before it collects any.
      resourceLimits: {
        maxYoungGenerationSizeMb: youngGenerationMb,
        ...(this.heapMb === undefined ? {} : { maxOldGenerationSizeMb: this.heapMb }),
      },
    });
    const thread: Thread = { worker, jobs: new Map() };
    worker.on('message', (reply: JobReply) => this.settle(thread, reply));
    worker.on('error', (error) => this.lose(thread, describeLoss(error)));
    worker.on('exit', (code) => this.lose(thread, new Error(`a worker thread ended with code ${code}`)));
    this.started.push(thread);
    return thread;
  }

  private settle(thread: Thread, reply: JobReply): void {
    const waiting = thread.jobs.get(reply.id);
    if (waiting === undefined) return;
    thread.jobs.delete(reply.id);
    // After `close` the thread stays referenced, so that the process lives until the thread has ended.
    if (thread.jobs.size === 0 && !this.closed) thread.worker.unref();
    this.dispatch();
    if ('failure' in reply) waiting.reject(errorOf(reply.failure));
    else waiting.resolve(reply.result);
  }

  private lose(thread: Thread, error: Error): void {
    const index = this.started.indexOf(thread);
    if (index >= 0) this.started.splice(index, 1);
    const reason = this.closed ? threadsEnded() : error;
    for (const { reject } of thread.jobs.values()) reject(reason);
    thread.jobs.clear();
    if (!this.closed) this.dispatch();
  }

  /** Ends the threads, and with them the jobs under way. */
  async close(): Promise<void> {
    this.closed = true;
    for (const queue of [this.own, ...this.turns.splice(0)]) queue.end(threadsEnded());
    await Promise.all([...this.started].map(({ worker }) => worker.terminate()));
  }
}

function threadsEnded(): LogstrataError {
  return new LogstrataError('closed', 'the worker threads have ended');
}

function describeLoss(error: Error): Error {
  if ('code' in error && error.code === 'ERR_WORKER_OUT_OF_MEMORY')
    return new LogstrataError('limit', 'a worker thread ran out of memory', { cause: error });
  return error;
}
