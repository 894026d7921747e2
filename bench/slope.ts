/** The mean of values; 0 where there are none. */
export function meanOf(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / Math.max(1, values.length);
}

/** The slope of the regression line (least squares), in y per x. */
export function slopeOf(xs: readonly number[], ys: readonly number[]): number {
  const xMean = meanOf(xs);
  const yMean = meanOf(ys);
  const products = xs.reduce((sum, x, i) => sum + (x - xMean) * (ys[i]! - yMean), 0);
  const squares = xs.reduce((sum, x) => sum + (x - xMean) ** 2, 0);
  return squares === 0 ? 0 : products / squares;
}
