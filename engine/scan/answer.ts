import { assert, assertNever } from '../terms/assert.js';
import { isLogstrataError } from '../terms/errors.js';
import { answerBytesMax } from '../terms/limits.js';
import type { JobQueue } from '../workers/job-queue.js';
import { queueOf, type WorkerPool } from '../workers/worker-pool.js';
import { turnsOf, type AnswerTurns, type PausableScan, type Turn } from './write/answer-turns.js';
import { finderOf } from './far/tiered-finder.js';
import { LineWriter, type HeldPiece } from './write/line-writer.js';
import { Pace, signalOf, throwIfAborted } from '../store/reading/pace.js';
import { copyOf } from './job/piece-space.js';
import { planScan } from './plan/plan.js';
import { preparePredicates } from './job/predicate.js';
import type { Query, ScanStats } from './plan/query.js';
import { readingEstimate, tooMuchToRead } from './filter/reading-estimate.js';
import { RowGroupFilter } from './filter/row-group-filter.js';
import type { PieceIterator, ScanOptions } from './plan/scan.js';
import type { Snapshot } from '../store/reading/snapshot.js';
import { writtenFields } from './write/json-columns.js';
import { parseCursor, type Position } from '../terms/cursor.js';
import type { LineFormat } from '../terms/line-format.js';
import type { Schema } from '../terms/schema.js';

/** What an answer is made with. */
export interface AnswerSettings extends Pick<
  ScanOptions,
  'signal' | 'pieceBytes' | 'bytesMax' | 'lends' | 'onTurn'
> {
  /** Threads that read, search and write. Without them the calling thread does everything. */
  readonly workers?: WorkerPool | undefined;
  /**
   * Takes a snapshot of the newest state, restricted to the records of the first one. Given where another process writes, which may remove a
   * file while it is read: the answer then continues in that state after the last record that it gave. The position of a record never
   * changes, so the answer is the same.
   */
  readonly takeRest?: (() => Promise<Snapshot>) | undefined;
  /** Called with a lent answer of one piece, whose bytes then never change. */
  readonly keep?: ((whole: Uint8Array) => void) | undefined;
}

const attemptsMax = 10;

/**
 * Whether a failed scan may continue in the newest state: a file that its snapshot names was gone, and there have been fewer than 10
 * attempts.
 */
export function canResume(error: unknown, attempt: number): boolean {
  return isLogstrataError(error) && error.code === 'not_found' && attempt < attemptsMax;
}

/**
 * The lines of an answer, in pieces. They can be iterated once. To go on later takes only a position: where the answer is paused while its
 * reader has a piece, or its snapshot has lost a file, everything but that piece is given back, and the query for the rest is begun anew.
 */
export class Answer implements PieceIterator, PausableScan {
  readonly stats: ScanStats;
  #snapshot: Snapshot;
  readonly #query: Query;
  /** The query for the records after the last pause; the whole query where there was none. */
  #rest: Query;
  readonly #settings: AnswerSettings;
  /** What the format puts around the lines. */
  readonly #frame: Frame | null;
  readonly #signal: AbortSignal | undefined;
  readonly #turns: AnswerTurns;
  #threads: JobQueue | null;
  #writer: LineWriter | null = null;
  /** The pieces; null before they are begun, and after a pause. */
  #pieces: AsyncGenerator<HeldPiece, void> | null = null;
  /** The piece that the reader has, if it was lent. */
  #lent: HeldPiece | null = null;
  /** Settles when a pause has given back what the answer held; null where it has not been paused since it went on. */
  #pausing: Promise<void> | null = null;
  /** Number of calls of `next` and `return` that have not settled. */
  #pending = 0;
  #attempt = 1;
  #isReleased = false;
  #isTaken = false;
  /** Whether a piece has been given. */
  #isBegun = false;
  isAtEnd = false;

