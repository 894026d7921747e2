import { setImmediate } from 'node:timers/promises';
import { isLogstrataError, LogstrataError } from '../../terms/errors.js';

/** A scan works this long before it lets the process answer others. */
const workMsMax = 5;

/** Throws `cancelled`, or the signal's own reason where that is a `LogstrataError` (a time limit). */
export function throwIfAborted(signal: AbortSignal | undefined): void {
  if (signal === undefined || !signal.aborted) return;
  const reason: unknown = signal.reason;
  if (isLogstrataError(reason)) throw reason;
  throw new LogstrataError('cancelled', 'the query was cancelled', { cause: reason });
}

/** The signal of a scan. Where it is given as a function, that is called for it. */
export function signalOf(signal: AbortSignal | (() => AbortSignal) | undefined): AbortSignal | undefined {
  return typeof signal === 'function' ? signal() : signal;
}

/** Lets other work of the process run during a scan, which calls `pause` between steps of a few milliseconds. */
export class Pace {
  readonly #signal: AbortSignal | undefined;
  #resumedMs = performance.now();

  constructor(signal: AbortSignal | undefined) {
    this.#signal = signal;
  }

  /** Ends the scan when it is aborted. */
  get signal(): AbortSignal | undefined {
    return this.#signal;
  }

  /**
   * A promise to wait for, during which the event loop runs, once the scan has worked for a few milliseconds; undefined before that.
   * Throws, or rejects, when the signal is aborted.
   */
  pause(): Promise<void> | undefined {
    throwIfAborted(this.#signal);
    return performance.now() - this.#resumedMs <= workMsMax ? undefined : this.#yield();
  }

  async #yield(): Promise<void> {
    await setImmediate();
    this.#resumedMs = performance.now();
    throwIfAborted(this.#signal);
  }
}
