import type { Scan } from '../engine/archive.js';
import { LogstrataError } from '../engine/errors.js';

/**
 * Reads a scan with a bound on the time that the scan itself takes: the time that a slow client takes does not count.
 * Ending early stops the scan. What is thrown is the scan's own failure, `timeout`, or the reason of the client's going away.
 */
export class TimedPieces {
  readonly #abort: AbortController;
  readonly #limitMs: number;
  #beginning: Promise<Scan> | undefined;
  #pieces: AsyncIterator<Uint8Array> | undefined;
  #leftMs: number;
  #isDone = false;

  constructor(abort: AbortController, limitMs: number) {
    this.#abort = abort;
    this.#limitMs = limitMs;
    this.#leftMs = limitMs;
  }

  /** Starts the scan, within the same bound. */
  async start(begin: (signal: AbortSignal) => Promise<Scan>): Promise<Scan> {
    this.#beginning = begin(this.#abort.signal);
    const scan = await this.#within(this.#beginning);
    this.#pieces = scan.lines[Symbol.asyncIterator]();
    return scan;
  }

  /** The next piece; undefined at the end. */
  async next(): Promise<Uint8Array | undefined> {
    if (this.#isDone || this.#pieces === undefined) return undefined;
    const result = await this.#within(this.#pieces.next());
    if (result.done !== true) return result.value;
    this.#isDone = true;
    return undefined;
  }

  /** Ends the scan if it has not ended, and resolves when it is over: then its memory is free. */
  async close(): Promise<void> {
    if (this.#isDone) return;
    this.#isDone = true;
    if (!this.#abort.signal.aborted)
      this.#abort.abort(new LogstrataError('cancelled', 'nobody reads this answer any more'));
    try {
      // A scan that begins too late must still be told that nobody reads it.
      const pieces = this.#pieces ?? (await this.#beginning)?.lines[Symbol.asyncIterator]();
      await pieces?.return?.();
    } catch {
      // Whoever stops reading has said why already; how the scan takes that is no news.
    }
  }

  async #within<T>(work: Promise<T>): Promise<T> {
    const { signal } = this.#abort;
    const startMs = performance.now();
    let timer: NodeJS.Timeout | undefined;
    let leave: (() => void) | undefined;
    const interrupted = new Promise<never>((_resolve, reject) => {
      leave = () =>
        reject(signal.reason instanceof Error ? signal.reason : new LogstrataError('cancelled', 'cancelled'));
      if (signal.aborted) leave();
      else signal.addEventListener('abort', leave, { once: true });
      timer = setTimeout(() => this.#abort.abort(this.#timeout()), Math.max(0, this.#leftMs));
    });
    try {
      return await Promise.race([work, interrupted]);
    } finally {
      clearTimeout(timer);
      if (leave !== undefined) signal.removeEventListener('abort', leave);
      this.#leftMs -= performance.now() - startMs;
      // The loser of the race must not end the process when it fails later.
      work.catch(() => undefined);
      interrupted.catch(() => undefined);
    }
  }

  #timeout(): LogstrataError {
    return new LogstrataError(
      'timeout',
      `the query ran longer than ${this.#limitMs / 1000} s, which is the time limit of this server`,
    );
  }
}
