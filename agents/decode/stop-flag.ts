import { LogstrataError } from '../../engine/index.js';

/** Tells threads to stop decoding: a word in shared memory, because a message would be received only after their current job. */
export type StopFlag = Int32Array;

/** Creates a flag that is not set. */
export function newStopFlag(): StopFlag {
  return new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT));
}

/** A flag that is set when a signal aborts, until `release`. */
export interface SignalFlag {
  readonly stop: StopFlag;
  readonly release: () => void;
}

/** Creates a flag that is set when the signal aborts. */
export function stopFlagOf(signal: AbortSignal | undefined): SignalFlag {
  const stop = newStopFlag();
  const set = (): void => setStopFlag(stop);
  if (signal?.aborted === true) set();
  signal?.addEventListener('abort', set, { once: true });
  return { stop, release: () => signal?.removeEventListener('abort', set) };
}

/** Sets a flag. */
export function setStopFlag(stop: StopFlag): void {
  Atomics.store(stop, 0, 1);
}

/** Throws `cancelled` if the flag is set. */
export function requireGoing(stop: StopFlag | undefined): void {
  if (stop !== undefined && Atomics.load(stop, 0) !== 0)
    throw new LogstrataError('cancelled', 'the lines were not decoded: the work was stopped');
}
