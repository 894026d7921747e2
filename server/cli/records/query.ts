import { Option } from 'commander';
import type { Command } from 'commander';
import type { LineFormat, Schema } from '../../../engine/index.js';
import { parseQueryRequest } from '../../request/query-request.js';
import { chooseAgent } from '../options/agent-choice.js';
import { describeQuery, describeStats } from '../output/explain.js';
import { exitDone } from '../output/failure.js';
import { withWorkers } from '../options/opened-archive.js';
import { collectBound, cursorOption, fieldsOption, filterHelp, rawQueryOf } from '../options/query-words.js';
import type { QueryBounds } from '../options/query-words.js';
import { readSettings } from '../options/settings.js';
import type { GlobalFlags } from '../options/settings.js';
import { stoppable } from '../options/stoppable.js';
import { completed } from '../options/served-agents.js';
import { tell, writeOut } from '../output/terminal.js';
import { cacheOption } from '../options/cache-option.js';
import { workersOption } from '../options/workers-option.js';

/** Records that a query without a limit answers with, as on the route (`interface.md`). */
const limitDefault = 100;

interface QueryFlags extends GlobalFlags, QueryBounds {
  readonly explain?: boolean;
  readonly jsonl?: boolean;
  readonly json?: boolean;
  readonly csv?: boolean;
  readonly workers?: number;
}

const examples = `${filterHelp}

Examples:
  $ logstrata query nginx                                    the newest ${limitDefault} records
  $ logstrata query nginx status__gte=500 time__since=2h     errors of the last two hours
  $ logstrata query nginx 'user_agent__like=bot' --limit 10 --explain
  $ logstrata query nginx --after 072a5f0000000123           what came after that record
  $ logstrata query nginx --fields time,status,path --csv    three fields, for a spreadsheet`;

/** The format that a flag asks for; undefined without one. */
function formatOf({ jsonl, json, csv }: QueryFlags): LineFormat | undefined {
  if (json === true) return 'json';
  if (csv === true) return 'csv';
  return jsonl === true ? 'jsonl' : undefined;
}

async function query(
  agent: string,
  words: readonly string[],
  flags: QueryFlags,
  signal: AbortSignal,
): Promise<number> {
  const settings = await readSettings(flags);
  const written = await chooseAgent(settings, agent);
  const requestFor = (schema: Schema): ReturnType<typeof parseQueryRequest> =>
    parseQueryRequest(rawQueryOf(words, flags, formatOf(flags)), {
      schema,
      now: Date.now(),
      timezone: settings.config.server.timezone,
      limitMax: settings.config.server.limitMax,
      limitDefault: Math.min(limitDefault, settings.config.server.limitMax),
    });
  // A mistake is told before anything is opened, but where only the archive knows the fields.
  const early = written.archive?.infersFields === true ? undefined : requestFor(written.schema);
  return withWorkers(settings, 'read', 'query', flags.workers, async (archive) => {
    const { schema } = await completed(archive, written);
    const request = early ?? requestFor(schema);
    if (flags.explain === true) describeQuery(request, schema).forEach(tell);
    const store = await archive.agent(agent, schema);
    const scan = await store.scan(request, { signal, lends: true });
    for await (const piece of scan.lines) await writeOut(piece);
    if (flags.explain === true) describeStats(scan.stats).forEach(tell);
    return exitDone;
  });
}

/** `logstrata query`: the answers of the HTTP route, byte for byte, on standard output. */
export function addQueryCommand(program: Command): void {
  program
    .command('query')
    .summary('answer a query on standard output')
    .description('Answers a query on standard output, as the HTTP route does: JSON Lines, oldest first.')
    .argument('<agent>', 'name of the agent')
    .argument('[filters...]', 'field__operator=value')
    .option('--limit <n>', `records at most (default: ${limitDefault})`, collectBound)
    .addOption(cursorOption('after'))
    .addOption(cursorOption('before'))
    .addOption(fieldsOption())
    .addOption(new Option('--jsonl', 'answer as JSON Lines').conflicts(['json', 'csv']))
    .addOption(new Option('--json', 'answer as one array of JSON').conflicts(['jsonl', 'csv']))
    .addOption(new Option('--csv', 'answer as CSV with a header').conflicts(['jsonl', 'json']))
    .option('--explain', 'show on standard error how the query was understood and what it cost')
    .addOption(workersOption('read and search'))
    .addOption(cacheOption())
    .addHelpText('after', examples)
    .action(
      stoppable((flags: QueryFlags, { signal }, agent: string, words: string[]) =>
        query(agent, words, flags, signal),
      ),
    );
}
