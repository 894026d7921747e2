import { setImmediate } from 'node:timers/promises';
import { isLogstrataError, LogstrataError } from '../../core/errors.js';

/** Milliseconds that a scan works before it yields to the event loop. */
const workMsMax = 5;

/** The pause of a scan that needs none. Short scans ask so often that making a promise each time would be noticed. */
const goOn = Promise.resolve();

/** Throws `cancelled`, or the signal's own reason where that is a `LogstrataError` (a time limit). */
export function throwIfAborted(signal: AbortSignal | undefined): void {
  if (signal === undefined || !signal.aborted) return;
  const reason: unknown = signal.reason;
  if (isLogstrataError(reason)) throw reason;
  throw new LogstrataError('cancelled', 'the query was cancelled', { cause: reason });
}

/** Keeps a scan from blocking the event loop. The scan calls `pause` between short steps. */
export class Pace {
  readonly #signal: AbortSignal | undefined;
  #resumedMs = performance.now();

  constructor(signal: AbortSignal | undefined) {
    this.#signal = signal;
  }

  /** Cancels the scan when it is aborted. */
  get signal(): AbortSignal | undefined {
    return this.#signal;
  }

  /** Lets the event loop run, once the scan has worked for more than `workMsMax`. Throws when the signal is aborted. */
  pause(): Promise<void> {
    throwIfAborted(this.#signal);
    return performance.now() - this.#resumedMs <= workMsMax ? goOn : this.#yield();
  }

  async #yield(): Promise<void> {
    await setImmediate();
    this.#resumedMs = performance.now();
    throwIfAborted(this.#signal);
  }
}
