/** What several measurements of one thing came to. */
export interface Spread {
  readonly median: number;
  readonly min: number;
  readonly max: number;
  /** The quartiles: half of the measurements lie between them. */
  readonly lower: number;
  readonly upper: number;
  readonly count: number;
}

/** The value below which the share `fraction` of the sorted values lies, between two of them where need be. */
export function quantile(sorted: readonly number[], fraction: number): number {
  const place = (sorted.length - 1) * fraction;
  const below = sorted[Math.floor(place)]!;
  const above = sorted[Math.ceil(place)]!;
  return below + (above - below) * (place - Math.floor(place));
}

/** Sums up measurements, of which there is at least one. */
export function spreadOf(values: readonly number[]): Spread {
  if (values.length === 0) throw new RangeError('there is nothing to sum up');
  const sorted = [...values].sort((a, b) => a - b);
  return {
    median: quantile(sorted, 0.5),
    min: sorted[0]!,
    max: sorted.at(-1)!,
    lower: quantile(sorted, 0.25),
    upper: quantile(sorted, 0.75),
    count: sorted.length,
  };
}
