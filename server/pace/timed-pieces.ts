import { LogstrataError, type ReadyIterable, type Scan, type ScanStats } from '../../engine/index.js';

/**
 * Controllers of scans that ended without an interruption, to be used again: making one and the signal's first listener takes 5 µs,
 * a tenth of a short answer. A scan that has ended looks at its signal no more.
 */
const idleControllers: AbortController[] = [];
const idleControllersMax = 64;

/**
 * Reads a scan with a bound on the time that the scan itself takes: the time that a slow client takes does not count, nor that in which
 * the scan waits for others (`hold`).
 * Ending early stops the scan. What is thrown is the scan's own failure, `timeout`, or the reason of an interruption.
 */
export class TimedPieces {
  readonly #limitMs: number;
  /** Made when the scan asks for its signal, or is to be stopped: one that is over by then needs none. */
  #abort: AbortController | undefined;
  readonly #signal = (): AbortSignal => this.#controller().signal;
  #beginning: Promise<Scan> | undefined;
  #pieces: AsyncIterator<Uint8Array> | undefined;
  /** The same, where it can be asked without waiting. */
  #ready: ReadyIterable<Uint8Array> | undefined;
  #isDone = false;
  /** What the scan costs; undefined until there is one. */
  stats: ScanStats | undefined;
  /** Of the pieces that were given. */
  bytes = 0;
  /** From the request to the first piece, or the end where there is none; null until then. Set by who answers. */
  firstMs: number | null = null;
  /** Time that the scan has taken in the waits that are over, and when the present one has begun. */
  #usedMs = 0;
  #sinceMs: number | undefined;
  #isHeld = false;
  /** One timer for all waits of a query: a timer for each would cost more than the waits of a short answer. */
  #timer: NodeJS.Timeout | undefined;
  #reject: ((reason: Error) => void) | undefined;

  constructor(limitMs: number) {
    this.#limitMs = limitMs;
  }

  /** The scan is over: nothing needs to be closed. */
  get isDone(): boolean {
    return this.#isDone;
  }

  /** Whether the piece given last is known to be the last. Where it is not, only `next` tells. */
  get isAtEnd(): boolean {
    return this.#ready?.isAtEnd === true;
  }

  /** Starts the scan, within the same bound. */
  start(begin: (signal: () => AbortSignal) => Scan | Promise<Scan>): Scan | Promise<Scan> {
    const begun = begin(this.#signal);
    return begun instanceof Promise ? this.#startLater(begun) : this.#take(begun);
  }

  async #startLater(begun: Promise<Scan>): Promise<Scan> {
    this.#beginning = begun;
    return this.#take(await this.#within(begun));
  }

  #take(scan: Scan): Scan {
    this.stats = scan.stats;
    if ('now' in scan.lines) this.#ready = scan.lines;
    this.#pieces = scan.lines[Symbol.asyncIterator]();
    return scan;
  }

  /** The next piece, or undefined at the end, where nothing has to be waited for; null where `next` has to be asked. */
  now(): Uint8Array | undefined | null {
    if (this.#isDone) return undefined;
    const result = this.#askNow();
    if (result === null) return null;
    if (result.done !== true) return this.#give(result.value);
    this.#finish();
    return undefined;
  }

  #give(piece: Uint8Array): Uint8Array {
    this.bytes += piece.length;
    return piece;
  }

  /** A scan that fails is over. */
  #askNow(): IteratorResult<Uint8Array, void> | null {
    try {
      return this.#ready?.now() ?? null;
    } catch (error) {
      this.#finish();
      throw error;
    }
  }

  /** The next piece; undefined at the end. */
  async next(): Promise<Uint8Array | undefined> {
    if (this.#isDone || this.#pieces === undefined) return undefined;
    const result = await this.#within(this.#pieces.next());
    if (result.done !== true) return this.#give(result.value);
    this.#finish();
    return undefined;
  }

  #controller(): AbortController {
    return (this.#abort ??= idleControllers.pop() ?? new AbortController());
  }

  #finish(): void {
    this.#isDone = true;
    if (this.#timer !== undefined) clearTimeout(this.#timer);
    const abort = this.#abort;
    if (abort !== undefined && !abort.signal.aborted && idleControllers.length < idleControllersMax)
      idleControllers.push(abort);
  }

  /** Stops the scan for this reason. Callers that wait for it are told the same reason. */
  interrupt(reason: LogstrataError): void {
    if (this.#isDone) return;
    this.#controller().abort(reason);
    this.#reject?.(reason);
  }

  /** Ends the scan if it has not ended, and resolves when it is over: then its memory is free. */
  async close(): Promise<void> {
    if (this.#isDone) return;
    this.#isDone = true;
    clearTimeout(this.#timer);
    this.#controller().abort(new LogstrataError('cancelled', 'nobody reads this answer any more'));
    try {
      // A scan that begins too late must still be told that nobody reads it.
      const pieces = this.#pieces ?? (await this.#beginning)?.lines[Symbol.asyncIterator]();
      await pieces?.return?.();
    } catch {
      // The failure is that of the interruption, which has been reported.
    }
  }

  #within<T>(work: Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      // With both outcomes taken here, a scan that fails after an interruption does not end the process.
      work.then(
        (value) => {
          this.#leave();
          resolve(value);
        },
        (error: Error) => {
          this.#leave();
          reject(error);
        },
      );
      const signal = this.#abort?.signal;
      if (signal?.aborted === true) reject(signal.reason as Error);
      this.#reject = reject;
      if (!this.#isHeld) this.#count();
    });
  }

  /** The scan waits for others from here on until `goOn`. */
  hold(): void {
    this.#isHeld = true;
    this.#stopCounting();
  }

  goOn(): void {
    this.#isHeld = false;
    if (this.#reject !== undefined && !this.#isDone) this.#count();
  }

  #count(): void {
    this.#sinceMs = performance.now();
    this.#timer ??= setTimeout(() => this.#onTimer(), Math.max(0, this.#limitMs - this.#usedMs));
  }

  #stopCounting(): void {
    if (this.#sinceMs !== undefined) this.#usedMs += performance.now() - this.#sinceMs;
    this.#sinceMs = undefined;
  }

  #leave(): void {
    this.#stopCounting();
    this.#reject = undefined;
  }

  #onTimer(): void {
    this.#timer = undefined;
    // Nothing waits for the scan now: the next wait sets a timer to the time that is left.
    if (this.#sinceMs === undefined) return;
    const leftMs = this.#limitMs - this.#usedMs - (performance.now() - this.#sinceMs);
    if (leftMs > 0) {
      this.#timer = setTimeout(() => this.#onTimer(), leftMs);
      return;
    }
    this.interrupt(
      new LogstrataError(
        'timeout',
        `the query ran longer than ${this.#limitMs / 1000} s, which is the time limit of this server`,
      ),
    );
  }
}
