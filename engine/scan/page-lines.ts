import { answerBytesMax } from '../terms/limits.js';
import { isPageQuery, writePage } from './write/page.js';
import { throwIfAborted } from '../store/reading/pace.js';
import { LentSpace, OwnSpace } from './write/piece-space.js';
import type { Query, ScanStats } from './plan/query.js';
import type { Snapshot } from '../store/reading/snapshot.js';
import { sharePage, SharedPage, sharedPage } from './turn-pages.js';
import type { ReadyIterable, ScanOptions } from './plan/scan.js';

/** The lines of an answer that was written at once: at most one piece. */
export class PageLines implements ReadyIterable<Uint8Array> {
  readonly isAtEnd = true;
  /** Null once it has been given. */
  #page: Uint8Array | null;
  /** The shared page that this reader must leave at the end; null where the reader owns its page. */
  #lent: SharedPage | null;
  readonly #signal: AbortSignal | undefined;

  private constructor(page: Uint8Array | null, lent: SharedPage | null, signal: AbortSignal | undefined) {
    this.#page = page;
    this.#lent = lent;
    this.#signal = signal;
  }

  /**
   * The answer, where it can be written without waiting; the snapshot is then released. Null otherwise; the snapshot is then still held,
   * and the statistics are unchanged.
   */
  static of(snapshot: Snapshot, query: Query, stats: ScanStats, options: ScanOptions): PageLines | null {
    const { pieceBytes = answerBytesMax, lends = false, joins = false } = options;
    // A signal that is only made on request cannot have been aborted yet.
    const signal = typeof options.signal === 'function' ? undefined : options.signal;
    if (pieceBytes < answerBytesMax || signal?.aborted === true || !isPageQuery(query)) return null;
    const page = lends ? lendPage(snapshot, query, stats, joins) : ownPage(snapshot, query, stats);
    if (page === null) return null;
    snapshot.release();
    if (page instanceof SharedPage) return new PageLines(page.bytes, page, signal);
    return new PageLines(page.length === 0 ? null : page, null, signal);
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  now(): IteratorResult<Uint8Array, void> {
    const page = this.#page;
    this.#page = null;
    if (page !== null) return { done: false, value: page };
    this.#leave();
    throwIfAborted(this.#signal);
    return { done: true, value: undefined };
  }

  async next(): Promise<IteratorResult<Uint8Array, void>> {
    return this.now();
  }

  async return(): Promise<IteratorResult<Uint8Array, void>> {
    this.#page = null;
    this.#leave();
    return { done: true, value: undefined };
  }

  #leave(): void {
    this.#lent?.leave();
    this.#lent = null;
  }
}

/** A page that belongs to its reader. */
function ownPage(snapshot: Snapshot, query: Query, stats: ScanStats): Uint8Array | null {
  const space = new OwnSpace();
  const page = writePage(snapshot, query, stats, space);
  space.close();
  return page;
}

/**
 * A page in the memory that it was written to. With `joins` this may be the page of the same query in this turn of the event loop. An empty
 * page is a plain empty array, because it needs no memory.
 */
function lendPage(
  snapshot: Snapshot,
  query: Query,
  stats: ScanStats,
  joins: boolean,
): SharedPage | Uint8Array | null {
  const known = joins ? sharedPage(snapshot, query, stats) : null;
  if (known !== null) return known;
  const space = new LentSpace();
  const bytes = writePage(snapshot, query, stats, space);
  if (bytes === null || bytes.length === 0) {
    space.close();
    return bytes;
  }
  const page = new SharedPage(bytes, space);
  if (joins) sharePage(snapshot, query, stats, page);
  return page;
}
