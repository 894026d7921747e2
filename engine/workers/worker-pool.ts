import { availableParallelism } from 'node:os';
import { Worker } from 'node:worker_threads';
import { memoryToLend, sharedMemory } from '../core/shared-memory.js';
import { LogstrataError } from '../core/errors.js';
import { batchMs, threadScratchBytes, workersDefaultMax } from '../core/limits.js';
import { JobQueue, type JobRunner, type WaitingJob } from './job-queue.js';
import { builtModule, type Task, errorOf, type JobMessage, type JobReply } from './task.js';

const youngGenerationMb = 6;

interface Thread {
  readonly worker: Worker;
  /** Jobs that were sent to the thread and are not answered yet, by id, and how long they were estimated to take (ms). */
  readonly jobs: Map<number, WaitingJob & { readonly estimatedMs: number }>;
  /** Number of the messages that they were sent in, by the last job of each. */
  readonly messages: Set<number>;
  /** Address of the memory that its kernels may use; null while it has no job, or where there is no memory. */
  scratch: number | null;
}

/** Number of threads unless configured otherwise: one per core, because the main thread mostly waits for them. */
export function workersDefault(): number {
  return Math.min(workersDefaultMax, Math.max(1, availableParallelism()));
}

/**
 * A pool of threads that run tasks. A thread is started when there is a job and no idle thread. It stays for further jobs, and does not
 * keep the process alive while idle. Each owner of jobs has a queue, and the queues share the time of the threads.
 */
export class WorkerPool implements JobRunner {
  private readonly started: Thread[] = [];
  /** Queues with waiting jobs. The one that has used the least time is next; of several, the first. */
  private readonly turns: JobQueue[] = [];
  /** What the queue that was served last had used before (ms). */
  private servedMs = 0;
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
  async begin<Job>(task: Task<Job, unknown>, job: Job): Promise<void> {
    const begun: Promise<unknown>[] = [];
    while (!this.closed && this.started.length < this.threads) {
      const thread = this.start();
      const first = { queue: this.own, task: { ...task, isLong: true }, job, transfer: [] };
      begun.push(new Promise((resolve, reject) => this.hand(thread, [{ ...first, resolve, reject }])));
    }
    await Promise.all(begun);
  }

  /** Registers a queue that has one more job. */
  announce(queue: JobQueue): void {
    if (this.closed) queue.end(threadsEnded());
    if (queue.waiting.length === 1) {
      queue.catchUp(this.servedMs);
      this.turns.push(queue);
    }
    this.dispatch();
  }

