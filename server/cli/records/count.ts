import { Option, type Command } from 'commander';
import type { Schema } from '../../../engine/index.js';
import { countCsv, countJson } from '../../counts/count-answer.js';
import {
  countProblem,
  parseCountRequest,
  topDefault,
  type CountRequest,
} from '../../counts/count-request.js';
import { chooseAgent } from '../options/agent-choice.js';
import { cacheOption } from '../options/cache-option.js';
import { withWorkers } from '../options/opened-archive.js';
import {
  collectBound,
  cursorOption,
  filterHelp,
  parameterPieces,
  rawQueryOf,
} from '../options/query-words.js';
import type { QueryBounds } from '../options/query-words.js';
import { completed } from '../options/served-agents.js';
import { readSettings } from '../options/settings.js';
import type { GlobalFlags } from '../options/settings.js';
import { stoppable } from '../options/stoppable.js';
import { workersOption } from '../options/workers-option.js';
import { describeCounts, type Screen } from '../output/count-display.js';
import { describeStats } from '../output/explain.js';
import { exitDone } from '../output/failure.js';
import { printLines, screenWidth, tell, writeRecords } from '../output/terminal.js';

interface CountFlags extends GlobalFlags, Pick<QueryBounds, 'after' | 'before'> {
  readonly by?: readonly string[];
  readonly top?: readonly string[];
  readonly zone?: readonly string[];
  readonly csv?: boolean;
  readonly json?: boolean;
  readonly explain?: boolean;
  readonly workers?: number;
}

const examples = `${filterHelp}

Steps are a number and a unit: s, m, h, d, w, mo (months), y. Days and longer begin at local midnight.

Examples:
  $ logstrata count nginx status__gte=500                    how many errors there are
  $ logstrata count nginx time__since=1d --by time:1h        records of each hour of the last day
  $ logstrata count nginx --by remote_addr --top 20          the 20 most frequent addresses
  $ logstrata count nginx --by time:1d --by status --csv     days and status codes, for a spreadsheet`;

async function count(
  agent: string,
  words: readonly string[],
  flags: CountFlags,
  signal: AbortSignal,
): Promise<number> {
  const settings = await readSettings(flags);
  const written = await chooseAgent(settings, agent);
  const { by, top, zone } = flags;
  const rawQuery = [rawQueryOf(words, flags), ...parameterPieces({ by, top, zone })].join('&');
  const requestFor = (schema: Schema): CountRequest =>
    parseCountRequest(rawQuery, { schema, now: Date.now(), timezone: settings.config.server.timezone });
  // Mistakes in the query are reported before the archive is opened, unless the fields are only known from the archive.
  const early = written.archive?.infersFields === true ? undefined : requestFor(written.schema);
  return withWorkers(settings, 'read', 'count', flags.workers, async (archive) => {
    const { schema } = await completed(archive, written);
    const request = early ?? requestFor(schema);
    const store = await archive.agent(agent, schema);
    const counts = await store.count(request.query, { signal }).catch((error: unknown) => {
      throw countProblem(error);
    });
    if (flags.json === true) await writeRecords(Buffer.from(countJson(agent, request, counts)));
    else if (flags.csv === true || request.format === 'csv')
      await writeRecords(Buffer.from(countCsv(request, counts)));
    else await printLines(describeCounts(request, counts, screen()));
    if (flags.explain === true) describeStats(counts.stats).forEach(tell);
    return exitDone;
  });
}

function screen(): Screen {
  const { LC_ALL: all, LC_CTYPE: type, LANG: lang } = process.env;
  // The first one that is set and not empty counts, by POSIX.
  const locale = [all, type, lang].find((name) => name !== undefined && name !== '') ?? '';
  return { width: screenWidth(), hasBlocks: /utf-?8/i.test(locale) };
}

/** Adds `logstrata count`: counts matching records, shown as bars on a terminal, else as columns, CSV or JSON. */
export function addCountCommand(program: Command): void {
  program
    .command('count')
    .summary('count records, by time and by value')
    .description(
      'Counts the matching records exactly: all together, per time bucket, per most frequent value of a field, or both.',
    )
    .argument('<agent>', 'name of the agent')
    .argument('[filters...]', 'field__operator=value')
    .option(
      '--by <what>',
      'a time field with a step, such as time:1h, or another field; at most one of each',
      collectBound,
    )
    .option('--top <n>', `number of most frequent values to show (default: ${topDefault})`, collectBound)
    .option(
      '--zone <zone>',
      'time zone of the buckets (default: server.timezone of the configuration)',
      collectBound,
    )
    .addOption(cursorOption('after'))
    .addOption(cursorOption('before'))
    .addOption(new Option('--csv', 'print CSV with a header and times in milliseconds').conflicts('json'))
    .addOption(new Option('--json', 'print JSON, like /api/count of the console').conflicts('csv'))
    .option('--explain', 'print the cost of the count to standard error')
    .addOption(workersOption('read and count'))
    .addOption(cacheOption())
    .addHelpText('after', examples)
    .action(
      stoppable((flags: CountFlags, { signal }, agent: string, words: string[]) =>
        count(agent, words, flags, signal),
      ),
    );
}
