import { assert } from '../terms/assert.js';
import { answerBytesMax } from '../terms/limits.js';
import type { WorkerPool } from '../workers/worker-pool.js';
import { answer, type AnswerProgress } from './answer.js';
import { turnsOf, type AnswerTurns, type PausableScan, type Turn } from './write/answer-turns.js';
import { throwIfAborted } from '../store/reading/pace.js';
import { LentSpace, OwnSpace } from './write/piece-space.js';
import type { Query, ScanStats } from './plan/query.js';
import { QueryThreads } from '../store/reading/query-threads.js';
import { lastPosition, restOfQuery } from './plan/rest.js';
import type { Snapshot } from '../store/reading/snapshot.js';
import { Driver } from '../store/reading/steps.js';
import type { ReadyIterable, ScanOptions } from './plan/scan.js';

/** The options of `ScanLines`. */
export interface LineSettings extends Pick<ScanOptions, 'pieceBytes' | 'bytesMax' | 'lends' | 'onTurn'> {
  readonly signal: AbortSignal | undefined;
  readonly workers?: WorkerPool | undefined;
}

const nothing = (): null => null;

/**
 * The lines of an answer that is longer than a page. They can be iterated once. While its reader has a lent piece, the scan can be paused:
 * it then gives back everything except that piece and the snapshot. When the reader asks for more, a new scan continues after the last
 * record that was given.
 */
export class ScanLines implements ReadyIterable<Uint8Array>, PausableScan {
  readonly #snapshot: Snapshot;
  readonly #query: Query;
  readonly #settings: LineSettings;
  readonly #stats: ScanStats;
  readonly #turns: AnswerTurns;
  readonly #space: LentSpace;
  readonly #progress: AnswerProgress = { isAtEnd: false, turn: nothing };
  #threads: QueryThreads | null;
  #pieces: Driver<Uint8Array>;
  /** The lent piece that the reader has. */
  #lent: Uint8Array | null = null;
  /** Settles when a pause has given back what the scan held; undefined while the scan is not paused. */
  #pausing: Promise<void> | undefined;
  /** The query for the records after the last pause; the whole query where there was none. */
  #rest: Query;
  /** Number of calls of `next` and `return` that have not settled. */
  #pending = 0;
  #isReleased = false;
  #isTaken = false;

  constructor(snapshot: Snapshot, query: Query, settings: LineSettings, stats: ScanStats) {
    const { signal, lends, workers } = settings;
    this.#snapshot = snapshot;
    this.#query = query;
    this.#rest = query;
    this.#settings = settings;
    this.#stats = stats;
    this.#turns = turnsOf(workers);
    this.#space = lends === true ? new LentSpace() : new OwnSpace();
    this.#threads = QueryThreads.of(workers, signal);
    this.#pieces = this.#drive();
    if (signal?.aborted === true) this.#release();
    else signal?.addEventListener('abort', this.#onAbort);
  }

  [Symbol.asyncIterator](): this {
    assert(!this.#isTaken, 'the lines of a scan are read once');
    this.#isTaken = true;
    return this;
  }

  get isAtEnd(): boolean {
    return this.#progress.isAtEnd;
  }

  get turn(): Turn | null {
    return this.#progress.turn();
  }

  now(): IteratorResult<Uint8Array, void> | null {
    if (this.#pausing !== undefined) return null;
    this.#takeBack();
    if (this.#isReleased) return this.#over();
    try {
      const result = this.#pieces.now();
      return result === null ? null : this.#lend(result);
    } catch (error) {
      this.#release();
      throw error;
    }
  }

  async next(): Promise<IteratorResult<Uint8Array, void>> {
    this.#pending++;
    try {
      this.#takeBack();
      if (this.#pausing !== undefined) await this.#resume();
      if (this.#isReleased) return this.#over();
      return this.#lend(await this.#pieces.next());
    } catch (error) {
      this.#release();
      throw error;
    } finally {
      this.#leave();
    }
  }

  async return(): Promise<IteratorResult<Uint8Array, void>> {
    this.#pending++;
    this.#takeBack();
    try {
      await this.#pausing;
      await this.#pieces.return();
    } finally {
      this.#release();
      this.#leave();
    }
    return { done: true, value: undefined };
  }

  pause(): void {
    const lent = this.#lent;
    assert(lent !== null && this.#pending === 0, 'a scan is paused while its reader has the word');
    this.#rest = restOfQuery(this.#query, this.#stats.rowsReturned, lastPosition(lent, this.#query));
    this.#pausing = this.#giveBack();
    this.#pausing.catch(() => undefined);
  }

  /** Gives back everything except the snapshot and the piece that the reader has. */
  async #giveBack(): Promise<void> {
    const threads = this.#threads;
    await this.#pieces.return();
    threads?.end();
    await threads?.underWay();
  }

  async #resume(): Promise<void> {
    await this.#pausing;
    this.#pausing = undefined;
    if (this.#isReleased) return;
    const { workers, signal } = this.#settings;
    this.#threads = QueryThreads.of(workers, signal);
    this.#pieces = this.#drive();
  }

  #drive(): Driver<Uint8Array> {
    const { signal, pieceBytes = answerBytesMax, bytesMax, onTurn } = this.#settings;
    const work = {
      signal,
      pieceBytes,
      // `bytesMax` refuses queries before they begin, so it does not apply after a pause.
      bytesMax: this.#rest === this.#query ? bytesMax : undefined,
      space: this.#space,
      stats: this.#stats,
      threads: this.#threads,
      turns: this.#turns,
      onTurn,
    };
    return new Driver(answer(this.#snapshot, this.#rest, work, this.#progress));
  }

  /** Returns the result, and notes the piece that the reader is lent. Releases the scan at its end. */
  #lend(result: IteratorResult<Uint8Array, void>): IteratorResult<Uint8Array, void> {
    if (result.done === true) {
      this.#release();
    } else if (this.#settings.lends === true) {
      this.#lent = result.value;
      if (!this.isAtEnd && !this.#isReleased) this.#turns.idle(this);
    }
    return result;
  }

  /** Called when the reader is done with the piece that it was lent. */
  #takeBack(): void {
    if (this.#lent === null) return;
    this.#lent = null;
    this.#turns.busy(this);
    if (this.#isReleased || this.#pausing !== undefined) this.#space.close();
  }

  #over(): IteratorResult<Uint8Array, void> {
    throwIfAborted(this.#settings.signal);
    return { done: true, value: undefined };
  }

  readonly #onAbort = (): void => {
    if (this.#pending === 0) this.#abandon();
  };

  #leave(): void {
    this.#pending--;
    if (this.#pending === 0 && this.#settings.signal?.aborted === true) this.#abandon();
  }

  /**
   * Ends an aborted scan while no call is pending. The abort would otherwise go unnoticed, because the caller may never make another call.
   */
  #abandon(): void {
    if (this.#isReleased) return;
    if (this.#pausing === undefined) {
      const ended = this.#pieces.return();
      ended.catch(() => undefined);
      // Threads may still read the snapshot. It is released when they have ended.
      this.#threads?.track(ended);
    }
    this.#release();
  }

  #release(): void {
    if (this.#isReleased) return;
    this.#isReleased = true;
    this.#turns.busy(this);
    this.#settings.signal?.removeEventListener('abort', this.#onAbort);
    this.#threads?.end();
    if (this.#lent === null) this.#space.close();
    const underWay = this.#pausing ?? this.#threads?.underWay() ?? null;
    const release = (): void => this.#snapshot.release();
    if (underWay === null) release();
    else underWay.then(release, release);
  }
}
