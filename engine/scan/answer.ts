import { assert, isLogstrataError } from '../core/errors.js';
import { answerBytesMax, knownQueriesMax } from '../core/limits.js';
import type { JobQueue } from '../workers/job-queue.js';
import { queueOf, type WorkerPool } from '../workers/worker-pool.js';
import {
  turnsOf,
  type AnswerTurns,
  type PausableScan,
  LineWriter,
  pageInMemory,
  type HeldPiece,
  type LineWork,
  type MergedRows,
} from './line-writer.js';
import { finderOf, type RemoteSource } from './tiered-finder.js';
import { Pace, throwIfAborted } from '../store/reading/pace.js';
import { copyOf } from './json-lines.js';
import type { Matches } from './selection.js';
import { assertStanding, planScan } from './plan.js';
import { preparePredicates } from './predicate.js';
import type { Query, ScanStats } from './query.js';
import { readingEstimate, tooMuchToRead } from './reading-estimate.js';
import { RowGroupFilter } from './row-group-filter.js';
import type { PieceIterator, Scan, ScanOptions } from './scan.js';
import type { Snapshot } from '../store/reading/snapshot.js';
import { writtenFields } from './json-columns.js';
import type { Schema } from '../core/schema.js';

/** What an answer is made with. */
export interface AnswerSettings extends Pick<
  ScanOptions,
  'signal' | 'pieceBytes' | 'bytesMax' | 'lends' | 'onTurn'
