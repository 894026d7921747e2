import { resolve } from 'node:path';
import type * as McpLibrary from '@modelcontextprotocol/server';
import type * as StdioLibrary from '@modelcontextprotocol/server/stdio';
import {
  hasSystemCode,
  LogstrataError,
  type AgentStore,
  type SeveralQuery,
  type SeveralStore,
  type Archive,
  type StoreStats,
} from '../../engine/index.js';
import { parametersKnown } from '../console/openapi.js';
import { countRequestIn } from './count.js';
import { countIn, countJson, countParameters, countProblem } from '../http/count-request.js';
import { operatorsOf } from '../../agents/definition/filter-operators.js';
import { agentNames, queryParameters } from '../http/query-request.js';
import { didYouMean, listNames } from '../../agents/definition/suggestion.js';
import { describeFailure, exitDone, expectedError, UsageError } from './failure.js';
import { completed, withWorkers } from './opened-archive.js';
import {
  chooseAgent,
  packageVersion,
  readAgentsFolder,
  readSettings,
  type GlobalFlags,
  type Settings,
} from './options.js';
import { queryIn } from './query.js';
import type { StopSignals } from './stoppable.js';
import { formatCounted, formatTime, tell } from './terminal.js';

/** Records of an answer, at most and by default. */
const recordsMax = 500;
const recordsDefault = 50;
const neighboursDefault = 10;
/** Agents of a list, each of which is opened for its number of records, and fields of a description. */
const agentsMax = 100;
const fieldsMax = 500;
/** Characters of a string; the end of a longer one is left out. */
const stringCharactersMax = 2000;
/** Bytes of an answer. The reader is a language model, which takes some ten thousand tokens at once. */
const answerBytesMax = 50_000;

const text = (description: string): object => ({ type: 'string', description });
const howMany = (description: string, byDefault: number): object => ({
  ...{ type: 'integer', minimum: 0, maximum: recordsMax, default: byDefault },
  description,
});
/** Those of a route's parameters that are arguments as they are. */
function argumentsOf(names: readonly string[]): Readonly<Record<string, object>> {
  return Object.fromEntries(Object.entries(parametersKnown).filter(([name]) => names.includes(name)));
}

const agents = text('The name of the agent, or of several, separated by commas.');
const question = {
  agent: agents,
  filters: {
    type: 'array',
    items: { type: 'string' },
    description:
      'All must hold. Each is field__operator=value with an operator that describe_agent lists, such as status__gte=500, or a text that any field contains.',
  },
  since: text('From this time on: 2026-11-18 10:00:00, 2026-11-18, or a span back from now: 15m, 2h, 7d.'),
  until: text('Before this time.'),
};

type Value = string | number | readonly string[];

/** The arguments of a tool. Those that have no name here are parameters of the routes. */
interface Given extends Readonly<Record<string, Value | undefined>> {
  readonly agent: string;
  readonly filters?: readonly string[];
}

/** Arguments as parameters of the command line, each as often as it is given. */
function parametersOf({
  agent: _agent,
  filters: _filters,
  ...given
}: Given): Record<string, readonly string[]> {
  const values = Object.entries(given).map(([name, value]): [string, readonly string[]] => [
    name,
    name !== 'fields' && Array.isArray(value) ? (value as readonly string[]) : [String(value)],
  ]);
  return Object.fromEntries(values);
}

/** What a tool answers: texts, each a part of the answer. */
type Answer = readonly string[];

interface Tool {
  readonly name: string;
  readonly description: string;
  readonly properties: Readonly<Record<string, object>>;
  readonly run: (asked: Asked, given: Given, signal: AbortSignal) => Promise<Answer>;
}

/** What the tools ask. */
interface Asked {
  readonly archive: Archive;
  readonly settings: Settings;
}

/** The store of an agent. Requests are parsed against its own fields, which stay, even if the agent's file changes. */
async function storeOf({ archive, settings }: Asked, name: string): Promise<AgentStore> {
  const { schema } = await completed(archive, await chooseAgent(settings, name));
  return archive.agent(name, schema);
}

