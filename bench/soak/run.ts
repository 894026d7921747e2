import { formatBytes, formatCount } from '../../server/cli/terminal.js';
import { plotSoak } from '../report/soak-plot.js';
import { numberOf, type Benchmark, type Values } from '../runner.js';
import type { SoakOptions, SoakResult } from './result.js';
import { runSoak } from './soak.js';

const usage = `Usage: npm run bench -- soak [options]

Runs "logstrata serve" for minutes or hours: a log is written and rotated, clients page through it, retention and compaction run.
Counts every record and looks each second at memory, lag, file handles and disk. Writes a plot and a record of the run.
Ctrl-C ends it early, and still counts and writes.

  --minutes N   how long (default: 60)
  --rate N      lines a second (default: 20000)
  --clients N   clients that page all the time (default: 10)
  --cache MB    memory for decoded columns (default: 256)
  --out PATH    result, without ending (default: bench/results/soak)

Exit code 1 when a record was lost, repeated or not counted.
`;

function summaryOf({ lines, rotations, segments, clients, steady }: SoakResult): string[] {
  return [
    `lines    ${formatCount(lines.written)} written (${formatCount(lines.perSecond)}/s), ${formatCount(lines.stored)} stored, ` +
      `${formatCount(lines.removed)} removed by retention, ${formatCount(lines.rejected)} rejected; 0 lost, 0 repeated`,
    `logs     ${rotations} rotations; ${segments} segments at the end`,
    `clients  ${clients.count}: ${formatCount(clients.pages)} pages, ${formatCount(clients.records)} records, none repeated or left out`,
    `memory   ${formatBytes(steady.rssMeanBytes)}, ${(steady.rssSlopePerHour * 100).toFixed(2)} % an hour after the warm-up`,
    `handles  ${steady.handlesFirst.toFixed(1)} after the warm-up, ${steady.handlesLast.toFixed(1)} at the end`,
    `lag      median ${formatCount(steady.lagMedianMs)} ms, p99 ${formatCount(steady.lagP99Ms)} ms, at most ${formatCount(steady.lagMaxMs)} ms`,
    `cores    ${steady.cpuMeanCores.toFixed(2)}`,
  ];
}

/** The options of the soak test. Throws a `UsageFailure`. */
export function soakOptionsOf(values: Values): SoakOptions {
  return {
    minutes: numberOf(values, 'minutes', 60, { min: 0.01, max: 10_000, isWhole: false }),
    rate: numberOf(values, 'rate', 20_000, { max: 1e6 }),
    clients: numberOf(values, 'clients', 10, { max: 1000 }),
    cacheMib: numberOf(values, 'cache', 256, { max: 3584 }),
  };
}

export const benchmark: Benchmark = {
  usage,
  texts: ['minutes', 'rate', 'clients', 'cache'],
  flags: [],
  isStoppable: true,
  run: async (values, { signal, say }) => {
    signal.addEventListener('abort', () => say('ending; the lines that are written are still counted'));
    const result = await runSoak(soakOptionsOf(values), say, signal);
    const shown = summaryOf(result).join('\n');
    return {
      name: 'soak',
      isSmall: false,
      shown,
      files: { json: result, md: undefined, svg: plotSoak(result) },
    };
  },
};
