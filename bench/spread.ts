/** Statistics of several measurements of the same thing. */
export interface Spread {
  readonly median: number;
  readonly min: number;
  readonly max: number;
  /** The quartiles: half of the measurements are between `lower` and `upper`. */
  readonly lower: number;
  readonly upper: number;
  readonly count: number;
}

/** The quantile of sorted values, linearly interpolated. */
export function quantile(sorted: readonly number[], fraction: number): number {
  const place = (sorted.length - 1) * fraction;
  const below = sorted[Math.floor(place)]!;
  const above = sorted[Math.ceil(place)]!;
  return below + (above - below) * (place - Math.floor(place));
}

/** The statistics of measurements. Throws a RangeError where there are none. */
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
