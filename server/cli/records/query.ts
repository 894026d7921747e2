import { Option } from 'commander';
import type { Command } from 'commander';
import type { Query, Schema } from '../../../engine/index.js';
import { parseQueryRequest } from '../../request/query-request.js';
import { chooseAgent } from '../options/agent-choice.js';
import { describeQuery, describeStats } from '../output/explain.js';
import { exitDone } from '../output/failure.js';
import { withWorkers } from '../options/opened-archive.js';
import { cursorOption, fieldsOption, filterHelp, limitOption, rawQueryOf } from '../options/query-words.js';
import type { QueryBounds } from '../options/query-words.js';
import { readSettings } from '../options/settings.js';
import type { GlobalFlags } from '../options/settings.js';
import { stoppable } from '../options/stoppable.js';
import { completed } from '../options/served-agents.js';
import type { StopSignals } from '../options/stop-signals.js';
import { colourOption } from '../display/colour.js';
import { tell } from '../output/terminal.js';
import { cacheOption } from '../options/cache-option.js';
import { workersOption } from '../options/workers-option.js';
import { follow, followedQuery } from './follow.js';
import { formatOf, recordOutput, type FormatFlags } from './record-output.js';

/** Default limit of a query, the same as of the HTTP route (`interface.md`). */
const limitDefault = 100;

interface QueryFlags extends GlobalFlags, QueryBounds, FormatFlags {
  readonly follow?: boolean;
  readonly explain?: boolean;
  readonly workers?: number;
}

const examples = `${filterHelp}

Examples:
  $ logstrata query nginx                                    the newest ${limitDefault} records
  $ logstrata query nginx status__gte=500 time__since=2h     errors of the last two hours
  $ logstrata query nginx 'user_agent__like=bot' --limit 10 --explain
  $ logstrata query nginx --after 072a5f0000000123           the records after that one
  $ logstrata query nginx --fields time,status,path --csv    three fields, for a spreadsheet
  $ logstrata query nginx status__gte=500 -n 5 --follow      the newest 5, and then new ones`;

async function query(
  agent: string,
  words: readonly string[],
  flags: QueryFlags,
  signals: StopSignals,
): Promise<number> {
  const settings = await readSettings(flags);
  const written = await chooseAgent(settings, agent);
  const { timezone, limitMax } = settings.config.server;
  const format = formatOf(flags);
  const requestFor = (schema: Schema): Query => {
    const request = parseQueryRequest(rawQueryOf(words, flags, format === 'table' ? undefined : format), {
      schema,
      now: Date.now(),
      timezone,
      limitMax,
      limitDefault: Math.min(limitDefault, limitMax),
    });
    return flags.follow === true ? followedQuery(request) : request;
  };
  // Mistakes in the query are reported before the archive is opened, unless the fields are only known from the archive.
  const early = written.archive?.infersFields === true ? undefined : requestFor(written.schema);
  return withWorkers(settings, 'read', 'query', flags.workers, async (archive) => {
    const { schema } = await completed(archive, written);
    const request = early ?? requestFor(schema);
    if (flags.explain === true) describeQuery(request, schema).forEach(tell);
    const store = await archive.agent(agent, schema);
    const output = recordOutput({ query: request, schema, zone: timezone, flags });
    const { signal } = signals;
    if (flags.follow === true) {
      await follow(store, request, output, signal);
      signals.obeyed();
      return exitDone;
    }
    const scan = await store.scan(request, { signal, lends: true });
    for await (const piece of scan.lines) await output.write(piece);
    output.end();
    if (flags.explain === true) describeStats(scan.stats).forEach(tell);
    return exitDone;
  });
}

/** Adds `logstrata query`: writes the answer of the HTTP route to standard output, byte for byte the same except on a terminal. */
export function addQueryCommand(program: Command): void {
  program
    .command('query')
    .summary('query records and print them')
    .description(
      'Prints the matching records, oldest first: in a terminal as aligned lines, elsewhere as JSON Lines, like the HTTP route.',
    )
    .argument('<agent>', 'name of the agent')
    .argument('[filters...]', 'field__operator=value')
    .addOption(limitOption(`maximum number of records (default: ${limitDefault})`))
    .addOption(cursorOption('after'))
    .addOption(cursorOption('before'))
    .addOption(fieldsOption())
    .option('-f, --follow', 'go on printing new records as they arrive, until Ctrl-C')
    .addOption(formatOption('jsonl', 'print JSON Lines'))
    .addOption(formatOption('json', 'print one JSON array'))
    .addOption(formatOption('csv', 'print CSV with a header'))
    .addOption(formatOption('table', 'print aligned lines, even if the output is not a terminal'))
    .addOption(
      new Option('--wrap', 'print aligned lines, with long values wrapped instead of cut').conflicts([
        'jsonl',
        'json',
        'csv',
      ]),
    )
    .addOption(colourOption())
    .option('--explain', 'print to standard error how the query was understood and what it cost')
    .addOption(workersOption('read and search'))
    .addOption(cacheOption())
    .addHelpText('after', examples)
    .action(
      stoppable((flags: QueryFlags, signals, agent: string, words: string[]) =>
        query(agent, words, flags, signals),
      ),
    );
}

const formats = ['jsonl', 'json', 'csv', 'table'] as const;

/** The option for a format; it can't be combined with another one. */
function formatOption(name: (typeof formats)[number], description: string): Option {
  return new Option(`--${name}`, description).conflicts(formats.filter((other) => other !== name));
}
