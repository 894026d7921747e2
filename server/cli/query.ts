import { Option, type Command } from 'commander';
import {
  answeredValue,
  assertNever,
  type Field,
  formatCursor,
  type Predicate,
  type Query,
  type ScanStats,
  type Schema,
} from '../../engine/index.js';
import {
  formatBytes,
  formatCount,
  formatSpan,
  formatTime,
  formatPairs,
  colourOption,
  tell,
} from './terminal.js';
import { parseQueryRequest } from '../http/query-request.js';
import {
  chooseAgent,
  cursorOption,
  fieldsOption,
  filterHelp,
  limitOption,
  rawQueryOf,
  type QueryBounds,
  readSettings,
  type GlobalFlags,
  cacheOption,
  workersOption,
} from './options.js';
import { exitDone } from './failure.js';
import { withWorkers, completed } from './opened-archive.js';
import { stoppable, type StopSignals } from './stoppable.js';
import { follow, followedQuery } from './follow.js';
import { formatOf, recordOutput, type FormatFlags } from './record-output.js';

const signs = { eq: '=', ne: '≠', gt: '>', gte: '≥', lt: '<', lte: '≤' } as const;

/** A parsed filter: field, comparison and typed value. */
function describePredicate(predicate: Predicate, schema: Schema): string {
  if (predicate.kind === 'anywhere')
    return `any text ${predicate.isAbsent ? 'not_like' : 'like'} ${JSON.stringify(predicate.value)}`;
  const field = schema.fields[predicate.field]!;
  switch (predicate.kind) {
    case 'int': {
      const value = String(answeredValue(field.type, predicate.value));
      const time = field.type === 'time' ? ` (${formatTime(Number(predicate.value))} UTC)` : '';
      return `${field.name} ${signs[predicate.op]} ${value}${time}`;
    }
    case 'float':
      return `${field.name} ${signs[predicate.op]} ${predicate.value}`;
    case 'string':
      return `${field.name} ${predicate.op} ${JSON.stringify(predicate.value)}`;
    case 'set':
      return predicate.members.map((member) => describePredicate(member, schema)).join(' or ');
    default:
      return assertNever(predicate);
  }
}

/** The kind of index that an agent's file sets for a field; empty where the data decide. */
export function describeIndexOf({ index }: Field): string {
  return index === undefined ? '' : ` (index: ${index})`;
}

/** The parsed query as lines for people: reading order, bounds and typed filters. */
function describeQuery(query: Query, schema: Schema): string[] {
  const order = query.after === undefined ? 'newest first, answered oldest first' : 'oldest first';
  const pairs: [string, string][] = [
    ['reads', order],
    ['limit', Number.isSafeInteger(query.limit) ? formatCount(query.limit) : 'none'],
  ];
  if (query.after !== undefined) pairs.push(['after', formatCursor(query.after)]);
  if (query.before !== undefined) pairs.push(['before', formatCursor(query.before)]);
  query.predicates.forEach((predicate, i) => {
    const index = predicate.kind === 'anywhere' ? '' : describeIndexOf(schema.fields[predicate.field]!);
    pairs.push([i === 0 ? 'filters' : '', describePredicate(predicate, schema) + index]);
  });
  return formatPairs(pairs);
}

/** The cost of a query as lines for people, for `--explain`. */
export function describeStats(stats: ScanStats): string[] {
  const left = (count: number, by: string): [string, string][] =>
    count === 0 ? [] : [[`  ruled out by ${by}`, formatCount(count)]];
  return formatPairs([
    ['runs within the bounds', formatCount(stats.runs)],
    ['row groups', formatCount(stats.rowGroups)],
    ...left(stats.rowGroupsPrunedByTime, 'time'),
    ...left(stats.rowGroupsPrunedByZone, 'bounds'),
    ...left(stats.rowGroupsPrunedByValue, 'values'),
    ...left(stats.rowGroupsPrunedByGram, 'grams'),
    ...left(stats.rowGroupsPrunedByDictionary, 'dictionary'),
    ['  scanned', formatCount(stats.rowGroupsScanned)],
    ['rows scanned', formatCount(stats.rowsScanned)],
    ['rows returned', formatCount(stats.rowsReturned)],
    ['bytes read', formatBytes(stats.bytesRead)],
    ['columns decoded', formatCount(stats.columnsDecoded)],
    ['columns from the cache', formatCount(stats.columnsCached)],
    ...(stats.columnsPrunedByGram === 0
      ? []
      : [['columns ruled out by grams', formatCount(stats.columnsPrunedByGram)] as [string, string]]),
    ['value filter pieces read', formatCount(stats.valuePiecesRead)],
    ['gram filter pieces read', formatCount(stats.gramPiecesRead)],
    ['time to find the rows', formatSpan(stats.selectMs)],
    ['time to write them out', formatSpan(stats.writeMs)],
  ]);
}

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
