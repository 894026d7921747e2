import type { ReadyIterable, ScanOptions } from '../archive.js';
import { answerBytesMax, answerFirstBytes } from '../limits.js';
import { writePage } from './page.js';
import { throwIfAborted } from './pace.js';
import { LentSpace, OwnSpace } from './piece-space.js';
import type { Query, ScanStats } from './query.js';
import type { Snapshot } from './snapshot.js';

/** An answer that is there already: at most one piece. */
export class PageLines implements ReadyIterable<Uint8Array> {
  readonly isAtEnd = true;
  #page: Uint8Array | null;
  /** Where it lies; null when it is its reader's own. */
  readonly #space: LentSpace | null;
  readonly #signal: AbortSignal | undefined;

  private constructor(page: Uint8Array | null, space: LentSpace | null, signal: AbortSignal | undefined) {
    this.#page = page;
    this.#space = space;
    this.#signal = signal;
  }

  /** The answer where it can be written at once: the snapshot is not needed any more. Null where it can't; then nothing has been done. */
  static of(snapshot: Snapshot, query: Query, stats: ScanStats, options: ScanOptions): PageLines | null {
    const { pieceBytes = answerBytesMax, lends } = options;
    // One that is yet to be asked for can't have been aborted.
    const signal = typeof options.signal === 'function' ? undefined : options.signal;
    if (pieceBytes < answerFirstBytes || signal?.aborted === true) return null;
    const space = lends === true ? new LentSpace() : new OwnSpace();
    const page = writePage(snapshot, query, stats, space);
    if (page === null || lends !== true) space.close();
    if (page === null) return null;
    snapshot.release();
    return new PageLines(page.length === 0 ? null : page, lends === true ? space : null, signal);
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  now(): IteratorResult<Uint8Array, void> {
    const page = this.#page;
    this.#page = null;
    if (page !== null) return { done: false, value: page };
    this.#space?.close();
    throwIfAborted(this.#signal);
    return { done: true, value: undefined };
  }

  async next(): Promise<IteratorResult<Uint8Array, void>> {
    return this.now();
  }

  async return(): Promise<IteratorResult<Uint8Array, void>> {
    this.#page = null;
    this.#space?.close();
    return { done: true, value: undefined };
  }
}