  /** Takes over the snapshot. */
  constructor(snapshot: Snapshot, query: Query, settings: AnswerSettings, stats: ScanStats) {
    const { signal, workers } = settings;
    this.stats = stats;
    this.#snapshot = snapshot;
    this.#query = query;
    this.#rest = query;
    this.#settings = settings;
    this.#frame = frameOf(query, snapshot.schema);
    this.#signal = signalOf(signal);
    this.#turns = turnsOf(workers);
    this.#threads = queueOf(workers, this.#signal);
    if (this.#signal?.aborted === true) this.#release();
    else this.#signal?.addEventListener('abort', this.#onAbort);
  }

  [Symbol.asyncIterator](): this {
    assert(!this.#isTaken, 'the lines of a scan are read once');
    this.#isTaken = true;
    return this;
  }

  get turn(): Turn | null {
    return this.#writer?.turn ?? null;
  }

  async next(): Promise<IteratorResult<Uint8Array, void>> {
    this.#pending++;
    this.#takeBack();
    try {
      for (;;) {
        if (this.#pausing !== null) await this.#resume();
        if (this.#isReleased) return this.#over();
        try {
          this.#pieces ??= await this.#begin();
          const result = await this.#pieces.next();
          return result.done === true ? this.#end() : this.#give(result.value);
        } catch (error) {
          await this.#renew(error);
        }
      }
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
      await this.#pieces?.return();
    } finally {
      this.#release();
      this.#leave();
    }
    return { done: true, value: undefined };
  }

  pause(): void {
    assert(this.#lent !== null && this.#pending === 0, 'a scan is paused while its reader has the word');
    this.#rest = restOfQuery(
      this.#query,
      this.stats.rowsReturned,
      lastPosition(this.#lent.bytes, this.#query),
    );
    this.#pausing = this.#giveBack();
    this.#pausing.catch(() => undefined);
  }

  /** Gives back everything except the snapshot and the piece that the reader has. */
  async #giveBack(): Promise<void> {
    const [pieces, threads] = [this.#pieces, this.#threads];
    this.#pieces = null;
    await pieces?.return();
    threads?.end();
    await threads?.underWay();
  }

  async #resume(): Promise<void> {
    await this.#pausing;
    this.#pausing = null;
    if (!this.#isReleased) this.#threads = queueOf(this.#settings.workers, this.#signal);
  }

  /** Goes on in a newer state after a failure. Throws the failure where that can't be done. */
  async #renew(error: unknown): Promise<void> {
    const { takeRest } = this.#settings;
    if (takeRest === undefined || !canResume(error, this.#attempt)) throw error;
    this.#attempt++;
    await this.#giveBack();
    this.#snapshot.release();
    // If there is no other snapshot, nothing is left to be released.
    this.#snapshot = { ...this.#snapshot, release: () => undefined };
    this.#snapshot = await takeRest();
    this.#pausing = Promise.resolve();
  }

  /** Plans the query, and begins to find its matches. */
  async #begin(): Promise<AsyncGenerator<HeldPiece, void>> {
    throwIfAborted(this.#signal);
    const { pieceBytes = answerBytesMax, bytesMax, onTurn } = this.#settings;
    const { schema, runs } = this.#snapshot;
    const query = this.#rest;
    const predicates = preparePredicates(query, schema);
    const startMs = performance.now();
    const plan = planScan(runs, query);
    const { stats } = this;
    if (query.limit > 0) {
      stats.runs = plan.end - plan.first;
      stats.rowGroups = plan.rowGroups;
    }
    const written = writtenFields(schema, query);
    const pace = new Pace(this.#signal);
    const work = { stats, pace, threads: this.#threads, turns: this.#turns, onTurn, pieceBytes };
    const writer = new LineWriter(written, work);
    const scan = { stats, pace, threads: this.#threads, onWait: () => writer.releaseTables() };
    const filter = new RowGroupFilter(schema, predicates, scan);
    // `bytesMax` refuses queries before they begin, so it does not apply after a pause.
    if (bytesMax !== undefined && query === this.#query && query.limit > 0) {
      const size = { fields: written.fields, limit: query.limit };
      const bytes = await readingEstimate(plan, filter.pruning, size, scan);
      if (bytes > bytesMax) throw tooMuchToRead(bytes, bytesMax);
    }
    const finder = finderOf(plan, filter, scan, { schema, predicates, fields: written.fields });
    this.#writer = writer;
    stats.selectMs += performance.now() - startMs;
    return writer.pieces(finder.matches(query.limit));
  }

  /** Returns a piece, and notes it where it is lent. Otherwise the reader gets a copy. */
  #give(piece: HeldPiece): IteratorResult<Uint8Array, void> {
    const { lends, keep } = this.#settings;
    const isWhole = piece.isLast && !this.#isBegun;
    const framed = framedPiece(this.#frame, piece.bytes, !this.#isBegun, piece.isLast);
    this.#isBegun = true;
    this.isAtEnd = piece.isLast;
    // A reader that goes on in another state asks for what comes after the last record that it has.
    if (this.#settings.takeRest !== undefined)
      this.#rest = restOfQuery(this.#query, this.stats.rowsReturned, lastPosition(piece.bytes, this.#query));
    if (lends !== true || (isWhole && keep !== undefined)) {
      const value = framed === piece.bytes ? copyOf(framed) : framed;
      piece.free();
      if (isWhole) keep?.(value);
      return { done: false, value };
    }
    this.#lent = piece;
    if (!piece.isLast) this.#turns.idle(this);
    return { done: false, value: framed };
  }

  /** Called when the reader is done with the piece that it was lent. */
  #takeBack(): void {
    if (this.#lent === null) return;
    this.#turns.busy(this);
    this.#lent.free();
    this.#lent = null;
  }

  /** Ends the answer. Where no piece was known to be the last one, what the format puts after the lines is a piece. */
  #end(): IteratorResult<Uint8Array, void> {
    this.#release();
    const rest = this.isAtEnd ? nothing : framedPiece(this.#frame, nothing, !this.#isBegun, true);
    this.isAtEnd = true;
    return rest.length === 0 ? { done: true, value: undefined } : { done: false, value: rest };
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

  /**
   * Ends an aborted scan while no call is pending. The abort would otherwise go unnoticed, because the caller may never make another call.
   */
  #abandon(): void {
    if (this.#isReleased) return;
    const ended = this.#pieces?.return();
    ended?.catch(() => undefined);
    // Threads may still read the snapshot. It is released when they have ended.
    if (ended !== undefined) this.#threads?.track(ended);
    this.#release();
  }

  #release(): void {
    if (this.#isReleased) return;
    this.#isReleased = true;
    this.#turns.busy(this);
    this.#signal?.removeEventListener('abort', this.#onAbort);
    this.#threads?.end();
    const underWay = this.#pausing ?? this.#threads?.underWay() ?? null;
    const release = (): void => this.#snapshot.release();
    if (underWay === null) release();
    else underWay.then(release, release);
  }
}

const newline = 10;
const quote = 34;

/**
 * The query for the rest of an answer of which `given` rows have been given, the last one at position `last`. Always goes forward from
 * `last`: for a query for the newest `limit` matches, the first row that was given has already fixed where the answer begins.
 */
export function restOfQuery(query: Query, given: number, last: Position): Query {
  return { ...query, after: last, limit: query.limit - given };
}

/** The position of the last record in a piece of an answer. The piece consists of whole lines of the query's format. */
export function lastPosition(piece: Uint8Array, { form }: Query): Position {
  const format = form?.format ?? 'jsonl';
  const start = (format === 'csv' ? lastRecord(piece) : lastLine(piece)) + cursorAt(format);
  return parseCursor(Buffer.from(piece.subarray(start, start + 16)).toString('latin1'))!;
}

/** Offset of the cursor in a line. */
function cursorAt(format: LineFormat): number {
  switch (format) {
    case 'jsonl':
      return '{"_cursor":"'.length;
    case 'json':
      return ',{"_cursor":"'.length;
    case 'csv':
      return 0;
    default:
      return assertNever(format);
  }
}

/** Offset of the last line. */
function lastLine(piece: Uint8Array): number {
  return piece.lastIndexOf(newline, piece.length - 2) + 1;
}

/**
 * Offset of the last CSV record. A line end within a quoted value has an odd number of quotes after it; the end of a record an even number.
 */
function lastRecord(piece: Uint8Array): number {
  let quotes = 0;
  for (let at = piece.length - 2; at >= 0; at--) {
    if (piece[at] === quote) quotes++;
    else if (piece[at] === newline && quotes % 2 === 0) return at + 1;
  }
  return 0;
}

/** The bytes that a format puts before and after the lines of an answer. */
export interface Frame {
  readonly start: Uint8Array;
  readonly end: Uint8Array;
  /** Length of the beginning of the first line that `start` replaces. */
  readonly replacedBytes: number;
}

const encoder = new TextEncoder();
export const nothing = new Uint8Array(0);

/** A JSON array. Each line begins with a comma, except that the first element must have none: `[` replaces it. */
const arrayFrame: Frame = { start: encoder.encode('['), end: encoder.encode(']'), replacedBytes: 1 };

/** The frame of the answer to a query; null for JSON Lines, which has none. */
export function frameOf(query: Query, schema: Schema): Frame | null {
  const format = query.form?.format ?? 'jsonl';
  switch (format) {
    case 'jsonl':
      return null;
    case 'json':
      return arrayFrame;
    case 'csv': {
      const names = writtenFields(schema, query).fields.map((field) => schema.fields[field]!.name);
      // Field names contain no character that would need quotes in CSV.
      return {
        start: encoder.encode(`${['_cursor', ...names].join(',')}\r\n`),
        end: nothing,
        replacedBytes: 0,
      };
    }
    default:
      return assertNever(format);
  }
}

/** A piece with what the format puts before the first one and after the last one; the piece itself where that is nothing. */
export function framedPiece(
  frame: Frame | null,
  piece: Uint8Array,
  isFirst: boolean,
  isLast: boolean,
): Uint8Array {
  if (frame === null || !(isFirst || isLast)) return piece;
  const { start, end, replacedBytes } = frame;
  return Buffer.concat([
    isFirst ? start : nothing,
    isFirst ? piece.subarray(replacedBytes) : piece,
    isLast ? end : nothing,
  ]);
}
