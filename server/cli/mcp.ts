import { resolve } from 'node:path';
import type * as McpLibrary from '@modelcontextprotocol/server';
import type * as StdioLibrary from '@modelcontextprotocol/server/stdio';
import {
  hasSystemCode,
  LogstrataError,
  type AgentStore,
  type Archive,
  type StoreStats,
} from '../../engine/index.js';
import { countJson, countProblem, parseCountRequest } from '../http/count-request.js';
import { operatorsOf } from '../http/filter.js';
import { parseQueryRequest } from '../http/query-request.js';
import { didYouMean, listNames } from '../http/suggestion.js';
import { describeFailure, exitDone, expectedError, UsageError } from './failure.js';
import { completed, withWorkers } from './opened-archive.js';
import {
  chooseAgent,
  packageVersion,
  rawQueryOf,
  readAgentsFolder,
  readSettings,
  type GlobalFlags,
  type Settings,
} from './options.js';
import { PageText } from './page-text.js';
import type { StopSignals } from './stoppable.js';
import { formatTime, tell } from './terminal.js';

/** Records of an answer, at most and by default. */
const recordsMax = 500;
const recordsDefault = 50;
const neighboursDefault = 10;
/** Agents of a list, each of which is opened for its number of records, and fields of a description. */
const agentsMax = 100;
const fieldsMax = 500;
/** Bytes of an answer. The reader is a language model, which takes some ten thousand tokens at once. */
const answerBytesMax = 50_000;

const agent = { type: 'string', description: 'the name of the agent' } as const;
const filters = {
  type: 'array',
  items: { type: 'string' },
  description:
    'All must hold. Each is field__operator=value with an operator that describe_agent lists for the field, such as status__gte=500 or level__in=error, or a text that any field contains, such as timeout.',
} as const;
const since = {
  type: 'string',
  description: 'from this time on: 2026-11-18 10:00:00, 2026-11-18, or a span back from now: 15m, 2h, 7d',
} as const;
const until = { type: 'string', description: 'before this time' } as const;
const after = { type: 'string', description: 'only records after this _cursor' } as const;
const before = { type: 'string', description: 'only records before this _cursor' } as const;
const fields = {
  type: 'array',
  items: { type: 'string' },
  description: 'only these fields, besides _cursor',
} as const;
const some = (what: string, byDefault: number) =>
  ({ type: 'integer', minimum: 0, maximum: recordsMax, default: byDefault, description: what }) as const;

/** The arguments of the tools. Which a tool has, its schema says. */
interface Given {
  readonly agent: string;
  readonly filters?: readonly string[];
  readonly since?: string;
  readonly until?: string;
  readonly limit?: number;
  readonly after?: string;
  readonly before?: string;
  readonly fields?: readonly string[];
  readonly by?: readonly string[];
  readonly top?: number;
  readonly zone?: string;
  readonly contains?: string;
  readonly cursor: string;
  readonly records_before?: number;
  readonly records_after?: number;
}

/** What a tool answers: texts, each a part of the answer. */
type Answer = readonly string[];

interface Tool {
  readonly name: string;
  readonly description: string;
  readonly properties: Readonly<Record<string, object>>;
  readonly required: readonly string[];
  readonly run: (asked: Asked, given: Given, signal: AbortSignal) => Promise<Answer>;
}

/** The archive that the tools ask. */
class Asked {
  readonly #archive: Archive;
  readonly settings: Settings;

  constructor(archive: Archive, settings: Settings) {
    this.#archive = archive;
    this.settings = settings;
  }

