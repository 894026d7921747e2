import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, relative } from 'node:path';
import { formatBytes, formatCount } from '../../server/cli/terminal.js';
import { UsageFailure } from '../options.js';
import { plotSoak } from '../report/soak-plot.js';
import { readSoakOptions, soakUsage } from './options.js';
import { PagingFault } from './paging-client.js';
import type { SoakResult } from './result.js';
import { runSoak } from './soak.js';

function tell(line: string): void {
  process.stderr.write(`soak: ${line}\n`);
}

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

/** The command. Returns exit code 1 for a record that was lost, repeated or not counted, 2 for wrong usage. */
async function main(): Promise<number> {
  try {
    const options = readSoakOptions(process.argv.slice(2));
    if (options === undefined) {
      process.stdout.write(soakUsage);
      return 0;
    }
    const end = new AbortController();
    process.on('SIGINT', () => {
      tell('ending; the lines that are written are still counted');
      end.abort();
    });
    const result = await runSoak(options, tell, end.signal);
    mkdirSync(dirname(options.outPath), { recursive: true });
    writeFileSync(`${options.outPath}.json`, `${JSON.stringify(result)}\n`);
    writeFileSync(`${options.outPath}.svg`, plotSoak(result));
    const written = `written  ${relative(process.cwd(), options.outPath)}.json and .svg`;
    process.stdout.write(`${[...summaryOf(result), written].join('\n')}\n`);
    return 0;
  } catch (error) {
    if (error instanceof UsageFailure) {
      tell(`${error.message}\n\n${soakUsage}`);
      return 2;
    }
    tell(
      error instanceof PagingFault ? error.message : error instanceof Error ? error.stack! : String(error),
    );
    return 1;
  }
}

process.exitCode = await main();
