import { answerBytesMax } from '../terms/limits.js';
import { isForPage, writePage } from './write/page.js';
import { throwIfAborted } from '../store/reading/pace.js';
import { LentSpace, OwnSpace } from './write/piece-space.js';
import type { Query, ScanStats } from './plan/query.js';
import type { Snapshot } from '../store/reading/snapshot.js';
import { keepForTurn, LentPage, pageOfTurn } from './turn-pages.js';
import type { ReadyIterable, ScanOptions } from './plan/scan.js';

/** An answer that is there already: at most one piece. */
export class PageLines implements ReadyIterable<Uint8Array> {
  readonly isAtEnd = true;
  /** Until it has been given. */
  #page: Uint8Array | null;
  /** What is to be left at the end; null when the page is its reader's own. */
  #lent: LentPage | null;
  readonly #signal: AbortSignal | undefined;

  private constructor(page: Uint8Array | null, lent: LentPage | null, signal: AbortSignal | undefined) {
    this.#page = page;
    this.#lent = lent;
    this.#signal = signal;
  }

  /** The answer where it can be written at once: the snapshot is not needed any more. Null where it can't; then nothing has been done. */
  static of(snapshot: Snapshot, query: Query, stats: ScanStats, options: ScanOptions): PageLines | null {
    const { pieceBytes = answerBytesMax, lends = false, joins = false } = options;
    // One that is yet to be asked for can't have been aborted.
    const signal = typeof options.signal === 'function' ? undefined : options.signal;
    if (pieceBytes < answerBytesMax || signal?.aborted === true || !isForPage(query)) return null;
    const page = lends ? lendPage(snapshot, query, stats, joins) : ownPage(snapshot, query, stats);
    if (page === null) return null;
    snapshot.release();
    if (page instanceof LentPage) return new PageLines(page.bytes, page, signal);
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

/** A page where it was written, now or, where that will do, for another query of this turn. An empty one lies nowhere. */
function lendPage(
  snapshot: Snapshot,
  query: Query,
  stats: ScanStats,
  joins: boolean,
): LentPage | Uint8Array | null {
  const known = joins ? pageOfTurn(snapshot, query, stats) : null;
  if (known !== null) return known;
  const space = new LentSpace();
  const bytes = writePage(snapshot, query, stats, space);
  if (bytes === null || bytes.length === 0) {
    space.close();
    return bytes;
  }
  const page = new LentPage(bytes, space);
  if (joins) keepForTurn(snapshot, query, stats, page);
  return page;
}
