import { basename, join, resolve } from 'node:path';
import { packageRoot } from '../../server/cli/options.js';
import { plotGrowth } from '../report/growth-plot.js';
import { numberOf, textOf, UsageFailure, type Benchmark, type Values } from '../runner.js';
import { billionReport, runBillion } from './billion.js';
import { runGrowth, type GrowthOptions } from './growth.js';
import { growthReport } from './table.js';

const usage = `Usage: npm run bench -- growth [options]

How the time of a question grows with the archive: one archive is filled day after day, and asked at several sizes, the first
time after opening (files in the page cache) and again. Writes a table, a plot and a record. Half an hour and 9 GB of disk.

  --rows A,B,C   records at which it is asked, ascending; 300k and 10M are understood (default: 10M,20M,40M,80M)
  --days N       days that the largest size is spread over (default: 365)
  --billion      instead: needles in 1,006,698,496 records in 240 segments, whose filters are made up; 6 GB of disk
  --full         the messages have "index: full", larger filters for texts
  --repeat N     fresh processes for each question (default: 7)
  --data FOLDER  where the archive is made and removed again (default: bench/data)
  --out PATH     result, without ending (default: bench/results/growth or billion; with --full growth-full, …)
  --tiny         a few thousand records, or three segments: whether it works, not how fast

Ctrl-C ends it, removes the archive and writes nothing.
`;

const factors = { k: 1000, M: 1_000_000 } as const;

function sizesOf(value: string): number[] {
  const sizes = value.split(',').map((size) => {
    const [, digits, factor] = /^([1-9]\d{0,10})([kM]?)$/.exec(size) ?? [];
    if (digits === undefined)
      throw new UsageFailure(`--rows must be numbers of records, such as 300k,10M, not "${value}"`);
    return Number(digits) * (factor === 'k' || factor === 'M' ? factors[factor] : 1);
  });
  if (sizes.some((size, i) => i > 0 && size <= sizes[i - 1]!))
    throw new UsageFailure(`--rows must ascend, which "${value}" does not`);
  return sizes;
}

function optionsOf(values: Values): GrowthOptions {
  const { billion, tiny, full } = values;
  if (billion === true && (values['rows'] !== undefined || values['days'] !== undefined))
    throw new UsageFailure('--billion has its own records: it does not go together with --rows and --days');
  return {
    isFull: full === true,
    segments: tiny === true ? 3 : 240,
    sizes: sizesOf(textOf(values, 'rows') ?? (tiny === true ? '5k,10k' : '10M,20M,40M,80M')),
    days: numberOf(values, 'days', tiny === true ? 4 : 365, { max: 9999 }),
    repeat: numberOf(values, 'repeat', tiny === true ? 1 : 7, { max: 9999 }),
    dataFolder: resolve(textOf(values, 'data') ?? join(packageRoot(), 'bench/data')),
  };
}

export const benchmark: Benchmark = {
  usage,
  texts: ['rows', 'days', 'repeat', 'data'],
  flags: ['billion', 'full', 'tiny'],
  isStoppable: true,
  run: async (values, { signal, say }) => {
    const options = optionsOf(values);
    const suffix = options.isFull ? '-full' : '';
    const isSmall = values['tiny'] === true;
    if (values['billion'] === true) {
      const result = await runBillion(options, signal, say);
      const md = billionReport(result);
      return { name: `billion${suffix}`, isSmall, shown: md, files: { json: result, md, svg: undefined } };
    }
    const name = `growth${suffix}`;
    const result = await runGrowth(options, signal, say);
    const md = growthReport(result, `${basename(textOf(values, 'out') ?? name)}.svg`);
    return { name, isSmall, shown: md, files: { json: result, md, svg: plotGrowth(result) } };
  },
};
