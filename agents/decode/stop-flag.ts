import { LogstrataError } from '../../engine/index.js';

/** Tells threads that nobody wants what they decode any more: a word that they see. A message would wait until they are done. */
export type StopFlag = Int32Array;

/** A flag that is not set. */
export function newStopFlag(): StopFlag {
  return new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT));
}

/** A flag that a signal sets, until it is let go of. */
export interface SignalFlag {
  readonly stop: StopFlag;
  readonly release: () => void;
}

/** A flag that the signal sets. */
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

/** Throws `cancelled` where the flag is set. */
export function requireGoing(stop: StopFlag | undefined): void {
  if (stop !== undefined && Atomics.load(stop, 0) !== 0)
    throw new LogstrataError('cancelled', 'the lines were not decoded: the work was stopped');
}
