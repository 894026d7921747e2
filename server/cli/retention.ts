import { resolve } from 'node:path';
import type { Command } from 'commander';
import {
  chooseAgent,
  describeRetention,
  retentionEntry,
  retentionOf,
  readSettings,
  type GlobalFlags,
} from './options.js';
import { exitDone } from './failure.js';
import { noRecords, requireData, withArchive } from './opened-archive.js';
import { printJson, printLines } from './terminal.js';

interface RetentionFlags extends GlobalFlags {
  readonly json?: boolean;
}

const examples = `
Examples:
  $ logstrata check nginx            show the retention, and how many records a change removes
  $ logstrata retention apply nginx  remove them now, without waiting for retention.grace

A server on the same data may keep running. It must have read the same file (SIGHUP).`;

async function apply(name: string, flags: RetentionFlags): Promise<number> {
  const settings = await readSettings(flags);
  const definition = await chooseAgent(settings, name);
  requireData(resolve(settings.dataFolder));
  return withArchive(settings, 'write', 'retention', async (archive) => {
    const known = await archive.agents();
    if (!known.includes(name)) throw noRecords(name, known, archive.location);
    const retention = retentionOf(definition);
    const events = await archive.applyRetention(name, retention);
    if (flags.json === true) await printJson(events);
    else if (events.length > 0) await printLines(events.map((event) => retentionEntry(event).message));
    else await printLines([`nothing to do: ${name} keeps ${describeRetention(retention)}`]);
    return exitDone;
  });
}

/** Adds `logstrata retention apply`, which applies a stricter retention at once. */
export function addRetentionCommand(program: Command): void {
  const retention = program
    .command('retention')
    .summary('apply a stricter retention at once')
    .description('Applies the retention of an agent file.')
    .addHelpText('after', examples);
  retention
    .command('apply')
    .description(
      'Applies the retention of the agent file now: removes the records beyond it without waiting for retention.grace.',
    )
    .argument('<agent>', 'name of the agent')
    .option('--json', 'print the result as JSON')
    .action(async (agent: string, _flags: unknown, command: Command) => {
      process.exitCode = await apply(agent, command.optsWithGlobals<RetentionFlags>());
    });
}
