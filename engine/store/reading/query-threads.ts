import { setImmediate } from 'node:timers/promises';
import type { Column } from '../../columns/column.js';
import { columnAt, layoutEnd } from '../../columns/column-layout.js';
import { LogstrataError } from '../../terms/errors.js';
import { probesOfJobMin } from '../../terms/limits.js';
import { RangeSpace, type ColumnSpace } from '../../parquet/column-space.js';
import { chunkTask, type ChunkJob } from './chunk-task.js';
import { streamTask, type StreamJob } from './stream-task.js';
import { pooledChunkTask } from './pooled-chunk-task.js';
import type { FilterQuestion, FirstProbes } from '../sealed/filter-probing.js';
import { RulingToCome } from './ruling-to-come.js';
import { probeTask, type ProbedSegment } from './probe-task.js';
import type { JobQueue } from '../../workers/job-queue.js';
import type { Task } from '../../workers/task.js';
import type { WorkerPool } from '../../workers/worker-pool.js';
import type { ReadCounters } from './read-counters.js';

/** Row groups of one segment that are asked about in one turn of the event loop. */
interface AskedSegment {
  readonly segment: Omit<ProbedSegment, 'rowGroups'>;
  readonly rowGroups: number[];
  /** One for each of `rowGroups`. */
  readonly rulings: RulingToCome[];
}

/** What is asked in one turn of the event loop. */
interface ProbeTurn {
  readonly asked: Map<object, AskedSegment>;
  readonly answered: Promise<void>;
}

/** Why jobs are dropped whose query is over. Made once: the trace of an error costs more than all else that ends a query. */
const queryEnded = new LogstrataError('cancelled', 'the query has ended');

/**
 * The worker threads as one query uses them: for whatever may wait for the disk or takes longer than a moment. Its jobs take
 * turns with those of others.
 */
export class QueryThreads {
  readonly #queue: JobQueue;
  #turn: ProbeTurn | null = null;
  #firsts: FirstProbes | null = null;
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
   * What the filters of a segment say of one of its row groups. What is asked in one turn of the event loop is asked together, because
   * asking a filter takes far less time than handing over a job.
   */
  probe(
    segment: Omit<ProbedSegment, 'rowGroups'>,
    rowGroup: number,
    questions: readonly FilterQuestion[],
    counters: ReadCounters,
  ): RulingToCome {
    this.#turn ??= this.#beginTurn(questions, counters);
    const { asked: segments, answered } = this.#turn;
    let asked = segments.get(segment);
    if (asked === undefined) {
      asked = { segment, rowGroups: [], rulings: [] };
      segments.set(segment, asked);
    }
    const said = new RulingToCome(answered);
    asked.rowGroups.push(rowGroup);
    asked.rulings.push(said);
    return said;
  }

  #beginTurn(questions: readonly FilterQuestion[], counters: ReadCounters): ProbeTurn {
    const asked = new Map<object, AskedSegment>();
    const answered = this.#probeAll(asked, questions, counters);
    this.track(answered);
    return { asked, answered };
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

  async #probeAll(
    segments: ReadonlyMap<object, AskedSegment>,
    questions: readonly FilterQuestion[],
    counters: ReadCounters,
  ): Promise<void> {
    await setImmediate();
    this.#turn = null;
    const asked = [...segments.values()];
    const rowGroups = asked.reduce((sum, segment) => sum + segment.rowGroups.length, 0);
    const each = Math.max(probesOfJobMin, Math.ceil(rowGroups / this.count));
    const shares = [...sharesOf(asked, each)];
    await Promise.all(shares.map((share) => this.#probeShare(questions, share, counters)));
  }

  async #probeShare(
    questions: readonly FilterQuestion[],
    share: readonly AskedSegment[],
    counters: ReadCounters,
  ): Promise<void> {
    const rulings = share.flatMap((asked) => asked.rulings);
    try {
      const segments = share.map(({ segment, rowGroups: asked }) => ({ ...segment, rowGroups: asked }));
      const firsts = (this.#firsts ??= questions.map(({ asked }) => asked.map(() => 0)));
      const answers = await this.#queue.run(probeTask, { questions, firsts, segments });
      this.#firsts = answers.firsts;
      counters.gramPiecesRead += answers.gramPiecesRead;
      counters.valuePiecesRead += answers.valuePiecesRead;
      counters.bytesRead += answers.bytesRead;
      const said = answers.rulings.flat();
      rulings.forEach((to, i) => to.answer(said[i]!));
    } catch (error) {
      for (const to of rulings) to.fail(error);
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

/** Cuts what is asked into shares of about so many row groups, for a thread each. */
function* sharesOf(asked: readonly AskedSegment[], rowGroupsEach: number): Generator<AskedSegment[]> {
  let share: AskedSegment[] = [];
  let room = rowGroupsEach;
  for (const { segment, rowGroups, rulings } of asked) {
    for (let from = 0; from < rowGroups.length;) {
      const to = Math.min(rowGroups.length, from + room);
      share.push({ segment, rowGroups: rowGroups.slice(from, to), rulings: rulings.slice(from, to) });
      room -= to - from;
      from = to;
      if (room > 0) continue;
      yield share;
      share = [];
      room = rowGroupsEach;
    }
  }
  if (share.length > 0) yield share;
}
