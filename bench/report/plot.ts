import type { BenchResult, ResultLine } from '../result.js';
import { formatAdvantage } from './figures.js';
import { axisColour, gridColour, svgPage, text } from './svg.js';

const rowHeight = 22;
/** Upper bound of the mean width of a title's characters in pixels, whatever the font. */
const characterWidth = 7;
const margin = 16;
const plotWidth = 520;
const labelWidth = 190;
const top = 64;
const bottom = 34;
const colours = { ahead: '#2f7d4f', behind: '#b5483a' };

interface Scale {
  /** Pixels from the left to the end of the titles. */
  readonly left: number;
  readonly low: number;
  readonly high: number;
  /** Pixels from the left for an advantage. */
  x(advantage: number): number;
}

/** A logarithmic axis of whole decades that includes 1 and all bars. */
function scaleFor(advantages: readonly number[], left: number): Scale {
  const low = Math.min(-1, Math.floor(Math.log10(Math.min(1, ...advantages))));
  const high = Math.max(1, Math.ceil(Math.log10(Math.max(1, ...advantages))));
  const x = (advantage: number): number => left + ((Math.log10(advantage) - low) / (high - low)) * plotWidth;
  return { left, low, high, x };
}

function grid(scale: Scale, height: number): string[] {
  const parts: string[] = [];
  for (let power = scale.low; power <= scale.high; power++) {
    const x = scale.x(10 ** power).toFixed(1);
    const isOne = power === 0;
    const stroke = isOne ? axisColour : gridColour;
    parts.push(
      `<line x1="${x}" y1="${top - 6}" x2="${x}" y2="${height - bottom}" stroke="${stroke}" stroke-width="${isOne ? 1.5 : 1}"/>`,
      text(scale.x(10 ** power), height - bottom + 16, `${10 ** power}×`, 'text-anchor="middle"'),
    );
  }
  return parts;
}

function bar(line: ResultLine, row: number, scale: Scale): string[] {
  const y = top + row * rowHeight;
  const title = text(scale.left - 10, y + 14, line.title, 'text-anchor="end"');
  if (line.best === null) return [title, text(scale.x(1) + 6, y + 14, 'no peer', `fill="${axisColour}"`)];
  const { advantage, side } = line.best;
  const from = scale.x(Math.min(1, advantage));
  const to = scale.x(Math.max(1, advantage));
  const fill = advantage >= 1 ? colours.ahead : colours.behind;
  return [
    title,
    `<rect x="${from.toFixed(1)}" y="${y + 3}" width="${Math.max(1, to - from).toFixed(1)}" height="${rowHeight - 7}" fill="${fill}"/>`,
    // Always to the right of the bar and of the axis, so that it never overlaps a title.
    text(Math.max(to, scale.x(1)) + 6, y + 14, `${formatAdvantage(advantage)} ${side}`),
  ];
}

/** The result as an SVG with a bar for each line: to the right of 1 where we are better than the best peer, to the left where we are worse. */
export function plotResult(result: BenchResult): string {
  const advantages = result.lines.flatMap(({ best }) => (best === null ? [] : [best.advantage]));
  const longestTitle = Math.max(0, ...result.lines.map(({ title }) => title.length));
  const scale = scaleFor(advantages, margin + longestTitle * characterWidth);
  const width = scale.left + plotWidth + labelWidth;
  const height = top + result.lines.length * rowHeight + bottom;
  const sets = result.sets
    .map(({ name, rows }) => `${rows.toLocaleString('en-US')} ${name} records`)
    .join(', ');
  const { cpu, cores } = result.machine;
  return svgPage(
    {
      width,
      height,
      title: 'How many times better than the best peer (logarithmic; right of 1× is ahead)',
      about: `${sets}; ${cpu}, ${cores} cores; ${result.startedAt.slice(0, 10)}`,
    },
    [...grid(scale, height), ...result.lines.flatMap((line, row) => bar(line, row, scale))],
  );
}
