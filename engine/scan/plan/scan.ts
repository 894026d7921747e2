import type { ScanStats } from './query.js';

export interface Scan {
  /** The answer in the form that the query asks for, in pieces of whole lines and what stands around them. Read once. Ending early (return, or the signal) stops the work. */
  readonly lines: AsyncIterable<Uint8Array> | ReadyIterable<Uint8Array>;
  readonly stats: ScanStats;
}

export interface ScanOptions {
  /** Stops the scan. A function is asked for it, always for the same one, where the scan lasts long enough to be stopped. */
  readonly signal?: AbortSignal | (() => AbortSignal) | undefined;
  /** Memory of one piece of the answer; the default is `answerBytesMax`. */
  readonly pieceBytes?: number | undefined;
  /**
   * A query that may have to read more bytes of columns than this is refused before it reads any: `invalid`, with how many they are. See
   * `readingEstimate`. A short page from memory is answered in any case.
   */
  readonly bytesMax?: number | undefined;
  /**
   * Pieces are lent: each may be read until the next one is asked for or the scan is ended, and lies in memory that is written to
   * again then. That saves a copy of the whole answer. Their reader goes on to the end or calls `return`, also after an abort. By
   * default a piece is its reader's own.
   */
  readonly lends?: boolean | undefined;
  /**
   * Lent pieces may be those that another scan was given in the same turn of the event loop, for the same query to the same state: the same
   * object then, which never stands for other bytes, so that what is made of it can be used again. What such a scan cost stands in the
   * statistics of the first one alone.
   */
  readonly joins?: boolean | undefined;
  /**
   * Called with true when the scan begins to wait until other long answers let it have memory, and with false when that is over: it does
   * nothing meanwhile.
   */
  readonly onTurn?: ((waits: boolean) => void) | undefined;
}

/** What can be asked for without waiting, too. */
export interface ReadyIterable<T> extends AsyncIterableIterator<T, void> {
  /**
   * The next one, if it can be had without waiting for anything; null where it can't, and while a call of `next` is under way. Then
   * `next` gives it.
   */
  now(): IteratorResult<T, void> | null;
  /** What was given last is all there is: nothing but the end follows. */
  readonly isAtEnd: boolean;
  return(): Promise<IteratorResult<T, void>>;
}
