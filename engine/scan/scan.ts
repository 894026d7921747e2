import type { ScanStats } from './query.js';

/** A started scan. */
export interface Scan {
  /**
   * The answer in the format of the query, in pieces that begin and end between lines; the first and last also have what the format puts
   * around the lines. Can be iterated once. Ending the iteration early (`return`, or the signal) stops the work.
   */
  readonly lines: AsyncIterable<Uint8Array> | PieceIterator;
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
   * they are. See `readingEstimate`.
   */
  readonly bytesMax?: number | undefined;
  /**
   * Pieces are lent: a piece may be read until the next one is asked for or the scan ends; then its memory is reused. This saves copying
   * the whole answer. The reader must iterate to the end or call `return`, also after an abort. By default a piece belongs to its reader.
   */
  readonly lends?: boolean | undefined;
  /**
   * An answer of one lent piece may be shared with other scans of the same query (the same object) on the same state. Such scans get the same
   * piece, whose bytes never change, so the caller may cache what it derives from it. Only the first scan's statistics include the cost.
   */
  readonly joins?: boolean | undefined;
  /**
   * Called with true when the scan begins to wait for memory that other long answers use, and with false when the wait is over. The scan
   * does nothing in between.
   */
  readonly onTurn?: ((waits: boolean) => void) | undefined;
}

/** The pieces of an answer. */
export interface PieceIterator extends AsyncIterableIterator<Uint8Array, void> {
  /** Whether the piece that was given last is known to be the last one. */
  readonly isAtEnd: boolean;
  return(): Promise<IteratorResult<Uint8Array, void>>;
}
