import type { Column } from '../../columns/column.js';
import { columnAt, layoutEnd } from '../../columns/column-layout.js';
import type { MemoryRange } from '../../memory/shared-memory.js';
import { LogstrataError } from '../../terms/errors.js';
import { filtersKeptOfQueryBytesMax, probesOfJobMax, probesOfJobMin } from '../../terms/limits.js';
import { probedBytesOfRowGroup } from '../../terms/thread-limits.js';
import { RangeSpace, type ColumnSpace } from '../../parquet/column-space.js';
import { chunkTask, type ChunkJob } from './chunk-task.js';
import { keepTask, type KeepJob } from './keep-task.js';
import { streamTask, type StreamJob } from './stream-task.js';
import { pooledChunkTask, type PooledChunk } from './pooled-chunk-task.js';
import type { FilterQuestion } from '../sealed/filter-question.js';
import type { FirstReads } from '../sealed/filter-probing.js';
import type { SegmentRulings } from '../sealed/segment-rulings.js';
import { probeTask, type ProbedSegment } from '../sealed/probe-task.js';
import type { JobQueue } from '../../workers/job-queue.js';
import type { Task } from '../../workers/task.js';
import type { WorkerPool } from '../../workers/worker-pool.js';
import type { ReadCounters } from './read-counters.js';

/** Row groups of one segment to ask the filters about, and the rulings that receive the answers. */
export interface AskedSegment {
  readonly segment: ProbedSegment;
  readonly rowGroups: readonly number[];
  readonly rulings: SegmentRulings;
}

/** The segments that were asked about in one turn of the event loop. */
interface ProbeTurn {
  readonly asked: AskedSegment[];
  readonly answered: Promise<void>;
}

let queries = 0;

/** The error of jobs that are dropped when their query ends. Made once: its stack trace costs more than the rest of ending a query. */
const queryEnded = new LogstrataError('cancelled', 'the query has ended');

/**
 * One query's access to the worker threads, for work that may wait for the disk or would block the event loop. The jobs of different
 * queries take turns.
 */
export class QueryThreads {
  /** Number of the query, unique in this process. */
  readonly query = ++queries;
  readonly #queue: JobQueue;
  /** Bytes of filters that this query may still read into memory. */
  #keptBytesLeft = filtersKeptOfQueryBytesMax;
  /** The turn that is still collecting segments; null until the next call of `probe`. */
  #turn: ProbeTurn | null = null;
  #firsts: FirstReads | null = null;
  /** Tracked work that has not ended. */
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
   * Does what `AskableFilters.ask` says, on threads. All requests of one turn of the event loop are sent together, because asking a filter
   * takes far less time than handing a job to a thread.
   */
  probe(asked: AskedSegment, questions: readonly FilterQuestion[], counters: ReadCounters): Promise<void> {
    this.#turn ??= this.#beginTurn(questions, counters);
    this.#turn.asked.push(asked);
    return this.#turn.answered;
  }

