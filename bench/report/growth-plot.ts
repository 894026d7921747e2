import { formatCount } from '../../server/cli/terminal.js';
import type { GrowthResult } from '../growth/growth.js';
import { axisColour, gridColour, svgPage, text } from './svg.js';
import { formatFigure } from './figures.js';

const colours = ['#2f5f9d', '#7a4f9d', '#2f7d4f', '#8a9a2a', '#b5483a', '#c98a1b'];
const left = 80;
const top = 70;
const plotWidth = 560;
const plotHeight = 420;
const keyWidth = 420;
const keyHeight = 20;

/** A logarithmic axis from one position to another, in pixels. */
function axis(low: number, high: number, from: number, to: number): (value: number) => number {
  const span = Math.log(high / low) || 1;
  return (value) => from + (Math.log(value / low) / span) * (to - from);
}

function decades(values: readonly number[]): [low: number, high: number] {
  const low = 10 ** Math.floor(Math.log10(Math.min(...values)));
  return [low, Math.max(low * 10, 10 ** Math.ceil(Math.log10(Math.max(...values))))];
}

/** Plots times over records, both logarithmic: for each question a line for warm answers and a dashed one for the first, each with its slope. */
export function plotGrowth({ steps, slopes, machine, startedAt }: GrowthResult): string {
  const records = steps.map((step) => step.records);
  const [low, high] = decades(
    steps.flatMap(({ asked }) => asked.flatMap(({ firstMs, warmMs }) => [firstMs.median, warmMs.median])),
  );
  const x = axis(records[0]!, records.at(-1)!, left, left + plotWidth);
  const y = axis(low, high, top + plotHeight, top);
  const parts: string[] = [];
  const line = (x1: number, y1: number, x2: number, y2: number, more: string): void => {
    parts.push(
      `<line x1="${x1.toFixed(1)}" y1="${y1.toFixed(1)}" x2="${x2.toFixed(1)}" y2="${y2.toFixed(1)}" ${more}/>`,
    );
  };
  for (let ms = low; ms <= high * 1.001; ms *= 10) {
    line(left, y(ms), left + plotWidth, y(ms), `stroke="${gridColour}"`);
    parts.push(text(left - 8, y(ms) + 4, `${formatFigure(ms, 'ms')} ms`, 'text-anchor="end"'));
  }
  for (const count of records) {
    line(x(count), top, x(count), top + plotHeight, `stroke="${gridColour}"`);
    parts.push(text(x(count), top + plotHeight + 18, formatCount(count), 'text-anchor="middle"'));
  }
  steps[0]!.asked.forEach(({ title }, i) => {
    const stroke = `stroke="${colours[i % colours.length]}"`;
    const keyY = top + 10 + 2 * i * keyHeight;
    for (const [kind, dash, at] of [
      ['warm', '', keyY],
      ['first', ' stroke-dasharray="5 4"', keyY + keyHeight],
    ] as const) {
      const points = steps.map(({ asked, records: count }) => {
        const { firstMs, warmMs } = asked[i]!;
        return `${x(count).toFixed(1)},${y((kind === 'warm' ? warmMs : firstMs).median).toFixed(1)}`;
      });
      parts.push(`<polyline points="${points.join(' ')}" fill="none" ${stroke} stroke-width="1.6"${dash}/>`);
      line(
        left + plotWidth + 24,
        at - 4,
        left + plotWidth + 54,
        at - 4,
        `${stroke} stroke-width="1.6"${dash}`,
      );
      const slope = slopes === null ? '' : `, slope ${slopes[i]![kind].toFixed(2)}`;
      const said = kind === 'warm' ? 'warm' : 'first time';
      parts.push(text(left + plotWidth + 62, at, `${title}: ${said}${slope}`));
    }
  });
  line(left, top + plotHeight, left + plotWidth, top + plotHeight, `stroke="${axisColour}"`);
  return svgPage(
    {
      width: left + plotWidth + keyWidth,
      height: top + plotHeight + 40,
      title: 'Time of an answer over the records in the archive (both logarithmic)',
      about: `${machine.cpu}, ${machine.cores} cores, load before ${machine.loadBefore.toFixed(1)}; ${startedAt.slice(0, 10)}`,
    },
    parts,
  );
}