  /** The store of an agent. Requests are parsed against its own fields, which stay, even if the agent's file changes. */
  async store(name: string): Promise<AgentStore> {
    const { schema } = await completed(this.#archive, await chooseAgent(this.settings, name));
    return this.#archive.agent(name, schema);
  }
}

const one = (value: string | number | undefined): readonly string[] | undefined =>
  value === undefined ? undefined : [String(value)];

/** A page as text. `parameters` are those of the query route, and `since` and `until`. */
async function page(
  { settings }: Asked,
  store: AgentStore,
  filters: readonly string[],
  parameters: Readonly<Record<string, readonly string[] | undefined>>,
  signal: AbortSignal,
  bytesMax = answerBytesMax,
): Promise<PageText> {
  const { schema } = store;
  const query = parseQueryRequest(rawQueryOf(filters, parameters, schema), {
    schema,
    now: Date.now(),
    timezone: settings.config.server.timezone,
    limitMax: recordsMax,
    limitDefault: recordsDefault,
  });
  if ((query.form?.format ?? 'jsonl') !== 'jsonl')
    throw new UsageError('answers are JSON Lines: leave out "format"');
  const text = new PageText({ isFromStart: query.after !== undefined, limit: query.limit, bytesMax });
  const { lines } = await store.scan(query, { signal });
  for await (const piece of lines) {
    text.add(piece);
    if (text.isFull) break;
  }
  return text;
}

async function listAgents(asked: Asked, { contains = '', after: last = '' }: Given): Promise<Answer> {
  const { agents, problems } = await readAgentsFolder(asked.settings);
  const names = agents
    .map(({ name }) => name)
    .filter((name) => name > last && name.includes(contains))
    .sort();
  const shown: object[] = [];
  for (const name of names.slice(0, agentsMax)) {
    const stats = await asked
      .store(name)
      .then((store) => store.stats())
      .catch(expectedError);
    // An agent that can't be read does not hide the others.
    if ('code' in stats) shown.push({ name, problem: stats.message });
    else shown.push({ name, records: stats.records, ...timesOf(stats) });
  }
  const rest = names.length - shown.length;
  const more =
    rest > 0 ? [`${rest} more agents: call again with after=${names[agentsMax - 1]}, or with contains`] : [];
  const broken = problems.length > 0 ? [`${problems.length} problems in agent files: logstrata check`] : [];
  return [shown.map((each) => JSON.stringify(each)).join('\n'), ...more, ...broken];
}

/** The times of the first and the last record, for agents that have times. */
function timesOf({ timeMinMs, timeMaxMs }: StoreStats): { readonly first?: string; readonly last?: string } {
  if (timeMinMs === null) return {};
  return { first: `${formatTime(timeMinMs)} UTC`, last: `${formatTime(timeMaxMs)} UTC` };
}

async function describeAgent(asked: Asked, { agent: name }: Given): Promise<Answer> {
  const definition = await chooseAgent(asked.settings, name);
  const store = await asked.store(name);
  const stats = await store.stats();
  const { records, firstCursor, lastCursor } = stats;
  const { fields } = store.schema;
  const types = [...new Set(fields.map(({ type }) => type))];
  const operators = Object.fromEntries(types.map((type) => [type, operatorsOf(type).join(' ')]));
  const described = fields.slice(0, fieldsMax).map(({ name: field, type }) => {
    const { description } = definition.fields.find((each) => each.name === field) ?? {};
    return JSON.stringify({ name: field, type, description });
  });
  const more = fields.length - fieldsMax;
  return [
    JSON.stringify({ name, records, ...timesOf(stats), firstCursor, lastCursor, operators }),
    described.join('\n'),
    ...(more > 0 ? [`${more} more fields are left out`] : []),
  ];
}

async function queryLogs(asked: Asked, given: Given, signal: AbortSignal): Promise<Answer> {
  const { filters: words = [], since, until, limit, after, before, fields } = given;
  const parameters = {
    since: one(since),
    until: one(until),
    limit: one(limit),
    after: one(after),
    before: one(before),
    fields: one(fields?.join(',')),
  };
  return (await page(asked, await asked.store(given.agent), words, parameters, signal)).answer();
}

async function countLogs(asked: Asked, given: Given, signal: AbortSignal): Promise<Answer> {
  const { agent: name, filters: words = [], since, until, after, before, by, top, zone } = given;
  const store = await asked.store(name);
  const parameters = {
    since: one(since),
    until: one(until),
    after: one(after),
    before: one(before),
    by,
    top: one(top),
    zone: one(zone),
  };
  const { schema } = store;
  const { timezone } = asked.settings.config.server;
  const request = parseCountRequest(rawQueryOf(words, parameters, schema), {
    schema,
    now: Date.now(),
    timezone,
  });
  const counts = await store.count(request.query, { signal }).catch((error: unknown) => {
    throw countProblem(error);
  });
  const text = countJson(name, request, counts);
  if (text.length <= answerBytesMax) return [text];
  throw new UsageError(
    `the count has ${text.length} characters, more than the ${answerBytesMax} of an answer`,
    'Ask for a larger step, a shorter time, or a lower "top"',
  );
}

/** The cursor before another one: whatever stands there, the records after it begin with the other one. */
function cursorBefore(cursor: string): string {
  return (BigInt(`0x${cursor}`) - 1n).toString(16).padStart(16, '0');
}

async function logsAround(asked: Asked, given: Given, signal: AbortSignal): Promise<Answer> {
  const { agent: name, cursor, records_before: earlier, records_after: later, fields } = given;
  if (!/^[0-9a-f]{16}$/.test(cursor) || /^0+$/.test(cursor))
    throw new UsageError('"cursor" must be the _cursor of a record: 16 lowercase hexadecimal digits');
  const store = await asked.store(name);
  const shown = { fields: one(fields?.join(',')) };
  const beforeIt = { ...shown, before: [cursor], limit: [String(earlier ?? neighboursDefault)] };
  const fromIt = {
    ...shown,
    after: [cursorBefore(cursor)],
    limit: [String((later ?? neighboursDefault) + 1)],
  };
  const first = await page(asked, store, [], beforeIt, signal, answerBytesMax / 2);
  const second = await page(asked, store, [], fromIt, signal, answerBytesMax / 2);
  const isThere = second.first === cursor;
  return [
    ...first.answer(),
    ...second.answer(),
    ...(isThere ? [] : ['no record has this cursor: these are those around its place']),
  ];
}

const tools: readonly Tool[] = [
  {
    name: 'list_agents',
    description: `Lists the agents (kinds of logs): number of records and times of each. At most ${agentsMax} at once.`,
    properties: {
      contains: { type: 'string', description: 'only agents whose name contains this' },
      after: { type: 'string', description: 'only agents after this name' },
    },
    required: [],
    run: listAgents,
  },
  {
    name: 'describe_agent',
    description: 'Describes an agent: its records, and its fields with their types and filter operators.',
    properties: { agent },
    required: ['agent'],
    run: describeAgent,
  },
  {
    name: 'query_logs',
    description:
      'Returns log records as JSON Lines, oldest first: the newest that match, those after a _cursor, or those before one. Says how to go on.',
    properties: {
      agent,
      filters,
      since,
      until,
      limit: some('number of records', recordsDefault),
      after,
      before,
      fields,
    },
    required: ['agent'],
    run: queryLogs,
  },
  {
    name: 'count_logs',
    description: 'Counts matching records exactly: all, by time, by the values of a field, or by both.',
    properties: {
      agent,
      filters,
      since,
      until,
      after,
      before,
      by: {
        type: 'array',
        items: { type: 'string' },
        maxItems: 2,
        description:
          'a time field with a step (time:1h; s, m, h, d, w, mo, y), another field (status), or both',
      },
      top: { type: 'integer', minimum: 1, description: 'number of most frequent values' },
      zone: { type: 'string', description: 'time zone of the steps, such as Europe/Oslo' },
    },
    required: ['agent'],
    run: countLogs,
  },
  {
    name: 'logs_around',
    description:
      'Returns a record and its neighbours, whether or not these match any filter: what happened before and after.',
    properties: {
      agent,
      cursor: { type: 'string', description: 'the _cursor of the record' },
      records_before: some('number of records before it', neighboursDefault),
      records_after: some('number of records after it', neighboursDefault),
      fields,
    },
    required: ['agent', 'cursor'],
    run: logsAround,
  },
];

const instructions =
  'Searches log records. Begin with list_agents and describe_agent. Times in records are milliseconds since the epoch (UTC). ' +
  'Count before reading many records. A _cursor is a position that never changes: pass it as after or before to go on.';

/** Loads the library, which is only needed here. */
async function loadLibrary(): Promise<typeof McpLibrary & typeof StdioLibrary> {
  try {
    const [server, stdio] = await Promise.all([
      import('@modelcontextprotocol/server'),
      import('@modelcontextprotocol/server/stdio'),
    ]);
    return { ...server, ...stdio };
  } catch (error) {
    if (!hasSystemCode(error, 'ERR_MODULE_NOT_FOUND')) throw error;
    const name = '@modelcontextprotocol/server';
    const message = `logstrata mcp needs the package ${name}, which is not installed: npm install ${name}`;
    throw new LogstrataError('unsupported', message, { cause: error });
  }
}

/** Says to a user who has typed the command what it is for. */
function tellConfiguration({ agentsFolder, dataFolder, configPath }: Settings): void {
  const config = configPath === undefined ? [] : ['--config', resolve(configPath)];
  const args = [
    process.argv[1]!,
    'mcp',
    ...config,
    '--agents',
    resolve(agentsFolder),
    '--data',
    resolve(dataFolder),
  ];
  tell('A client of the Model Context Protocol runs this command. Its configuration:');
  tell(JSON.stringify({ mcpServers: { logstrata: { command: process.execPath, args } } }));
  tell('Ctrl-C ends it.');
}

/** Makes the server of the protocol for a client, with all tools. */
function makeServer(
  { McpServer, fromJsonSchema }: typeof McpLibrary,
  asked: Asked,
  signal: AbortSignal,
): McpLibrary.McpServer {
  const server = new McpServer({ name: 'logstrata', version: packageVersion() }, { instructions });
  const { queryTimeoutMs } = asked.settings.config.server;
  const late = `it took longer than ${queryTimeoutMs / 1000} s: add filters, or ask for a shorter time`;
  for (const { name, description, properties, required, run } of tools) {
    const schema = { type: 'object', properties, required: [...required] };
    const inputSchema = fromJsonSchema<Given>(schema as never);
    const about = { description, inputSchema, annotations: { readOnlyHint: true } };
    server.registerTool(name, about, async (given, { mcpReq }) => {
      const timer = AbortSignal.timeout(queryTimeoutMs);
      try {
        requireKnown(given, Object.keys(properties));
        return answerOf(await run(asked, given, AbortSignal.any([mcpReq.signal, signal, timer])));
      } catch (error) {
        const lines = timer.aborted ? [late] : describeFailure(error);
        if (lines === undefined) throw error;
        return { ...answerOf([lines.join('\n')]), isError: true };
      }
    });
  }
  return server;
}

function answerOf(texts: Answer): McpLibrary.CallToolResult {
  return { content: texts.map((text) => ({ type: 'text', text })) };
}

/** The library's own check would not name the argument. */
function requireKnown(given: Given, known: readonly string[]): void {
  const unknown = Object.keys(given).find((name) => !known.includes(name));
  if (unknown === undefined) return;
  const near = didYouMean(unknown, known);
  throw new UsageError(
    `unknown argument ${JSON.stringify(unknown)}${near}. The arguments are ${listNames(known)}`,
  );
}

/** Runs `logstrata mcp`: answers a client of the Model Context Protocol on standard input and output until it closes them. */
export async function mcp(
  flags: GlobalFlags & { readonly workers?: number },
  { signal }: StopSignals,
): Promise<number> {
  const settings = await readSettings(flags);
  const library = await loadLibrary();
  await readAgentsFolder(settings);
  await withWorkers(settings, 'read', 'mcp', flags.workers, async (archive) => {
    const asked = new Asked(archive, settings);
    const ended = new Promise<void>((done) => {
      process.stdin.once('close', done).once('end', done);
      signal.addEventListener('abort', () => done());
    });
    const serving = library.serveStdio(() => makeServer(library, asked, signal));
    if (process.stdin.isTTY) tellConfiguration(settings);
    await ended;
    await serving.close();
  });
  return exitDone;
}
