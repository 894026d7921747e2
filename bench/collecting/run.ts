import { formatBytes, formatCount } from '../../server/cli/terminal.js';
import { formatFigure } from '../report/figures.js';
import { figureBenchmark, type MeasuredLine } from '../runner.js';
import { formats, measureBacklog, measureFollowing, measureQueries, type Sizes } from './measures.js';

const usage = `Usage: npm run bench -- collecting [options]

What collecting logs costs: lines to the committed hot batch in a second of processor time, beside what only splits them and a script
that parses them; the lag of one busy log and of a thousand; queries while logs are collected. Prints a table, and writes it with a
record of the run.

  --tiny        a few lines: whether it works, not how fast
  --out PATH    result, without ending (default: bench/results/collecting)
`;

const full: Sizes = {
  lines: 60_000,
  gains: 12,
  warmUp: 4,
  repeat: 3,
  files: 1000,
  seconds: 20,
  busyLines: 200_000,
};
const quick: Sizes = { lines: 2000, gains: 2, warmUp: 1, repeat: 1, files: 3, seconds: 1, busyLines: 2000 };

/** Lines per second that are appended to a single log, and to each of many. */
const rates = { one: 100_000, each: 100 };

const ms = (value: number): string => `${formatFigure(value, 'ms')} ms`;

async function backlogLines(folder: string, sizes: Sizes): Promise<MeasuredLine[]> {
  const lines: MeasuredLine[] = [];
  for (const format of formats) {
    const { collected, split, script, lineBytes } = await measureBacklog(folder, format, sizes);
    const about = `${format.name}, ${Math.round(lineBytes)} bytes a line, lines in a processor second`;
    const target = format.name === 'nginx' ? '≥ 300,000' : '≥ 400,000';
    const { median, lower, upper, count } = collected;
    lines.push(
      {
        what: `${about}: to the committed hot batch`,
        target,
        figure: `${formatCount(median)} (${formatCount(lower)} – ${formatCount(upper)} of ${count})`,
        values: { median, lower, upper, count, lineBytes },
      },
      {
        what: `${about}: a script that parses and syncs`,
        target: '',
        figure: formatCount(script),
        values: { script },
      },
      {
        what: `${about}: finding the line ends alone`,
        target: '',
        figure: formatCount(split),
        values: { split },
      },
    );
  }
  return lines;
}

async function followingLines(folder: string, sizes: Sizes): Promise<MeasuredLine[]> {
  const oneRate = sizes === full ? rates.one : rates.each;
  const runs = [
    { name: 'one', files: 1, rate: oneRate, lag: '≤ 1 s', cores: '', memory: '' },
    { name: 'many', files: sizes.files, rate: rates.each, lag: '', cores: '< 1', memory: '< 300 MB' },
  ];
  const lines: MeasuredLine[] = [];
  for (const { name, files, rate, lag, cores, memory } of runs) {
    const figures = await measureFollowing(folder, name, files, rate, sizes);
    const { written, lagMs, lagP99Ms } = figures;
    const logs = files === 1 ? '1 log' : `${formatCount(files)} logs`;
    const about = `${logs}, ${formatCount(written.lines / written.seconds)} lines a second in all`;
    const { median, max } = lagMs;
    lines.push(
      {
        what: `${about}: from the write to durable and visible`,
        target: lag,
        figure: `${ms(median)}, p99 ${ms(lagP99Ms)}`,
        values: { median, p99: lagP99Ms, max, writes: lagMs.count },
      },
      {
        what: `${about}: processor, sealing included`,
        target: cores,
        figure: `${figures.cores.toFixed(2)} cores`,
        values: { cores: figures.cores },
      },
      {
        what: `${about}: largest memory`,
        target: memory,
        figure: formatBytes(figures.memoryBytes),
        values: { memoryBytes: figures.memoryBytes },
      },
    );
  }
  return lines;
}

async function queryLines(folder: string, sizes: Sizes): Promise<MeasuredLine[]> {
  const { alone, beside, bytesPerSecond } = await measureQueries(folder, sizes);
  const values = (figures: typeof alone) => ({ median: figures.medianMs, p99: figures.p99Ms });
  return [
    {
      what: 'newest 100 over HTTP, nothing collected',
      target: '',
      figure: `${ms(alone.medianMs)}, p99 ${ms(alone.p99Ms)}`,
      values: values(alone),
    },
    {
      what: `newest 100 over HTTP, another log gains ${formatBytes(bytesPerSecond)}/s`,
      target: 'p99 ≤ 2×',
      figure: `${ms(beside.medianMs)}, p99 ${ms(beside.p99Ms)}, ${(beside.p99Ms / alone.p99Ms).toFixed(1)}×`,
      values: { ...values(beside), bytesPerSecond },
    },
  ];
}

export const benchmark = figureBenchmark({
  name: 'collecting',
  usage,
  texts: [],
  measure: async (_values, isSmall, { folder }) => {
    const sizes = isSmall ? quick : full;
    const lines = [
      ...(await backlogLines(folder, sizes)),
      ...(await followingLines(folder, sizes)),
      ...(await queryLines(folder, sizes)),
    ];
    return { about: 'logs that are collected', settings: sizes, lines };
  },
});
