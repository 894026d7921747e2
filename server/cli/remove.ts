import { resolve } from 'node:path';
import type { Command } from 'commander';
import { LogstrataError, type RemovalOutlook, type RemovalWish } from '../../engine/index.js';
import { noRecords, requireData, withArchive } from './opened-archive.js';
import {
  readSettings,
  type GlobalFlags,
  type Settings,
  timeRangeOf,
  type TimeRangeFlags,
} from './options.js';
import { stoppable } from './stoppable.js';
import { exitDone, exitFailed, UsageError } from './failure.js';
import {
  formatBytes,
  formatCount,
  formatCounted,
  formatTime,
  withProgress,
  askYesNo,
  canAsk,
  printJson,
  printLines,
  tell,
} from './terminal.js';

interface RemoveFlags extends GlobalFlags, TimeRangeFlags {
  readonly load?: string;
  readonly ahead?: boolean;
  readonly yes?: boolean;
  readonly json?: boolean;
}

const examples = `
Examples:
  $ logstrata stats nginx                         lists the loads, with their ids
  $ logstrata remove nginx --load 079bd70000000001
  $ logstrata remove nginx --since 2026-11-17 --until 2026-11-18
  $ logstrata remove nginx --yes                  all records, without asking

It shows what would be removed and asks first. The cursor of a removed record is
never given to another one. Files of a removed load can be loaded again. A
server on the same data may keep running.`;

/** The records that the flags select. Throws a `UsageError` for flags that can't be combined. */
function wishOf(flags: RemoveFlags, settings: Settings): RemovalWish {
  const { load, since, until, ahead } = flags;
  if (load !== undefined && (since !== undefined || until !== undefined))
    throw new UsageError(
      '--load cannot be combined with --since and --until: give a load or a range of times',
    );
  if (ahead === true && load !== undefined)
    throw new UsageError('--ahead cannot be combined with --load: give one of them');
  if (ahead === true) return { kind: 'ahead', ...timeRangeOf(flags, settings) };
  if (load !== undefined) return { kind: 'load', id: load };
  if (since === undefined && until === undefined) return { kind: 'all' };
  return { kind: 'times', ...timeRangeOf(flags, settings) };
}

function describe(agent: string, outlook: RemovalOutlook): string[] {
  const { records, rejectedLines, bytes, fromMs, untilMs, rewritten, paths, isLowered } = outlook;
  return [
    `${formatCounted(records, 'record')} of agent ${agent}, about ${formatBytes(bytes)} on the disk`,
    ...(fromMs === null || untilMs === null
      ? []
      : [`  of the hours from ${formatTime(fromMs)} to ${formatTime(untilMs)} UTC`]),
    ...(isLowered
      ? [
          `  the clock says ${formatTime(Date.now())} UTC; new records will be placed by it, before any that stay in later hours`,
        ]
      : []),
    ...(rejectedLines === 0 ? [] : [`  and ${formatCounted(rejectedLines, 'rejected line')}`]),
    ...(rewritten === 0
      ? []
      : [`  ${formatCounted(rewritten, 'segment')} that hold other records too will be rewritten`]),
    ...paths.slice(0, 5).map((path) => `  loaded from ${path}`),
    ...(paths.length > 5 ? [`  and from ${formatCount(paths.length - 5)} more`] : []),
  ];
}

async function remove(agent: string, flags: RemoveFlags, signal: AbortSignal): Promise<number> {
  const settings = await readSettings(flags);
  const wish = wishOf(flags, settings);
  requireData(resolve(settings.dataFolder));
  return withArchive(settings, 'write', 'remove', async (archive) => {
    const known = await archive.agents();
    if (!known.includes(agent)) throw noRecords(agent, known, archive.location);
    const store = await archive.agent(agent);
    const outlook = await store.removalOutlook(wish);
    if (outlook.records + outlook.rejectedLines === 0 && !outlook.isLowered) {
      if (flags.json === true) await printJson({ ...outlook, removed: false });
      else await printLines([`nothing to remove: no record of agent ${agent} matches`]);
      return exitDone;
    }
    if (flags.json !== true) describe(agent, outlook).forEach(tell);
    if (flags.yes !== true) {
      if (!canAsk()) {
        const message =
          'no terminal to ask for confirmation: --yes removes without asking. Nothing was removed';
        throw new LogstrataError('invalid', message);
      }
      if (!(await askYesNo('Remove them for good?'))) {
        tell('nothing was removed');
        return exitFailed;
      }
    }
    const removed = await withProgress(`removing records of ${agent}`, (progress) =>
      store.remove(wish, { signal, onProgress: (fraction) => progress.update(fraction, '') }),
    );
    if (flags.json === true) await printJson({ ...removed, removed: true });
    else await printLines([`removed ${formatCounted(removed.records, 'record')} of agent ${agent}`]);
    return exitDone;
  });
}

/** Adds `logstrata remove`: removes records. */
export function addRemoveCommand(program: Command): void {
  program
    .command('remove')
    .summary('remove records: a load, a range of times, or all')
    .description(
      'Removes records of an agent: those of one load, of a range of times, those ahead of the clock, or all.',
    )
    .argument('<agent>', 'name of the agent, even if it has no agent file any more')
    .option('--load <id>', 'the records of this load; "stats" lists the loads')
    .option('--since <time>', 'records from this time on, as in a filter')
    .option('--until <time>', 'records before this time')
    .option('--ahead', 'records in hours ahead of the clock; new ones are placed by the clock again')
    .option('--yes', 'remove without asking')
    .option('--json', 'print the result as JSON')
    .addHelpText('after', examples)
    .action(stoppable((flags: RemoveFlags, { signal }, agent: string) => remove(agent, flags, signal)));
}
