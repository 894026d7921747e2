import type { WakeUp } from '../collect/logs/wake-up.js';
import { ArchiveRefusal } from './table-logs.js';

/** Interval at which the folders are searched for files that are new, moved, changed or gone. */
export const lookMs = 10_000;

/** Searching takes at most this fraction of the time, so that an archive with very many files is searched less often. */
const lookFraction = 0.1;

/** Delay before the next attempt after a failure of the storage, or with a file that could not be taken. */
export const retryMs = 60_000;

/** Time from the beginning of one search to the next, where the search took `tookMs`. */
export function untilNextLook(tookMs: number): number {
  return Math.max(lookMs, tookMs / lookFraction);
}

/** Is told whether searching works. */
export interface LookTally {
  resume(): void;
  pause(error: unknown): void;
}

/**
 * Searches repeatedly until the signal aborts (the caller then also calls the wake-up, to end a sleep). Pauses after a
 * failure.
 *
 * @param look does one round; returns the milliseconds to wait before the next one
 * @param onRefused receives why the archive can't be used at all: `ArchiveRefusal`
 */
export async function keepLooking(
  signal: AbortSignal,
  wakeUp: WakeUp,
  tally: LookTally,
  look: () => Promise<number>,
  onRefused?: (reason: string) => void,
): Promise<void> {
  while (!signal.aborted) {
    let waitMs = retryMs;
    try {
      waitMs = await look();
      tally.resume();
    } catch (error) {
      if (signal.aborted) return;
      tally.pause(error);
      if (error instanceof ArchiveRefusal) onRefused?.(error.message);
    }
    if (waitMs > 0 && !signal.aborted) await wakeUp.sleep(waitMs);
  }
}
