import type { Gauge, Sample, SoakResult } from '../soak/result.js';
import { formatBytes, formatCount } from '../../server/cli/terminal.js';
import { axisColour, gridColour, svgPage, text } from './svg.js';

const left = 96;
const plotWidth = 800;
const plotHeight = 110;
const gap = 36;
const top = 78;

interface Panel {
  readonly gauge: Gauge;
  readonly title: string;
  readonly format: (value: number) => string;
}

const panels: readonly Panel[] = [
  { gauge: 'rssBytes', title: 'memory of the server (RSS)', format: formatBytes },
  { gauge: 'lagMs', title: 'lag from line to answer', format: (ms) => `${formatCount(ms)} ms` },
  { gauge: 'handles', title: 'open handles', format: formatCount },
  { gauge: 'diskBytes', title: 'the archive on the disk', format: formatBytes },
  { gauge: 'cpuCores', title: 'processor cores in use', format: (cores) => cores.toFixed(2) },
];

function drawPanel({ gauge, title, format }: Panel, samples: readonly Sample[], y: number): string[] {
  const largest = Math.max(...samples.map((sample) => sample[gauge]), 1e-9);
  const seconds = samples.at(-1)!.seconds;
  const points = samples.map((sample) => {
    const x = left + (sample.seconds / seconds) * plotWidth;
    return `${x.toFixed(1)},${(y + plotHeight * (1 - sample[gauge] / largest)).toFixed(1)}`;
  });
  const line = (at: number, colour: string): string =>
    `<line x1="${left}" y1="${at}" x2="${left + plotWidth}" y2="${at}" stroke="${colour}"/>`;
  return [
    text(left, y - 6, title, 'font-weight="600"'),
    line(y, gridColour),
    line(y + plotHeight, axisColour),
    text(left - 8, y + 10, format(largest), 'text-anchor="end"'),
    text(left - 8, y + plotHeight, '0', 'text-anchor="end"'),
    `<polyline points="${points.join(' ')}" fill="none" stroke="#2f5f9d" stroke-width="1.2"/>`,
  ];
}

/** A soak run as an SVG: the values that were sampled each second, over time. Each panel's scale is from 0 to its maximum. */
export function plotSoak({ samples, settings, lines, clients, machine, startedAt }: SoakResult): string {
  const bottom = top + panels.length * (plotHeight + gap);
  const minutes = samples.at(-1)!.seconds / 60;
  return svgPage(
    {
      width: left + plotWidth + 40,
      height: bottom + 20,
      title: `${minutes.toFixed(1)} minutes at ${formatCount(settings.rate)} lines/s, ${clients.count} clients paging`,
      about: `${formatCount(lines.written)} lines; ${machine.cpu}, ${machine.cores} cores, load before ${machine.loadBefore.toFixed(1)}; ${startedAt.slice(0, 10)}`,
    },
    [
      ...panels.flatMap((panel, i) => drawPanel(panel, samples, top + i * (plotHeight + gap))),
      text(left, bottom - 6, '0'),
      text(left + plotWidth, bottom - 6, `${minutes.toFixed(1)} min`, 'text-anchor="end"'),
    ],
  );
}
