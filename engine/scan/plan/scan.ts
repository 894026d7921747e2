import type { ScanStats } from './query.js';

/** A started scan. */
export interface Scan {
  /**
   * The answer in the format of the query, in pieces that begin and end between lines; the first and last also have what the format puts
   * around the lines. Can be iterated once. Ending the iteration early (`return`, or the signal) stops the work.
   */
  readonly lines: AsyncIterable<Uint8Array> | ReadyIterable<Uint8Array>;
  readonly stats: ScanStats;
}

/** Options of a scan that its caller may choose. */
export interface ScanOptions {
  /**
   * Stops the scan. A function is called only if the scan lasts long enough to be stopped; it must always return the same signal. This
   * saves short scans the cost of making one.
   */
  readonly signal?: AbortSignal | (() => AbortSignal) | undefined;
  /** Bytes of one piece of the answer; the default is `answerBytesMax`. */
  readonly pieceBytes?: number | undefined;
  /**
   * A query that may have to read more bytes of columns than this fails with `invalid` before it reads any; the message says how many bytes
   * they are. See `readingEstimate`. A short page that is in memory is always answered.
   */
  readonly bytesMax?: number | undefined;
  /**
   * Pieces are lent: a piece may be read until the next one is asked for or the scan ends; then its memory is reused. This saves copying
   * the whole answer. The reader must iterate to the end or call `return`, also after an abort. By default a piece belongs to its reader.
   */
  readonly lends?: boolean | undefined;
  /**
   * A lent piece may be shared with another scan in the same turn of the event loop, if it is the same query on the same state. Such scans
   * get the same object, and that object never holds other bytes, so the caller may cache what it derives from it. Only the first scan's
   * statistics include the cost.
   */
  readonly joins?: boolean | undefined;
  /**
   * Called with true when the scan begins to wait for memory that other long answers use, and with false when the wait is over. The scan
   * does nothing in between.
   */
  readonly onTurn?: ((waits: boolean) => void) | undefined;
}

/** An iterator that can also be asked without waiting. */
export interface ReadyIterable<T> extends AsyncIterableIterator<T, void> {
  /**
   * The next element, if it is available without waiting. Null where it is not, and while a call of `next` is pending; `next` then gives
   * the element.
   */
  now(): IteratorResult<T, void> | null;
  /** Whether the element that was given last was the last one. */
  readonly isAtEnd: boolean;
  return(): Promise<IteratorResult<T, void>>;
}
