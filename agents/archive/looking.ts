import type { WakeUp } from '../collect/logs/wake-up.js';

/** How often the folders are looked through for files that have come, moved, changed or gone. */
export const lookMs = 10_000;

/** Looking takes at most this part of the time, so that very many files are looked for less often. */
const lookFraction = 0.1;

/** After a failure of the storage, and for a file that could not be taken, it is tried again after this time. */
export const retryMs = 60_000;

/** Until the next look, after one that took `tookMs`, counted from its beginning. */
export function untilNextLook(tookMs: number): number {
  return Math.max(lookMs, tookMs / lookFraction);
}

/** Who is told whether looking goes on. */
export interface LookTally {
  resume(): void;
  pause(error: unknown): void;
}

/**
 * Looks again and again until it is told to stop: the signal, and a call of the wake-up so that it is looked at. After a failure it pauses.
 *
 * @param look gives how long to wait before the next look (ms)
 */
export async function keepLooking(
  signal: AbortSignal,
  wakeUp: WakeUp,
  tally: LookTally,
  look: () => Promise<number>,
): Promise<void> {
  while (!signal.aborted) {
    let waitMs = retryMs;
    try {
      waitMs = await look();
      tally.resume();
    } catch (error) {
      if (signal.aborted) return;
      tally.pause(error);
    }
    if (waitMs > 0 && !signal.aborted) await wakeUp.sleep(waitMs);
  }
}
