import { resolve } from 'node:path';
import { formatBytes, formatCount } from '../../server/cli/terminal.js';
import { figureBenchmark, numberOf, textOf, type MeasuredLine } from '../runner.js';
import { appLog, makeStore, serveStore } from './stored-log.js';
import { measureFirstRows, measureScrolling } from './page-measures.js';

const usage = `Usage: npm run bench -- viewer [options]

How the viewer of the console does in Chromium, on an application's records: how long the first rows take after the page is asked for, and how
evenly a million records are scrolled back, at which memory of the page. Chromium is sought where systems have it; LOGSTRATA_CHROMIUM names another.

  --tiny            a few thousand records: whether it works, not how fast
  --records N       records of the archive (default: 10000000)
  --scroll N        records that are scrolled back (default: 1000000)
  --store FOLDER    keeps the archive there, and takes it from there the next time
  --out PATH        result, without ending (default: bench/results/viewer)
`;

/** Number of pages that are opened, each in a context of its own. */
const pagesOpened = 9;
/** Forty rows per frame: at sixty frames per second, faster than anybody scrolls. */
const pixelsPerFrame = 800;

const ms = (value: number): string => `${Math.round(value)} ms`;

async function measure(folder: string, records: number, scrolled: number): Promise<MeasuredLine[]> {
  await makeStore(folder, appLog(records));
  const server = await serveStore(folder);
  try {
    const address = `${server.console}/#/app`;
    const [first = NaN, ...later] = await measureFirstRows(address, pagesOpened);
    const sorted = later.sort((a, b) => a - b);
    const median = sorted[sorted.length >> 1] ?? NaN;
    const slowest = sorted.at(-1) ?? NaN;
    const { frames, stillMaxMs, heapBytes, nodes, seconds, ...rest } = await measureScrolling(
      address,
      scrolled,
      pixelsPerFrame,
    );
    return [
      {
        what: 'first rows after the page is asked for, nothing of it kept by the browser',
        target: '≤ 300 ms',
        figure: `median ${ms(median)}, slowest ${ms(slowest)} of ${sorted.length}; of a server just started ${ms(first)}`,
        values: { median, slowest, first },
      },
      {
        what: `from one frame to the next, over ${formatCount(rest.records)} records back in ${Math.round(seconds)} s`,
        target: '≤ 100 ms',
        figure: `median ${ms(frames.medianMs)}, p99 ${ms(frames.p99Ms)}, longest ${ms(frames.maxMs)}; ${frames.over100Ms} of ${formatCount(frames.count)} over 100 ms`,
        values: { records: rest.records, seconds, ...frames },
      },
      {
        what: 'longest wait for further rows',
        target: '≤ 100 ms',
        figure: ms(stillMaxMs),
        values: { stillMaxMs },
      },
      {
        what: 'objects of the page: before, at most, in the end',
        target: 'bounded',
        figure: `${formatBytes(heapBytes.before)}, ${formatBytes(heapBytes.max)}, ${formatBytes(heapBytes.after)}, and ${formatCount(nodes)} elements`,
        values: { ...heapBytes, nodes },
      },
    ];
  } finally {
    await server.stop();
  }
}

export const benchmark = figureBenchmark({
  name: 'viewer',
  usage,
  texts: ['records', 'scroll', 'store'],
  measure: async (values, isSmall, { folder }) => {
    const records = numberOf(values, 'records', isSmall ? 5000 : 10_000_000, { max: 1e9 });
    const scrolled = numberOf(values, 'scroll', isSmall ? 3000 : 1_000_000, { max: records });
    const lines = await measure(resolve(textOf(values, 'store') ?? folder), records, scrolled);
    const about = `${formatCount(records)} records of an application, Chromium on the same machine, without a graphics processor`;
    return { about, settings: { records, scrolled, pixelsPerFrame }, lines };
  },
});
