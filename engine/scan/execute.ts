import type { ReadyIterable, Scan, ScanOptions } from '../archive.js';
import { assert } from '../assert.js';
import { answerBytesMax, answerFirstBytes, bulkRowsMin, inlineRowsMax, lineJobRowsMin } from '../limits.js';
import type { WorkerPool } from '../workers/worker-pool.js';
import { BulkLines } from './bulk-lines.js';
import { Finder } from './finder.js';
import { JsonLines } from './json-lines.js';
import { Materialiser, type Matches } from './materialise.js';
import { LentSpace, OwnSpace } from './piece-space.js';
import { Pace, signalOf, throwIfAborted } from './pace.js';
import { PageLines } from './page-lines.js';
import { planScan } from './plan.js';
import { preparePredicates } from './predicate.js';
import type { Query, ScanStats } from './query.js';
import { QueryThreads } from './query-threads.js';
import { RowGroupFilter } from './row-group-filter.js';
import type { Snapshot } from './snapshot.js';
import { Driver, eachMade, type Steps } from './steps.js';

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
  const { signal, pieceBytes, lends, workers } = options;
  const stats = newScanStats();
  const page = PageLines.of(snapshot, query, stats, options);
  if (page !== null) return { stats, lines: page };
  const work = { signal: signalOf(signal), pieceBytes, lends, workers };
  return { stats, lines: new ScanLines(snapshot, query, work, stats) };
}

/** The same, of a scan that is more than a page. */
interface WorkSettings extends ScanSettings {
  readonly signal: AbortSignal | undefined;
}

/** How far an answer has come. */
interface Progress {
  /** The piece that is given next, or was given last, is the last one. */
  isAtEnd: boolean;
}

/** The answer, read once. */
class ScanLines implements ReadyIterable<Uint8Array> {
  readonly #snapshot: Snapshot;
  readonly #pieces: Driver<Uint8Array>;
  readonly #signal: AbortSignal | undefined;
  readonly #threads: QueryThreads | null;
  /** Calls of `next` and `return` that have not returned. */
  #pending = 0;
  #isReleased = false;
  #isTaken = false;
  readonly #progress: Progress = { isAtEnd: false };

  constructor(snapshot: Snapshot, query: Query, options: WorkSettings, stats: ScanStats) {
    this.#snapshot = snapshot;
    this.#signal = options.signal;
    this.#threads = QueryThreads.of(options.workers, this.#signal);
    this.#pieces = new Driver(answer(snapshot, query, options, stats, this.#threads, this.#progress));
    if (this.#signal?.aborted === true) this.#release();
    else this.#signal?.addEventListener('abort', this.#onAbort);
  }

  [Symbol.asyncIterator](): this {
    assert(!this.#isTaken, 'the lines of a scan are read once');
    this.#isTaken = true;
    return this;
  }

  get isAtEnd(): boolean {
    return this.#progress.isAtEnd;
  }

  now(): IteratorResult<Uint8Array, void> | null {
    if (this.#isReleased) return this.#over();
    try {
      const result = this.#pieces.now();
      if (result?.done === true) this.#release();
      return result;
    } catch (error) {
      this.#release();
      throw error;
    }
  }

  async next(): Promise<IteratorResult<Uint8Array, void>> {
    if (this.#isReleased) return this.#over();
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

  async return(): Promise<IteratorResult<Uint8Array, void>> {
    this.#pending++;
    try {
      await this.#pieces.return();
    } finally {
      this.#release();
      this.#leave();
    }
    return { done: true, value: undefined };
  }

  #over(): IteratorResult<Uint8Array, void> {
    throwIfAborted(this.#signal);
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
    const ended = this.#pieces.return();
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

function* answer(
  snapshot: Snapshot,
  query: Query,
  options: WorkSettings,
  stats: ScanStats,
  threads: QueryThreads | null,
  progress: Progress,
): Steps<Uint8Array> {
  throwIfAborted(options.signal);
  const { schema } = snapshot;
  const predicates = preparePredicates(query, schema);
  if (query.limit === 0) return;
  const startMs = performance.now();
  const plan = planScan(snapshot.runs, query);
  stats.runs = plan.end - plan.first;
  stats.rowGroups = plan.rowGroups;
  const pace = new Pace(options.signal);
  const { pieceBytes = answerBytesMax } = options;
  const space = options.lends === true ? new LentSpace() : new OwnSpace();
  const lines = new JsonLines(pieceBytes, space, answerFirstBytes);
  const materialiser = new Materialiser(schema, lines, { stats, pace, threads });
  const work = { stats, pace, threads, onWait: () => materialiser.close() };
  const finder = new Finder(plan, new RowGroupFilter(schema, predicates, work), work);
  const bulk = threads === null ? null : new BulkLines(schema, pieceBytes, space, work, threads);
  stats.selectMs += performance.now() - startMs;
  function* write(matches: Matches): Steps<Uint8Array> {
    if (bulk === null) {
      yield* materialiser.write(matches);
    } else if (isForThreads(matches, stats)) {
      materialiser.close();
      const begun = lines.take();
      if (begun !== null) yield begun;
      yield* bulk.write(matches);
    } else {
      yield* bulk.finish();
      yield* materialiser.write(matches);
    }
  }
  try {
    yield* eachMade(finder.matches(query.limit), write);
    if (bulk !== null) yield* bulk.finish();
    // A caller that takes its time with the last piece keeps no memory from others either.
    materialiser.close();
    const rest = lines.take();
    progress.isAtEnd = true;
    if (rest !== null) yield rest;
  } finally {
    materialiser.close();
    bulk?.close();
    space.close();
  }
}

/** Whether rows are handed over sooner than written: when they are many, or some and the answer is long already. */
function isForThreads({ take }: Matches, { rowsReturned }: ScanStats): boolean {
  return take >= bulkRowsMin || (take >= lineJobRowsMin && rowsReturned >= inlineRowsMax);
}
