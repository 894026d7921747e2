import { LogstrataError, type PieceIterator, type Scan, type ScanStats } from '../../engine/index.js';

/**
 * Abort controllers of scans that ended without an interruption, kept for reuse: making a controller and the first listener of its signal
 * takes 5 µs, a tenth of a short answer. Reuse is safe because a scan that has ended does not look at its signal.
 */
const idleControllers: AbortController[] = [];
const idleControllersMax = 64;

/**
 * Reads the pieces of a scan with a bound on the time that the scan itself takes. Time in which a slow client takes a piece does not count,
 * nor does time in which the scan waits for other answers (`hold`). Reading throws the scan's own failure, `timeout`, or the reason of an
 * interruption.
 */
export class TimedPieces {
  /** Made when the scan asks for its signal, or when it has to be stopped. Short scans end before either happens. */
  #abort: AbortController | undefined;
  readonly #signal = (): AbortSignal => this.#controller().signal;
  #beginning: Promise<Scan> | null = null;
  #pieces: AsyncIterator<Uint8Array> | undefined;
  /** The same pieces, if the scan knows which one is the last. */
  #ending: PieceIterator | undefined;
  #isDone = false;
  /** What the scan has cost so far; undefined until it has begun. */
  stats: ScanStats | undefined;
  /** Bytes of all pieces that were read. */
  bytes = 0;
  /** Time from the request to the first piece, or to the end if there is none; null until then. The route sets it. */
  firstMs: number | null = null;
  /** Time that the scan has taken, without the wait under way. */
  #usedMs = 0;
  /** When the wait under way began to count; undefined while no time counts. */
  #sinceMs: number | undefined;
  #isHeld = false;
  /** One timer serves all waits of a query: a timer for each would cost more than the waits of a short answer. */
  #timer: NodeJS.Timeout | undefined;
  /** Rejects the wait under way; undefined while nobody waits for the scan. */
  #reject: ((reason: Error) => void) | undefined;

  constructor(private readonly limitMs: number) {}

  /** Whether the scan is over, so that nothing has to be closed. */
  get isDone(): boolean {
    return this.#isDone;
  }

  /** Whether the piece that was read last is known to be the last one. If false, only `next` tells whether more follow. */
  get isAtEnd(): boolean {
    return this.#ending?.isAtEnd === true;
  }

  /** Starts the scan. The time that this takes counts too. */
  async start(begin: (signal: () => AbortSignal) => Promise<Scan>): Promise<Scan> {
    this.#beginning = begin(this.#signal);
    const scan = await this.#within(this.#beginning);
    this.stats = scan.stats;
    if ('isAtEnd' in scan.lines) this.#ending = scan.lines;
    this.#pieces = scan.lines[Symbol.asyncIterator]();
    return scan;
  }

  /** The next piece; undefined at the end. */
  async next(): Promise<Uint8Array | undefined> {
    if (this.#isDone || this.#pieces === undefined) return undefined;
    const result = await this.#within(this.#pieces.next());
    if (result.done === true) {
      this.#finish();
      return undefined;
    }
    this.bytes += result.value.length;
    return result.value;
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

  /** Stops the scan. A caller that waits for a piece gets the same reason as a rejection. */
  interrupt(reason: LogstrataError): void {
    if (this.#isDone) return;
    this.#controller().abort(reason);
    this.#reject?.(reason);
  }

  /** Stops the scan if it has not ended. Resolves when it is over and its memory is free. */
  async close(): Promise<void> {
    if (this.#isDone) return;
    this.#isDone = true;
    clearTimeout(this.#timer);
    this.#controller().abort(new LogstrataError('cancelled', 'nobody reads this answer any more'));
    try {
      // A scan that is still being started must be stopped too, once it has begun.
      const pieces = this.#pieces ?? (await this.#beginning)?.lines[Symbol.asyncIterator]();
      await pieces?.return?.();
    } catch {
      // The scan fails because of the interruption above, which has been reported.
    }
  }

  /** Waits for `work` within the bound on time. Rejects early when the scan is interrupted. */
  #within<T>(work: Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      // Both outcomes are handled here, so a scan that fails after an interruption is no unhandled rejection, which would end the process.
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

  /** Stops counting time: the scan waits for other answers until `goOn`. */
  hold(): void {
    this.#isHeld = true;
    this.#stopCounting();
  }

  /** Counts time again, after `hold`. */
  goOn(): void {
    this.#isHeld = false;
    if (this.#reject !== undefined && !this.#isDone) this.#count();
  }

  #count(): void {
    this.#sinceMs = performance.now();
    this.#timer ??= setTimeout(() => this.#onTimer(), Math.max(0, this.limitMs - this.#usedMs));
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
    // No time counts now. The next wait sets the timer again, for the time that is left.
    if (this.#sinceMs === undefined) return;
    const leftMs = this.limitMs - this.#usedMs - (performance.now() - this.#sinceMs);
    if (leftMs > 0) {
      this.#timer = setTimeout(() => this.#onTimer(), leftMs);
      return;
    }
    this.interrupt(
      new LogstrataError(
        'timeout',
        `the query ran longer than ${this.limitMs / 1000} s, the time limit of this server`,
      ),
    );
  }
}