  /** Hands out jobs, as long as there is a thread for them. */
  private dispatch(): void {
    while (this.turns.length > 0) {
      let next = 0;
      for (let i = 1; i < this.turns.length; i++)
        if (this.turns[i]!.usedMs < this.turns[next]!.usedMs) next = i;
      const queue = this.turns[next]!;
      const isEmpty = queue.waiting.length === 0;
      const thread = isEmpty ? undefined : (this.idleThread() ?? this.threadBusyWith(queue));
      if (!isEmpty && thread === undefined) return;
      this.turns.splice(next, 1);
      if (thread === undefined) continue;
      this.servedMs = queue.usedMs;
      this.hand(thread, queue.waiting.splice(0, this.together(queue)));
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
    return this.started.find(({ jobs, messages }) => {
      return (
        messages.size === 1 &&
        [...jobs.values()].every((job) => job.queue === queue && job.task.isLong !== true)
      );
    });
  }

  /**
   * How many of a queue's jobs are sent together: each message takes some ten microseconds here, which short jobs hardly take themselves.
   * Where other queues wait, jobs are sent one by one.
   */
  private together(queue: JobQueue): number {
    if (this.turns.length > 0 || queue.waiting[0]!.task.isLong === true) return 1;
    const share = Math.ceil(queue.waiting.length / Math.max(1, this.threads));
    return Math.max(1, Math.min(share, Math.floor(batchMs / queue.jobMs)));
  }

  private hand(thread: Thread, waiting: readonly WaitingJob[]): void {
    const first = this.nextId;
    this.nextId += waiting.length;
    thread.scratch ??= sharedMemory().allocate(threadScratchBytes);
    const message: JobMessage = {
      jobs: waiting.map(({ task: { module, name = 'work' }, job }, i) => {
        return { id: first + i, module: module.href, name, job };
      }),
      scratch: { address: thread.scratch ?? 0, bytes: thread.scratch === null ? 0 : threadScratchBytes },
    };
    try {
      thread.worker.postMessage(
        message,
        waiting.flatMap(({ transfer }) => transfer),
      );
    } catch (error) {
      // A job cannot be cloned, which is a bug of its caller: only that caller gets the error.
      if (thread.jobs.size === 0) this.rest(thread);
      if (waiting.length === 1) waiting[0]!.reject(error as Error);
      else for (const each of waiting) this.hand(thread, [each]);
      return;
    }
    thread.worker.ref();
    for (const [i, each] of waiting.entries())
      thread.jobs.set(first + i, { ...each, estimatedMs: each.queue.begins() });
    thread.messages.add(this.nextId - 1);
  }

  /** Takes back what a thread without jobs was lent. */
  private rest(thread: Thread): void {
    if (thread.scratch !== null) sharedMemory().free(thread.scratch);
    thread.scratch = null;
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
    const thread: Thread = { worker, jobs: new Map(), messages: new Set(), scratch: null };
    worker.on('message', (replies: readonly JobReply[]) => this.settle(thread, replies));
    worker.on('error', (error) => this.lose(thread, describeLoss(error)));
    worker.on('exit', (code) => this.lose(thread, new Error(`a worker thread ended with code ${code}`)));
    this.started.push(thread);
    return thread;
  }

  private settle(thread: Thread, replies: readonly JobReply[]): void {
    const settled: (() => void)[] = [];
    for (const reply of replies) {
      const waiting = thread.jobs.get(reply.id);
      if (waiting === undefined) continue;
      thread.jobs.delete(reply.id);
      thread.messages.delete(reply.id);
      waiting.queue.took(reply.ms, waiting.estimatedMs);
      if ('failure' in reply) settled.push(() => waiting.reject(errorOf(reply.failure)));
      else settled.push(() => waiting.resolve(reply.result));
    }
    if (thread.jobs.size === 0) {
      this.rest(thread);
      // After `close` the thread stays referenced, so that the process lives until the thread has ended.
      if (!this.closed) thread.worker.unref();
    }
    this.dispatch();
    for (const settle of settled) settle();
  }

  private lose(thread: Thread, error: Error): void {
    const index = this.started.indexOf(thread);
    if (index >= 0) this.started.splice(index, 1);
    const reason = this.closed ? threadsEnded() : error;
    for (const { reject } of thread.jobs.values()) reject(reason);
    thread.jobs.clear();
    this.rest(thread);
    if (!this.closed) this.dispatch();
  }

  /** Ends the threads, and with them the current jobs. */
  async close(): Promise<void> {
    this.closed = true;
    for (const queue of [this.own, ...this.turns.splice(0)]) queue.end(threadsEnded());
    await Promise.all([...this.started].map(({ worker }) => worker.terminate()));
  }
}

/** A queue for one query's jobs, which may wait for the disk or would block the event loop; null where there are no threads for them. */
export function queueOf(pool: WorkerPool | undefined, signal: AbortSignal | undefined): JobQueue | null {
  return pool === undefined || pool.threads === 0 ? null : pool.queue(signal);
}

function threadsEnded(): LogstrataError {
  return new LogstrataError('closed', 'the worker threads have ended');
}

function describeLoss(error: Error): Error {
  if ('code' in error && error.code === 'ERR_WORKER_OUT_OF_MEMORY')
    return new LogstrataError('limit', 'a worker thread ran out of memory', { cause: error });
  return error;
}
