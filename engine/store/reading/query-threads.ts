import { setImmediate } from 'node:timers/promises';
import type { Column } from '../../columns/column.js';
import { columnAt, layoutEnd } from '../../columns/column-layout.js';
import { LogstrataError } from '../../terms/errors.js';
import { probesOfJobMin } from '../../terms/limits.js';
import { RangeSpace, type ColumnSpace } from '../../parquet/column-space.js';
import { chunkTask, type ChunkJob } from './chunk-task.js';
import { streamTask, type StreamJob } from './stream-task.js';
import { pooledChunkTask } from './pooled-chunk-task.js';
import { probeTask, type GramFilterFile } from './probe-task.js';
import type { JobQueue } from '../../workers/job-queue.js';
import type { Task } from '../../workers/task.js';
import type { WorkerPool } from '../../workers/worker-pool.js';
import type { ReadCounters } from './read-counters.js';

interface GramQuestion {
  readonly filter: GramFilterFile;
  readonly counters: ReadCounters;
  readonly answer: (mayContain: boolean) => void;
  readonly fail: (error: unknown) => void;
}

/** The questions about one needle that have come since the last were asked. */
interface GatheredQuestions {
  readonly needle: Uint8Array;
  /** The probe that ruled out a row group last. */
  first: number;
  questions: GramQuestion[];
}

/** Why jobs are dropped whose query is over. Made once: the trace of an error costs more than all else that ends a query. */
const queryEnded = new LogstrataError('cancelled', 'the query has ended');

/**
 * The worker threads as one query uses them: for whatever may wait for the disk or takes longer than a moment. Its jobs take
 * turns with those of others.
 */
export class QueryThreads {
  readonly #queue: JobQueue;
  readonly #needles = new Map<Uint8Array, GatheredQuestions>();
  #isAsking = false;
  #turnsTaken = 0;
  readonly #turnsWanted: (() => void)[] = [];

  /** Work that was begun ahead, whether or not anybody will take it. */
  readonly #underWay = new Set<Promise<unknown>>();

  private constructor(pool: WorkerPool, signal: AbortSignal | undefined) {
    this.#queue = pool.queue(signal);
  }

  /** Null where the pool has no threads. */
  static of(pool: WorkerPool | undefined, signal: AbortSignal | undefined): QueryThreads | null {
    return pool === undefined || pool.threads === 0 ? null : new QueryThreads(pool, signal);
  }

  get count(): number {
    return this.#queue.threads;
  }

  /**
   * Whether a gram filter allows for the needle. What is asked in one turn of the event loop is asked together, because a probe
   * takes far less time than handing over a job.
   */
  mayContain(filter: GramFilterFile, needle: Uint8Array, counters: ReadCounters): Promise<boolean> {
    return new Promise<boolean>((answer, fail) => {
      let gathered = this.#needles.get(needle);
      if (gathered === undefined) {
        gathered = { needle, first: 0, questions: [] };
        this.#needles.set(needle, gathered);
      }
      gathered.questions.push({ filter, counters, answer, fail });
      if (this.#isAsking) return;
      this.#isAsking = true;
      void this.#askGathered();
    });
  }

  /** Has a column chunk read and decoded into `space`. */
  async readColumn(job: ChunkJob, space: ColumnSpace): Promise<Column> {
    if (!(space instanceof RangeSpace)) return this.#queue.run(chunkTask, job);
    const { memory, address, sizeBytes } = space;
    const range = memory.rangeAt(address, sizeBytes);
    const { layout, columnBytes } = await this.#queue.run(pooledChunkTask, { ...job, range });
    space.filled(columnBytes);
    return columnAt(memory.bufferUpTo(layoutEnd(layout)), layout);
  }

  /** Has a thread search a column chunk without keeping it; returns whether the chunk may hold one of the needles. */
  async searchStreamed(job: StreamJob, counters: ReadCounters): Promise<boolean> {
    counters.columnsDecoded++;
    const { mayHold, bytesRead } = await this.#queue.run(streamTask, job);
    counters.bytesRead += bytesRead;
    return mayHold;
  }

  /**
   * Has a thread do a job. Settles only when no thread reads what the job names any more.
   *
   * @param transfer buffers of the job that move to the thread instead of being copied
   */
  run<Job, Result>(task: Task<Job, Result>, job: Job, transfer?: readonly ArrayBuffer[]): Promise<Result> {
    return this.#queue.run(task, job, transfer);
  }

  /** Calls `use` when fewer than twice as many others as there are threads have been called and not ended. In order. */
  async inTurn<T>(use: () => Promise<T>): Promise<T> {
    if (this.#turnsTaken < 2 * this.count) this.#turnsTaken++;
    else await new Promise<void>((resolve) => this.#turnsWanted.push(resolve));
    try {
      return await use();
    } finally {
      const next = this.#turnsWanted.shift();
      if (next === undefined) this.#turnsTaken--;
      else next();
    }
  }

  async #askGathered(): Promise<void> {
    await setImmediate();
    this.#isAsking = false;
    for (const gathered of this.#needles.values()) {
      const { questions } = gathered;
      gathered.questions = [];
      const each = Math.max(probesOfJobMin, Math.ceil(questions.length / this.count));
      for (let from = 0; from < questions.length; from += each)
        void this.#ask(gathered, questions.slice(from, from + each));
    }
  }

  async #ask(gathered: GatheredQuestions, questions: readonly GramQuestion[]): Promise<void> {
    try {
      const { needle, first } = gathered;
      const filters = questions.map(({ filter }) => filter);
      const answers = await this.#queue.run(probeTask, { needle, first, filters });
      gathered.first = answers.first;
      const { counters } = questions[0]!;
      counters.gramPiecesRead += answers.gramPiecesRead;
      counters.bytesRead += answers.bytesRead;
      questions.forEach(({ answer }, i) => answer(answers.mayContain[i]!));
    } catch (error) {
      for (const { fail } of questions) fail(error);
    }
  }

  /** Remembers work that uses the query's files, so that `underWay` can tell when the files are free. */
  track(work: Promise<unknown>): void {
    const ended: Promise<unknown> = work.catch(() => undefined).finally(() => this.#underWay.delete(ended));
    this.#underWay.add(ended);
  }

  /** Resolves when all that was begun is done; null when nothing is under way. */
  underWay(): Promise<unknown> | null {
    return this.#underWay.size === 0 ? null : Promise.all(this.#underWay);
  }

  /** Drops what no thread has begun: nobody waits for it any more. */
  end(): void {
    this.#queue.end(queryEnded);
  }
}
