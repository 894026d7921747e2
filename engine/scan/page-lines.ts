import { answerBytesMax } from '../terms/limits.js';
import { isPageQuery, writePage } from './write/page.js';
import { throwIfAborted } from '../store/reading/pace.js';
import { LentSpace, OwnSpace } from './write/piece-space.js';
import type { Query, ScanStats } from './plan/query.js';
import type { Snapshot } from '../store/reading/snapshot.js';
import { sharePage, SharedPage, sharedPage } from './turn-pages.js';
import type { ReadyIterable, ScanOptions } from './plan/scan.js';

/** An answer that is there already: at most one piece. */
export class PageLines implements ReadyIterable<Uint8Array> {
  readonly isAtEnd = true;
  /** Null once it has been given. */
  #page: Uint8Array | null;
  /** The page that this reader leaves at the end; null when the page is a copy of its own. */
  #lent: SharedPage | null;
  readonly #signal: AbortSignal | undefined;

  private constructor(page: Uint8Array | null, lent: SharedPage | null, signal: AbortSignal | undefined) {
    this.#page = page;
    this.#lent = lent;
    this.#signal = signal;
  }

  /** The answer, where it can be written at once; the snapshot is then released. Null where it can't; then nothing has been done. */
  static of(snapshot: Snapshot, query: Query, stats: ScanStats, options: ScanOptions): PageLines | null {
    const { pieceBytes = answerBytesMax, lends = false, joins = false } = options;
    // A signal that is made when it is asked for can't have been aborted yet.
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

/** A page that is its reader's own. */
function ownPage(snapshot: Snapshot, query: Query, stats: ScanStats): Uint8Array | null {
  const space = new OwnSpace();
  const page = writePage(snapshot, query, stats, space);
  space.close();
  return page;
}

/** A page where it was written: now, or with `joins` for the same query in this turn of the event loop. An empty page lies nowhere. */
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