  #beginTurn(questions: readonly FilterQuestion[], counters: ReadCounters): ProbeTurn {
    const asked: AskedSegment[] = [];
    const answered = this.#probeAll(asked, questions, counters);
    this.track(answered);
    return { asked, answered };
  }

  /** Has a thread read a column chunk and decode it into `space`. */
  async readColumn(job: ChunkJob, space: ColumnSpace): Promise<Column> {
    const { bytes } = job.chunk;
    if (!(space instanceof RangeSpace)) return this.#queue.run(chunkTask, job, [], bytes);
    const pooled = { ...job, range: rangeOf(space) };
    return filledColumn(space, await this.#queue.run(pooledChunkTask, pooled, [], bytes));
  }

  /**
   * Whether this query may read `bytes` more of filters into memory; if so, they are deducted. The bound exists because this query waits
   * for filters that only later queries use. The first filters may exceed it, as those of a full segment do: otherwise no query would ever
   * keep them.
   */
  mayKeep(bytes: number): boolean {
    if (bytes > this.#keptBytesLeft && this.#keptBytesLeft < filtersKeptOfQueryBytesMax) return false;
    this.#keptBytesLeft -= bytes;
    return true;
  }

  /** Has a thread read filters into `space`. */
  async keepFilters(job: KeepJob, space: RangeSpace): Promise<Column> {
    return filledColumn(space, await this.#queue.run(keepTask, { ...job, range: rangeOf(space) }));
  }

  /** Has a thread search a column chunk without keeping it; returns whether the chunk may hold one of the needles. */
  async searchStreamed(job: StreamJob, counters: ReadCounters): Promise<boolean> {
    counters.columnsDecoded++;
    const { mayHold, bytesRead } = await this.#queue.run(streamTask, job, [], job.chunk.bytes);
    counters.bytesRead += bytesRead;
    return mayHold;
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

  async #probeAll(
    asked: readonly AskedSegment[],
    questions: readonly FilterQuestion[],
    counters: ReadCounters,
  ): Promise<void> {
    await Promise.resolve();
    this.#turn = null;
    const rowGroups = asked.reduce((sum, segment) => sum + segment.rowGroups.length, 0);
    const each = Math.min(probesOfJobMax, Math.max(probesOfJobMin, Math.ceil(rowGroups / this.count)));
    const shares = [...sharesOf(asked, each)];
    await Promise.all(shares.map((share) => this.#probeShare(questions, share, counters)));
  }

  async #probeShare(
    questions: readonly FilterQuestion[],
    share: readonly AskedSegment[],
    counters: ReadCounters,
  ): Promise<void> {
    try {
      const segments = share.map(({ segment }) => segment);
      const firsts = (this.#firsts ??= questions.map(({ asked }) => asked.map(() => 0)));
      const job = { questions, firsts, segments, rulings: askedOf(share) };
      const rowGroups = share.reduce((sum, segment) => sum + segment.rowGroups.length, 0);
      const answers = await this.#queue.run(probeTask, job, [], rowGroups * probedBytesOfRowGroup);
      this.#firsts = answers.firsts;
      counters.gramPiecesRead += answers.gramPiecesRead;
      counters.valuePiecesRead += answers.valuePiecesRead;
      counters.bytesRead += answers.bytesRead;
      let at = 0;
      for (const { rowGroups, rulings } of share) {
        rulings.take(rowGroups, answers.rulings.subarray(at));
        at += rulings.bytes.length;
      }
    } catch (error) {
      for (const { rowGroups, rulings } of share) rulings.fail(rowGroups, error);
    }
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

function rangeOf({ memory, address, sizeBytes }: RangeSpace): MemoryRange {
  return memory.rangeAt(address, sizeBytes);
}

/** The column that a thread has decoded into a space. */
function filledColumn(space: RangeSpace, { layout, columnBytes }: PooledChunk): Column {
  space.filled(columnBytes);
  return columnAt(space.memory.bufferUpTo(layoutEnd(layout)), layout);
}

/** Splits requests into shares of `rowGroupsEach` row groups, one job each. The last share may be smaller. */
function* sharesOf(asked: readonly AskedSegment[], rowGroupsEach: number): Generator<AskedSegment[]> {
  let share: AskedSegment[] = [];
  let room = rowGroupsEach;
  for (const { segment, rowGroups, rulings } of asked) {
    for (let from = 0; from < rowGroups.length;) {
      const to = Math.min(rowGroups.length, from + room);
      share.push({ segment, rowGroups: rowGroups.slice(from, to), rulings });
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

/** The rulings of the segments one after another, with `mayMatch` for each row group that is asked about. */
function askedOf(share: readonly AskedSegment[]): Uint8Array<ArrayBuffer> {
  const together = new Uint8Array(share.reduce((sum, { rulings }) => sum + rulings.bytes.length, 0));
  let at = 0;
  for (const { rowGroups, rulings } of share) {
    together.set(rulings.bytesAsking(rowGroups), at);
    at += rulings.bytes.length;
  }
  return together;
}
