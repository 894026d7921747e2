import type uPlot from 'uplot';
import type { StackedBars } from './stacked-bars.js';

/** The least and the greatest of the numbers that a line connects; undefined where there are none. */
export function lineRange({ numbers }: StackedBars): readonly [min: number, max: number] | undefined {
  const drawn = numbers.map(toNumber).filter((value) => value !== undefined);
  return drawn.length === 0 ? undefined : [Math.min(...drawn), Math.max(...drawn)];
}

function toNumber(value: number | string | null): number | undefined {
  const number = value === null ? NaN : Number(value);
  return Number.isFinite(number) ? number : undefined;
}

/** Draws the numbers as a line from the middle of one bar to the next, over the whole height. Steps without a number interrupt it. */
export function drawLine(
  plot: uPlot,
  bars: StackedBars,
  stepSeconds: number,
  colour: string,
  halo: string,
): void {
  const range = lineRange(bars);
  if (range === undefined) return;
  const [min, max] = range;
  const { ctx, bbox } = plot;
  const ratio = bbox.width / plot.over.clientWidth;
  const path = new Path2D();
  let isInterrupted = true;
  for (const [i, seconds] of bars.seconds.entries()) {
    const value = toNumber(bars.numbers[i]!);
    if (value === undefined) {
      isInterrupted = true;
      continue;
    }
    const x = plot.valToPos(seconds + stepSeconds / 2, 'x', true);
    const part = max === min ? 0.5 : (value - min) / (max - min);
    const y = bbox.top + bbox.height * (1 - part);
    if (isInterrupted) path.moveTo(x - ratio, y);
    path.lineTo(x, y);
    // A single step is a short dash.
    if (isInterrupted) path.lineTo(x + ratio, y);
    isInterrupted = false;
  }
  ctx.save();
  ctx.lineJoin = 'round';
  ctx.lineCap = 'round';
  // A halo in the colour of the ground keeps the line visible over bars of any colour.
  for (const [style, width] of [
    [halo, 4],
    [colour, 1.75],
  ] as const) {
    ctx.strokeStyle = style;
    ctx.lineWidth = width * ratio;
    ctx.stroke(path);
  }
  ctx.restore();
}
