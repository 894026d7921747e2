import { resolve } from 'node:path';
import type { Command } from 'commander';
import type { FetchResult, ShipResult } from '../../engine/index.js';
import { exitDone } from './failure.js';
import { formatBytes, formatCounted } from './terminal.js';
import { reportEach, requireData, withArchive } from './opened-archive.js';
import { readSettings, type GlobalFlags, timeRangeOf, type TimeRangeFlags } from './options.js';
import { stoppable } from './stoppable.js';

interface FarFlags extends GlobalFlags {
  readonly json?: boolean;
}

interface FetchFlags extends FarFlags, TimeRangeFlags {}

const examples = `
Examples:
  $ logstrata far ship          records older than storage.far.after, of all agents
  $ logstrata far ship nginx    of one agent
  $ logstrata far fetch nginx --since 2026-11-17 --until 2026-11-18
                                bring a day back
  $ logstrata verify --far      check that the far tier has all records

Cursors and answers stay the same. A server on the same data may keep running; it ships by itself.`;

function describeShipped(agent: string, result: ShipResult): string[] {
  const { segments, rows, bytes, freed, dropped } = result;
  const rest = [
    ...(freed === 0 ? [] : [`${formatCounted(freed, 'file')} removed here`]),
    ...(dropped === 0 ? [] : [`${formatCounted(dropped, 'attempt')} dropped there`]),
  ];
  const shipped =
    segments === 0
      ? 'nothing to ship'
      : `${formatCounted(rows, 'record')} shipped in ${formatCounted(segments, 'unit')} (${formatBytes(bytes)})`;
  return [`${agent}: ${[shipped, ...rest].join(', ')}`];
}

async function ship(agent: string | undefined, flags: FarFlags, signal: AbortSignal): Promise<number> {
  const settings = await readSettings(flags);
  requireData(resolve(settings.dataFolder));
  return withArchive(settings, 'write', 'far', async (archive) => {
    await reportEach(archive, agent, flags.json, {
      doing: 'shipping',
      work: async (name, progress) => {
        const store = await archive.agent(name);
        return store.shipFar({ signal, onProgress: (fraction) => progress.update(fraction, '') });
      },
      describe: describeShipped,
    });
    return exitDone;
  });
}

function describeFetched(agent: string, { units, rows, stillHere }: FetchResult): string[] {
  if (units === 0) return [`${agent}: nothing to bring back`];
  const here = stillHere === 0 ? '' : `, ${formatCounted(stillHere, 'unit')} whose files were still here`;
  return [
    `${agent}: ${formatCounted(rows, 'record')} of ${formatCounted(units, 'unit')} brought back${here}`,
  ];
}

async function fetchBack(agent: string, flags: FetchFlags, signal: AbortSignal): Promise<number> {
  const settings = await readSettings(flags);
  const wish = timeRangeOf(flags, settings);
  requireData(resolve(settings.dataFolder));
  return withArchive(settings, 'write', 'far', async (archive) => {
    await reportEach(archive, agent, flags.json, {
      doing: 'fetching',
      work: async (name, progress) => {
        const store = await archive.agent(name);
        return store.fetchFar(wish, { signal, onProgress: (fraction) => progress.update(fraction, '') });
      },
      describe: describeFetched,
    });
    return exitDone;
  });
}

/** Adds `logstrata far`, which moves records to a ClickHouse cluster and back. */
export function addFarCommand(program: Command): void {
  const far = program
    .command('far')
    .summary('ship old records to a ClickHouse cluster, and bring them back')
    .description('Moves records to a far tier and back: storage.far in the configuration.')
    .addHelpText('after', examples);
  far
    .command('ship')
    .description(
      'Ships old records (storage.far.after), and removes local files that were shipped long enough ago.',
    )
    .argument('[agent]', 'name of an agent (default: all)')
    .option('--json', 'print the result as JSON')
    .action(stoppable((flags: FarFlags, { signal }, agent?: string) => ship(agent, flags, signal)));
  far
    .command('fetch')
    .description('Brings units back. They stay here until "far ship" is run again.')
    .argument('<agent>', 'name of an agent')
    .option('--since <time>', 'units with records from this time on, as in a filter (default: all)')
    .option('--until <time>', 'units with records before this time')
    .option('--json', 'print the result as JSON')
    .action(stoppable((flags: FetchFlags, { signal }, agent: string) => fetchBack(agent, flags, signal)));
}