/** The store of an agent, or of several that are asked together. */
async function joinedStore(asked: Asked, agents: string): Promise<AgentStore | SeveralStore> {
  const [first, ...others] = await Promise.all(agentNames(agents).map((name) => storeOf(asked, name)));
  return others.length === 0 ? first! : first!.joined(others);
}

/** Asks for a page of one agent, or of several. The last text is about it. */
async function askPage(
  asked: Asked,
  given: Given,
  signal: AbortSignal,
  bytesMax = answerBytesMax,
): Promise<Answer> {
  const store = await joinedStore(asked, given.agent);
  const { timezone } = asked.settings.config.server;
  const context = { now: Date.now(), timezone, limitMax: recordsMax, limitDefault: recordsDefault };
  const query = queryIn(store, given.filters ?? [], parametersOf(given), context);
  if ((query.form?.format ?? 'jsonl') !== 'jsonl')
    throw new UsageError('answers are JSON Lines: leave out "format"');
  const { lines } = await store.scan(query as SeveralQuery, { signal });
  return readPage(lines, query.after !== undefined, query.limit, bytesMax);
}

/** Reads a page. Records that are too many are left out at its end if it is read from its start, else at its start. */
async function readPage(
  pieces: AsyncIterable<Uint8Array>,
  isFromStart: boolean,
  limit: number,
  bytesMax: number,
): Promise<Answer> {
  const lines: string[] = [];
  let [count, bytes, isCut] = [0, 0, false];
  for await (const whole of linesOf(pieces)) {
    const line = shortened(whole, bytesMax);
    const size = Buffer.byteLength(line) + 1;
    isCut ||= bytes + size > bytesMax;
    if (isFromStart && isCut) break;
    lines.push(line);
    count++;
    for (bytes += size; bytes > bytesMax;) bytes -= Buffer.byteLength(lines.shift()!) + 1;
  }
  if (lines.length === 0) return ['no record'];
  const [first, last] = [cursorOf(lines[0]!), cursorOf(lines.at(-1)!)];
  const about = isCut
    ? '; further ones were left out, as the answer would be too long'
    : count < limit
      ? `; there are no ${isFromStart ? 'later' : 'earlier'} ones`
      : '';
  const note = `${formatCounted(lines.length, 'record')}${about}. Earlier: before=${first}; later: after=${last}`;
  return [lines.join('\n'), note];
}

async function* linesOf(pieces: AsyncIterable<Uint8Array>): AsyncGenerator<string> {
  let begun: Uint8Array[] = [];
  for await (const piece of pieces) {
    let start = 0;
    for (let end = piece.indexOf(lineEnd); end >= 0; end = piece.indexOf(lineEnd, start)) {
      yield Buffer.concat([...begun, piece.subarray(start, end)]).toString('utf8');
      begun = [];
      start = end + 1;
    }
    begun.push(piece.slice(start));
  }
}

const lineEnd = 0x0a;

function cursorOf(line: string): string {
  return /^\{"_cursor":"([^"]*)"/.exec(line)?.[1] ?? '';
}

