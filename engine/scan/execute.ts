import type { Scan, ScanOptions } from '../archive.js';
import { assert } from '../assert.js';
import { answerBytesMax, answerFirstBytes, bulkRowsMin } from '../limits.js';
import type { WorkerPool } from '../workers/worker-pool.js';
import { BulkLines } from './bulk-lines.js';
import { Finder } from './finder.js';
import { JsonLines } from './json-lines.js';
import { Materialiser } from './materialise.js';
import { oneAhead } from './one-ahead.js';
import { Pace, throwIfAborted } from './pace.js';
import { planScan } from './plan.js';
import { preparePredicates } from './predicate.js';
import type { Query, ScanStats } from './query.js';
import { QueryThreads } from './query-threads.js';
import { RowGroupFilter } from './row-group-filter.js';
import type { Snapshot } from './snapshot.js';

/** Nothing has been done yet. */
export function newScanStats(): ScanStats {
  return {
    runs: 0,
    rowGroups: 0,
    rowGroupsPrunedByTime: 0,
    rowGroupsPrunedByZone: 0,
    rowGroupsPrunedByGram: 0,
    rowGroupsPrunedByDictionary: 0,
    rowGroupsScanned: 0,
    rowsScanned: 0,
    rowsReturned: 0,
    bytesRead: 0,
    columnsDecoded: 0,
    columnsCached: 0,
    gramPiecesRead: 0,
    selectMs: 0,
    writeMs: 0,
  };
}

/** How a scan is to be done, beside what its caller may choose. */
export interface ScanSettings extends ScanOptions {
  /** Threads that read and search; without them everything is done by the thread that asks. */
  readonly workers?: WorkerPool | undefined;
}

/**
 * Starts a query on a snapshot, which is the scan's from here on: it is released when the answer has ended, has failed,
 * is ended early (`return` of the iterator, also before its first `next`), or when the signal is aborted. A caller that
 * neither reads the lines nor aborts must call `return`.
 *
 * Errors come from `lines`: `invalid` for a query that does not fit the schema, `cancelled` (or the signal's own reason,
 * where that is a `LogstrataError`), and whatever reading the row groups throws. Nothing is read before the first `next`.
 */
export function executeScan(snapshot: Snapshot, query: Query, options: ScanSettings = {}): Scan {
  const stats = newScanStats();
  return { stats, lines: new ScanLines(snapshot, query, options, stats) };
}

/** The answer, read once. */
class ScanLines implements AsyncIterableIterator<Uint8Array> {
  readonly #snapshot: Snapshot;
  readonly #pieces: AsyncGenerator<Uint8Array>;
  readonly #signal: AbortSignal | undefined;
  readonly #threads: QueryThreads | null;
  /** Calls of `next` and `return` that have not returned. */
  #pending = 0;
  #isReleased = false;
  #isTaken = false;

  constructor(snapshot: Snapshot, query: Query, options: ScanSettings, stats: ScanStats) {
    this.#snapshot = snapshot;
    this.#signal = options.signal;
    this.#threads = QueryThreads.of(options.workers, this.#signal);
    this.#pieces = answer(snapshot, query, options, stats, this.#threads);
    if (this.#signal?.aborted === true) this.#release();
    else this.#signal?.addEventListener('abort', this.#onAbort);
  }

  [Symbol.asyncIterator](): this {
    assert(!this.#isTaken, 'the lines of a scan are read once');
    this.#isTaken = true;
    return this;
  }

  async next(): Promise<IteratorResult<Uint8Array>> {
    if (this.#isReleased) {
      throwIfAborted(this.#signal);
      return { done: true, value: undefined };
    }
    this.#pending++;
    try {
      const result = await this.#pieces.next();
      if (result.done === true) this.#release();
      return result;
    } catch (error) {
      this.#release();
      throw error;
    } finally {
      this.#leave();
    }
  }

  async return(): Promise<IteratorResult<Uint8Array>> {
    this.#pending++;
    try {
      await this.#pieces.return(undefined);
    } finally {
      this.#release();
      this.#leave();
    }
    return { done: true, value: undefined };
  }

  readonly #onAbort = (): void => {
    if (this.#pending === 0) this.#abandon();
  };

  #leave(): void {
    this.#pending--;
    if (this.#pending === 0 && this.#signal?.aborted === true) this.#abandon();
  }

  /** While nobody waits for a piece there is nobody else to see that the caller has gone away, and perhaps nobody asks again. */
  #abandon(): void {
    if (this.#isReleased) return;
    const ended = this.#pieces.return(undefined);
    ended.catch(() => undefined);
    // What is being done ahead of the caller still reads the snapshot.
    this.#threads?.track(ended);
    this.#release();
  }

  #release(): void {
    if (this.#isReleased) return;
    this.#isReleased = true;
    this.#signal?.removeEventListener('abort', this.#onAbort);
    this.#threads?.end();
    const underWay = this.#threads?.underWay() ?? null;
    if (underWay === null) this.#snapshot.release();
    else void underWay.then(() => this.#snapshot.release());
  }
}

async function* answer(
  snapshot: Snapshot,
  query: Query,
  options: ScanOptions,
  stats: ScanStats,
  threads: QueryThreads | null,
): AsyncGenerator<Uint8Array> {
  throwIfAborted(options.signal);
  const predicates = preparePredicates(query, snapshot.schema);
  if (query.limit === 0) return;
  const startMs = performance.now();
  const plan = planScan(snapshot.runs, query);
  stats.runs = plan.end - plan.first;
  stats.rowGroups = plan.rowGroups;
  const pace = new Pace(options.signal);
  const { pieceBytes = answerBytesMax } = options;
  const lines = new JsonLines(pieceBytes, answerFirstBytes);
  const materialiser = new Materialiser(snapshot.schema, lines, { stats, pace, threads });
  const onWait = (): void => materialiser.close();
  const work = { stats, pace, threads, onWait };
  const finder = new Finder(plan, new RowGroupFilter(snapshot.schema, predicates, work), work);
  const bulk = threads === null ? null : new BulkLines(snapshot.schema, pieceBytes, work, threads);
  stats.selectMs += performance.now() - startMs;
  async function* batches(): AsyncGenerator<readonly Uint8Array[]> {
    for await (const matches of finder.matches(query.limit)) {
      if (bulk !== null && matches.take >= bulkRowsMin) {
        materialiser.close();
        const begun = lines.take();
        if (begun !== null) yield [begun];
        yield* bulk.write(matches);
      } else {
        for await (const piece of materialiser.write(matches)) yield [piece];
      }
    }
    // A caller that takes its time with the last piece keeps no memory from others either.
    materialiser.close();
    const rest = lines.take();
    if (rest !== null) yield [rest];
  }
  try {
    for await (const batch of threads === null ? batches() : oneAhead(batches())) yield* batch;
  } finally {
    materialiser.close();
  }
}
