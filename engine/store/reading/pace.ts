import { setImmediate } from 'node:timers/promises';
import { isLogstrataError, LogstrataError } from '../../terms/errors.js';

/** Milliseconds that a scan works before it yields to the event loop. */
const workMsMax = 5;

/** Throws `cancelled`, or the signal's own reason where that is a `LogstrataError` (a time limit). */
export function throwIfAborted(signal: AbortSignal | undefined): void {
  if (signal === undefined || !signal.aborted) return;
  const reason: unknown = signal.reason;
  if (isLogstrataError(reason)) throw reason;
  throw new LogstrataError('cancelled', 'the query was cancelled', { cause: reason });
}

/** The signal of a scan, which may be given as a function that makes it. */
export function signalOf(signal: AbortSignal | (() => AbortSignal) | undefined): AbortSignal | undefined {
  return typeof signal === 'function' ? signal() : signal;
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

  /**
   * Returns a promise once the scan has worked for more than `workMsMax`; else undefined. The event loop runs while the scan awaits it.
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
