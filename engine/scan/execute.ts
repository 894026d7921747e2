import { answerBytesMax, knownAnswersMax } from '../terms/limits.js';
import { Answer, type AnswerSettings } from './answer.js';
import { framed } from './framed-lines.js';
import type { Query, ScanStats } from './plan/query.js';
import type { PieceIterator, Scan, ScanOptions } from './plan/scan.js';
import type { Snapshot } from '../store/reading/snapshot.js';

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
  const { schema } = snapshot;
  const { joins, lends } = settings;
  const shares = joins === true && lends === true;
  const known = shares ? knownAnswer(snapshot, query) : undefined;
  const stats = newScanStats();
  if (known !== undefined) {
    snapshot.release();
    return { stats: Object.assign(stats, known.stats), lines: new WholeAnswer(known) };
  }
  const lines = framed(new Answer(snapshot, query, settings, stats), query, schema);
  return { stats, lines: shares ? new SharedAnswer(lines, snapshot, query, stats) : lines };
}

/** A whole answer in one piece. Nobody changes the bytes, so callers may cache what they derive from them. */
interface KnownAnswer {
  readonly query: Query;
  readonly schema: Snapshot['schema'];
  readonly bytes: Uint8Array;
  readonly stats: Pick<ScanStats, 'runs' | 'rowGroups' | 'rowsReturned'>;
}

/** The last short answers on each state, oldest first. A new state has other runs. */
const ofStates = new WeakMap<Snapshot['runs'], KnownAnswer[]>();

/** The answer that was given to the same query (the same object) on the same state; undefined where it is not known. */
function knownAnswer({ runs, schema }: Snapshot, query: Query): KnownAnswer | undefined {
  return ofStates.get(runs)?.find((known) => known.query === query && known.schema === schema);
}

/** Keeps an answer, in place of the oldest one where there are `knownAnswersMax`. */
function keepAnswer(runs: Snapshot['runs'], answer: KnownAnswer): void {
  const known = ofStates.get(runs) ?? [];
  if (known.length === knownAnswersMax) known.shift();
  known.push(answer);
  ofStates.set(runs, known);
}

/** An answer that was given before. */
class WholeAnswer implements PieceIterator {
  readonly isAtEnd = true;
  #bytes: Uint8Array | null;

  constructor({ bytes }: KnownAnswer) {
    this.#bytes = bytes;
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  async next(): Promise<IteratorResult<Uint8Array, void>> {
    const bytes = this.#bytes;
    this.#bytes = null;
    return bytes === null ? { done: true, value: undefined } : { done: false, value: bytes };
  }

  async return(): Promise<IteratorResult<Uint8Array, void>> {
    this.#bytes = null;
    return { done: true, value: undefined };
  }
}

/** An answer that is kept for the same query on the same state if it turns out to be short. */
class SharedAnswer implements PieceIterator {
  readonly #lines: PieceIterator;
  readonly #known: Omit<KnownAnswer, 'bytes'> & { readonly runs: Snapshot['runs'] };
  #isBegun = false;

  constructor(lines: PieceIterator, { runs, schema }: Snapshot, query: Query, stats: ScanStats) {
    this.#lines = lines;
    this.#known = { runs, schema, query, stats };
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  get isAtEnd(): boolean {
    return this.#lines.isAtEnd;
  }

  async next(): Promise<IteratorResult<Uint8Array, void>> {
    const result = await this.#lines.next();
    if (this.#isBegun || result.done === true) return result;
    this.#isBegun = true;
    if (!this.#lines.isAtEnd || result.value.length > answerBytesMax) return result;
    const bytes = result.value.slice();
    const { runs, schema, query, stats } = this.#known;
    const { rowsReturned, rowGroups } = stats;
    keepAnswer(runs, { query, schema, bytes, stats: { runs: stats.runs, rowGroups, rowsReturned } });
    return { done: false, value: bytes };
  }

  return(): Promise<IteratorResult<Uint8Array, void>> {
    return this.#lines.return();
  }
}