> {
  /** Threads that read, search and write. Without them the calling thread does everything. */
  readonly workers?: WorkerPool | undefined;
  /** Reads rows on other machines. */
  readonly remote?: RemoteSource | undefined;
  /**
   * Takes a snapshot of the newest state, restricted to the records of the first one. Given where another process writes, which may remove a
   * file while it is read: the answer then continues in that state after the last record that it gave. The position of a record never
   * changes, so the answer is the same.
   */
  readonly takeRest?: (() => Promise<Snapshot>) | undefined;
  /** Begins the answer, where it is not that of one agent. */
  readonly begins?: (snapshot: Snapshot, query: Query, beginning: Beginning) => Promise<Begun>;
  /** Names of what CSV has before the fields. */
  readonly columns?: readonly string[] | undefined;
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
  /** The query for the records that have not been given. */
  #rest: Query;
  readonly #settings: AnswerSettings;
  /** What the format puts around the lines. */
  readonly #frame: Frame | null;
  #signal: AbortSignal | undefined;
  readonly #turns: AnswerTurns;
  /** Null before anything is waited for: most pages are in memory, and making what a wait needs takes as long as writing one. */
  #threads: JobQueue | null = null;
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
    this.#frame = frameOf(query, snapshot.schema, settings.columns);
    this.#turns = turnsOf(workers);
    if (typeof signal !== 'function') this.#heed(signal);
  }

  /** Ends the answer when the signal is aborted. */
  #heed(signal: AbortSignal | undefined): void {
    this.#signal = signal;
    if (signal?.aborted === true) this.#release();
    else signal?.addEventListener('abort', this.#onAbort);
  }

  [Symbol.asyncIterator](): this {
    assert(!this.#isTaken, 'the lines of a scan are read once');
    this.#isTaken = true;
    return this;
  }

  get hasTurn(): boolean {
    return this.#writer?.hasTurn === true;
  }

  async next(): Promise<IteratorResult<Uint8Array, void>> {
    this.#pending++;
    this.#takeBack();
    try {
      for (;;) {
        if (this.#pausing !== null) await this.#pausing;
        this.#pausing = null;
        if (this.#isReleased) throwIfAborted(this.#signal);
        if (this.#isReleased) return { done: true, value: undefined };
        if (this.#pieces === null && this.isAtEnd) return this.#end();
        try {
          const page = this.#pieces === null ? await this.#begin() : null;
          if (page !== null) return this.#give(page);
          const result = await this.#pieces!.next();
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

  pause(): Promise<void> {
    assert(this.#lent !== null && this.#pending === 0, 'a scan is paused while its reader has the word');
    this.#pausing = this.#giveBack();
    return this.#pausing.catch(() => undefined);
  }

  /** Gives back everything except the snapshot and the piece that the reader has. */
  async #giveBack(): Promise<void> {
    const [pieces, threads] = [this.#pieces, this.#threads];
    this.#pieces = null;
    await pieces?.return();
    threads?.end();
    await threads?.underWay();
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

  /** Begins to find the matches. Returns the whole answer where it is a page that is in memory. */
  async #begin(): Promise<HeldPiece | null> {
    const { workers, pieceBytes = answerBytesMax, onTurn, begins = beginOne } = this.#settings;
    const { stats } = this;
    const startMs = performance.now();
    const open = (): LineWork => {
      const { signal } = this.#settings;
      if (typeof signal === 'function' && this.#signal === undefined) this.#heed(signal());
      throwIfAborted(this.#signal);
      this.#threads = queueOf(workers, this.#signal);
      const pace = new Pace(this.#signal);
      return { stats, pace, threads: this.#threads, turns: this.#turns, onTurn, pieceBytes };
    };
    const isWhole = this.#rest === this.#query;
    const begun = begins(this.#snapshot, this.#rest, { stats, settings: this.#settings, isWhole, open });
    const { page, writer, found } = await begun;
    if (page !== undefined) return page;
    this.#writer = writer;
    stats.selectMs += performance.now() - startMs;
    this.#pieces = writer.pieces(found);
    return null;
  }

  /** Returns a piece, and notes it where it is lent. Otherwise the reader gets a copy. */
  #give(piece: HeldPiece): IteratorResult<Uint8Array, void> {
    const { lends, keep } = this.#settings;
    const isWhole = piece.isLast && !this.#isBegun;
    const framed = framedPiece(this.#frame, piece.bytes, !this.#isBegun, piece.isLast);
    this.#isBegun = true;
    this.isAtEnd = piece.isLast;
    // A query for the newest matches goes forward from now on: the first row that was given has fixed where the answer begins.
    this.#rest = { ...this.#query, after: piece.last, limit: this.#query.limit - this.stats.rowsReturned };
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

/** What an answer is begun with. */
export interface Beginning {
  readonly stats: ScanStats;
  readonly settings: AnswerSettings;
  /** Whether nothing of the answer has been given. */
  readonly isWhole: boolean;
  /** What a wait needs. Throws if the answer has been aborted. */
  readonly open: () => LineWork;
}

/** The whole answer where it is a page that is in memory, or what is found and what writes it. */
export type Begun =
  | { readonly page: HeldPiece; readonly writer?: never; readonly found?: never }
  | {
      readonly page?: never;
      readonly writer: LineWriter;
      readonly found: AsyncIterator<Matches | MergedRows, void>;
    };

/** Plans a query for the records of one agent, and begins to find its matches. */
async function beginOne(
  { schema, runs }: Snapshot,
  query: Query,
  { stats, settings, isWhole, open }: Beginning,
): Promise<Begun> {
  const { remote, pieceBytes = answerBytesMax, bytesMax } = settings;
  const predicates = preparePredicates(query, schema);
  assertStanding(runs, [query.after, query.before]);
  const plan = planScan(runs, query);
  if (query.limit > 0 && isWhole) {
    stats.runs = plan.end - plan.first;
    stats.rowGroups = plan.rowGroups;
  }
  const written = writtenFields(schema, query);
  const page = pageInMemory(plan, query, written, { stats, pieceBytes, bytesMax });
  if (page !== null) return { page };
  const work = open();
  const writer = new LineWriter(written, work);
  const { pace, threads } = work;
  const scan = { stats, pace, threads, remote, onWait: () => writer.releaseTables() };
  const filter = new RowGroupFilter(schema, predicates, scan);
  // `bytesMax` refuses queries before they begin, so it does not apply after a pause.
  if (bytesMax !== undefined && isWhole && query.limit > 0) {
    const size = { fields: written.fields, limit: query.limit };
    const bytes = await readingEstimate(plan, filter.pruning, size, scan);
    if (bytes > bytesMax) throw tooMuchToRead(bytes, bytesMax);
  }
  const finder = finderOf(plan, filter, scan, { schema, predicates, fields: written.fields });
  return { writer, found: finder.matches(query.limit) };
}

/** The bytes that a format puts before and after the lines of an answer. */
interface Frame {
  readonly start: Uint8Array;
  readonly end: Uint8Array;
  /** Length of the beginning of the first line that `start` replaces. */
  readonly replacedBytes: number;
}

const encoder = new TextEncoder();
const nothing = new Uint8Array(0);

/** A JSON array. Each line begins with a comma, except that the first element must have none: `[` replaces it. */
const arrayFrame: Frame = { start: encoder.encode('['), end: encoder.encode(']'), replacedBytes: 1 };

/** The frame of the answer to a query; null for JSON Lines, which has none. */
function frameOf(query: Query, schema: Schema, columns: readonly string[] = ['_cursor']): Frame | null {
  const format = query.form?.format ?? 'jsonl';
  if (format !== 'csv') return format === 'json' ? arrayFrame : null;
  const names = writtenFields(schema, query).fields.map((field) => schema.fields[field]!.name);
  // Field names contain no character that would need quotes in CSV.
  return { start: encoder.encode(`${[...columns, ...names].join(',')}\r\n`), end: nothing, replacedBytes: 0 };
}

/** A piece with what the format puts before the first one and after the last one; the piece itself where that is nothing. */
function framedPiece(frame: Frame | null, piece: Uint8Array, isFirst: boolean, isLast: boolean): Uint8Array {
  if (frame === null || !(isFirst || isLast)) return piece;
  const { start, end, replacedBytes } = frame;
  return Buffer.concat([
    isFirst ? start : nothing,
    isFirst ? piece.subarray(replacedBytes) : piece,
    isLast ? end : nothing,
  ]);
}

/** Statistics with all counters at zero. */
export function newScanStats(): ScanStats {
  return {
    runs: 0,
    rowGroups: 0,
    rowGroupsPrunedByTime: 0,
    rowGroupsPrunedByZone: 0,
    rowGroupsPrunedByValue: 0,
    rowGroupsPrunedByGram: 0,
    rowGroupsPrunedByDictionary: 0,
    rowGroupsScanned: 0,
    rowsScanned: 0,
    rowsReturned: 0,
    bytesRead: 0,
    columnsDecoded: 0,
    columnsCached: 0,
    columnsPrunedByGram: 0,
    gramPiecesRead: 0,
    valuePiecesRead: 0,
    selectMs: 0,
    writeMs: 0,
  };
}

/** The options of a scan, and the resources that the engine adds to them. */
export type ScanSettings = ScanOptions & AnswerSettings;

/**
 * Starts a query on a snapshot and takes over the snapshot. The snapshot is released when the answer has ended or failed, when the
 * iteration is ended early (`return`, also before the first `next`), or when the signal is aborted. A caller that neither reads the lines
 * nor aborts must call `return`.
 *
 * Errors are thrown by `lines`: `invalid` for a query that does not fit the schema; `cancelled`, or the signal's own reason where that is a
 * `LogstrataError`; and whatever reading the row groups throws. Nothing is read before the first `next`.
 */
export function executeScan(snapshot: Snapshot, query: Query, settings: ScanSettings = {}): Scan {
  const stats = newScanStats();
  if (settings.joins !== true || settings.lends !== true)
    return { stats, lines: new Answer(snapshot, query, settings, stats) };
  const { runs, schema } = snapshot;
  const known = ofStates.get(runs)?.get(query);
  if (known?.schema === schema) {
    snapshot.release();
    return { stats: Object.assign(stats, known.stats), lines: wholeAnswer(known.bytes) };
  }
  // Most pages are asked for once, and copying one takes longer than writing it.
  const isAgain = asked.has(query);
  asked.add(query);
  const keep = (bytes: Uint8Array): void => {
    const answers = ofStates.get(runs) ?? new Map<Query, KnownAnswer>();
    if (bytes.length > answerBytesMax) return;
    if (answers.size === knownQueriesMax) answers.delete(answers.keys().next().value!);
    const { rowsReturned, rowGroups } = stats;
    answers.set(query, { schema, bytes, stats: { runs: stats.runs, rowGroups, rowsReturned } });
    ofStates.set(runs, answers);
  };
  const answer = new Answer(snapshot, query, isAgain ? { ...settings, keep } : settings, stats);
  return { stats, lines: answer };
}

/** A whole answer in one piece. Nobody changes the bytes, so callers may cache what they derive from them. */
interface KnownAnswer {
  readonly schema: Snapshot['schema'];
  readonly bytes: Uint8Array;
  readonly stats: Pick<ScanStats, 'runs' | 'rowGroups' | 'rowsReturned'>;
}

/** Short answers on each state to the last queries that were asked again. A new state has other runs. */
const ofStates = new WeakMap<Snapshot['runs'], Map<Query, KnownAnswer>>();
/** The queries (the same object) that were asked. */
const asked = new WeakSet<Query>();

/** An answer that was given before. */
function wholeAnswer(bytes: Uint8Array): PieceIterator {
  const pieces = (async function* (): AsyncGenerator<Uint8Array, void> {
    yield bytes;
  })();
  return Object.assign(pieces, { isAtEnd: true });
}