/** A record without the ends of its long strings. Numbers keep all their digits. */
function shortened(record: string, bytesMax: number): string {
  if (record.length <= stringCharactersMax) return record;
  const short = record.replaceAll(/"[^"\\]*(?:\\.[^"\\]*)*"/g, (text) => {
    const value = text.length > stringCharactersMax ? (JSON.parse(text) as string) : '';
    const more = value.length - stringCharactersMax;
    return more > 0 ? JSON.stringify(`${value.slice(0, -more)}… (${more} more characters)`) : text;
  });
  if (Buffer.byteLength(short) < bytesMax) return short;
  return JSON.stringify({ _cursor: cursorOf(record), _left_out: 'too long: ask for some of its fields' });
}

async function listAgents(asked: Asked, { contains, after: last = '' }: Given): Promise<Answer> {
  const { agents, problems } = await readAgentsFolder(asked.settings);
  const names = agents
    .map(({ name }) => name)
    .filter((name) => name > String(last) && name.includes(String(contains ?? '')))
    .sort();
  const shown: object[] = [];
  for (const name of names.slice(0, agentsMax)) {
    const stats = await storeOf(asked, name)
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
  const store = await storeOf(asked, name);
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

async function countLogs(asked: Asked, given: Given, signal: AbortSignal): Promise<Answer> {
  const store = await joinedStore(asked, given.agent);
  const context = { now: Date.now(), timezone: asked.settings.config.server.timezone };
  const request = countRequestIn(store, given.filters ?? [], parametersOf(given), context);
  const counts = await countIn(store, request, signal).catch((error: unknown) => {
    throw countProblem(error);
  });
  const json = countJson(given.agent, request, counts);
  if (json.length <= answerBytesMax) return [json];
  throw new UsageError(
    `the count has ${json.length} characters, more than the ${answerBytesMax} of an answer`,
    'Ask for a larger step, a shorter time, or a lower "top"',
  );
}

/** The cursor of a record among those of its own agent, and that agent. */
function ofOneAgent(cursor: string, agents: string): [cursor: string, agent: string] {
  const [, own, ...cursors] = cursor.split('.');
  if (own === undefined) return [cursor, agents];
  const names = agents.split(',');
  return [cursors[Number(own) - 1] ?? cursor, names[Number(own) - 1] ?? agents];
}

/** The cursor before another one: whatever stands there, the records after it begin with the other one. */
function cursorBefore(cursor: string): string {
  return (BigInt(`0x${cursor}`) - 1n).toString(16).padStart(16, '0');
}

async function logsAround(asked: Asked, given: Given, signal: AbortSignal): Promise<Answer> {
  const { cursor: place, records_before: earlier, records_after: later, ...shown } = given;
  const [cursor, agent] = ofOneAgent(String(place), given.agent);
  if (!/^[0-9a-f]{16}$/.test(cursor) || /^0+$/.test(cursor))
    throw new UsageError('"cursor" must be the _cursor of a record: 16 lowercase hexadecimal digits');
  const around = (bounds: Record<string, Value>): Promise<Answer> =>
    askPage(asked, { ...shown, agent, ...bounds }, signal, answerBytesMax / 2);
  const first = await around({ before: cursor, limit: earlier ?? neighboursDefault });
  const limit = Number(later ?? neighboursDefault) + 1;
  return [...first, ...(await around({ after: cursorBefore(cursor), limit }))];
}

const tools: readonly Tool[] = [
  {
    name: 'list_agents',
    description: `Lists the agents (kinds of logs): number of records and times of each. At most ${agentsMax} at once.`,
    properties: {
      contains: text('Only agents whose name contains this.'),
      after: text('Only agents after this name.'),
    },
    run: listAgents,
  },
  {
    name: 'describe_agent',
    description: 'Describes an agent: its records, and its fields with their types and filter operators.',
    properties: { agent: text('The name of the agent.') },
    run: describeAgent,
  },
  {
    name: 'query_logs',
    description:
      'Returns log records as JSON Lines, oldest first: the newest that match, those after a _cursor, or those before one. Says how to go on.',
    properties: {
      ...question,
      ...argumentsOf(queryParameters),
      limit: howMany('The number of records.', recordsDefault),
    },
    run: askPage,
  },
  {
    name: 'count_logs',
    description: 'Counts matching records exactly: all, by time, by the values of a field, or by both.',
    properties: { ...question, ...argumentsOf(countParameters) },
    run: countLogs,
  },
  {
    name: 'logs_around',
    description: 'Returns a record and its neighbours, whether or not these match any filter.',
    properties: {
      agent: agents,
      cursor: text('The _cursor of the record.'),
      records_before: howMany('The number of records before it.', neighboursDefault),
      records_after: howMany('The number of records after it.', neighboursDefault),
      ...argumentsOf(['fields']),
    },
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
    const message = `the Model Context Protocol needs the package ${name}, which is not installed: npm install ${name}`;
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
  for (const { name, description, properties, run } of tools) {
    const required = ['agent', 'cursor'].filter((each) => each in properties);
    const schema = { type: 'object', properties, required };
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
    const asked = { archive, settings };
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
