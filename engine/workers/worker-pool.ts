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
  /** Jobs that were sent to the thread and are not answered yet, by id. */
  readonly jobs: Map<number, WaitingJob>;
}

/** Number of threads unless configured otherwise: one per core, because the main thread mostly waits for them. */
export function workersDefault(): number {
  return Math.min(workersDefaultMax, Math.max(1, availableParallelism()));
}

/**
 * A pool of threads that run tasks. A thread is started when there is a job and no idle thread. It stays for further jobs, and does not
 * keep the process alive while idle. Each owner of jobs has a queue, and the queues take turns.
 */
export class WorkerPool implements JobRunner {
  private readonly started: Thread[] = [];
  /** Queues with waiting jobs. The first one is next. */
  private readonly turns: JobQueue[] = [];
  private readonly own: JobQueue;
  private nextId = 0;
  private closed = false;

  /**
   * @param threads maximum number of threads; with 0 every task runs on the calling thread
   * @param heapMb limit on the JavaScript heap of a thread; V8's default if absent
   * @param bytesBeforeThreads bytes that the jobs of a queue may read on the calling thread before a thread is started, for a process that
   * ends after its answer
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

  /** Number of row groups that one caller should have under way. Each takes tens of megabytes, so it is about the number of threads. */
  get depth(): number {
    return this.threads === 0 ? 0 : Math.max(2, this.threads);
  }

  /** Number of threads that have a job. */
  get busy(): number {
    return this.started.reduce((sum, { jobs }) => sum + (jobs.size > 0 ? 1 : 0), 0);
  }

  /** Number of jobs that wait for a thread. */
  get waiting(): number {
    return this.turns.reduce((sum, queue) => sum + queue.waiting.length, 0);
  }

  /** A queue for the jobs of one owner. They are dropped when `signal` is aborted. */
  queue(signal?: AbortSignal): JobQueue {
    const queue = new JobQueue(this, signal);
    if (this.closed) queue.end(threadsEnded());
    return queue;
  }

  /** As `JobQueue.run`, in the queue that all loads share. */
  run<Job, Result>(
    task: Task<Job, Result>,
    job: Job,
    transfer: readonly ArrayBuffer[] = [],
  ): Promise<Result> {
    return this.own.run(task, job, transfer);
  }

  /**
   * Starts all threads that have not started, and has each run one job. A thread loads its modules with its first job, which takes a
   * hundred milliseconds. Resolves when all are done; throws the error of the task.
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

  /** Registers a queue that has one more job. */
  announce(queue: JobQueue): void {
    if (this.closed) queue.end(threadsEnded());
    if (queue.waiting.length === 1) this.turns.push(queue);
    this.dispatch();
  }

  /** Hands out jobs, one of each queue in turn, as long as there is a thread for them. */
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
   * A thread that can be sent a second job before it has answered the first, so that it continues without waiting for this thread. Only if
   * no other queue waits, and if the first is a short job of the same queue: after any other job the second one might wait long.
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
      // The job cannot be cloned, which is a bug of its caller: only that caller gets the error.
      waiting.reject(error as Error);
      return;
    }
    thread.worker.ref();
    thread.jobs.set(id, waiting);
  }

  private start(): Thread {
    // Node options of this process, such as a debugger's port, must not apply to threads.
    const worker = new Worker(new URL('./thread.js', builtModule(import.meta.url)), {
      execArgv: [],
      workerData: memoryToLend(),
      // Tasks create few objects. With a larger young generation, V8 would fill all of it before it collects garbage.
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

  /** Ends the threads, and with them the current jobs. */
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
