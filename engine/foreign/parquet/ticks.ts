/** Length of a tick, as in `ForeignValues`. */
export interface TickLength {
  readonly perMs: number;
  readonly ms: number;
}

/** Converts ticks to milliseconds, rounded down. */
export function ticksToMs(ticks: bigint, { perMs, ms }: TickLength): bigint {
  const per = BigInt(perMs);
  const whole = ticks / per;
  const isBetween = whole * per !== ticks;
  return (ticks < 0n && isBetween ? whole - 1n : whole) * BigInt(ms);
}
