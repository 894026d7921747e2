import { resolve } from 'node:path';
import { InvalidArgumentError, Option, type Command } from 'commander';
import { durationShape, parseDuration } from '../../agents/definition/quantities.js';
import { isAgentName, isLogstrataError, LogstrataError } from '../../engine/index.js';
import { agentsOfTokenMax, tokenNameCharactersMax } from '../http/http-limits.js';
import {
  isTokenId,
  listenerNames,
  type ListenerName,
  type Token,
  TokenFolder,
} from '../http/token-folder.js';
import { didYouMean } from '../http/suggestion.js';
import { readAgentsFolder, readSettings, type GlobalFlags, type Settings } from './options.js';
import { requireData } from './opened-archive.js';
import { exitDone, UsageError } from './failure.js';
import { formatCounted, formatTime, formatTable, printJson, printLines, tell } from './terminal.js';

interface NewFlags extends GlobalFlags {
  readonly agent?: readonly string[];
  readonly listener: ListenerName | 'both';
  readonly expires: number;
  readonly name?: string;
  readonly json?: boolean;
}

interface ListFlags extends GlobalFlags {
  readonly json?: boolean;
}

interface ClearFlags extends GlobalFlags {
  readonly yes?: boolean;
}

const examples = `
Examples:
  $ logstrata token new --name grafana                      all agents, both listeners, for 90 days
  $ logstrata token new --agent nginx --listener query      only queries of one agent
  $ logstrata token list
  $ logstrata token revoke 1f3a90c2
  $ curl -H "Authorization: Bearer $TOKEN" 127.0.0.1:2111/api/query/nginx

A listener requires a token as soon as one was made for it. A running server reads changed tokens when it receives
SIGHUP ("systemctl reload logstrata").`;

const expiresDefault = '90d';

/** Parses a lifetime to milliseconds; Infinity for `never`. */
function readExpires(text: string): number {
  if (text.trim().toLowerCase() === 'never') return Infinity;
  const spanMs = parseDuration(text);
  // A longer lifetime would exceed the range of `Date`.
  if (spanMs !== undefined && spanMs > 0 && spanMs < 8e15) return spanMs;
  throw new InvalidArgumentError(`It is "never", or ${durationShape}.`);
}

function readAgent(text: string, before: readonly string[] = []): readonly string[] {
  if (!isAgentName(text)) throw new InvalidArgumentError('It is not a valid agent name.');
  const agents = [...new Set([...before, text])];
  if (agents.length > agentsOfTokenMax)
    throw new InvalidArgumentError(`A token can name at most ${agentsOfTokenMax} agents.`);
  return agents;
}

function readName(text: string): string {
  if (text.length <= tokenNameCharactersMax && !/\p{Cc}/u.test(text)) return text;
  throw new InvalidArgumentError(`Expected at most ${tokenNameCharactersMax} printable characters.`);
}

function readId(text: string): string {
  if (isTokenId(text)) return text;
  throw new InvalidArgumentError('Expected eight hexadecimal digits, as "logstrata token list" shows them.');
}

/** Warns of agents that do not exist. It is not an error, as a token may be made before the agent. */
async function warnOfUnknown(settings: Settings, agents: readonly string[]): Promise<void> {
  let known: string[];
  try {
    known = (await readAgentsFolder(settings)).agents.map(({ name }) => name);
  } catch (error) {
    if (!isLogstrataError(error)) throw error;
    return;
  }
  for (const agent of agents) {
    if (known.includes(agent)) continue;
    tell(`logstrata: warning: there is no agent ${JSON.stringify(agent)} yet${didYouMean(agent, known)}`);
  }
}

async function makeToken(flags: NewFlags): Promise<number> {
  const settings = await readSettings(flags);
  const { agent: agents = null, listener, expires, name = null } = flags;
  if (agents !== null) await warnOfUnknown(settings, agents);
  const folder = await TokenFolder.open(resolve(settings.dataFolder), { create: true });
  const before = await folder.list();
  const required = await folder.listeners();
  const createdMs = Date.now();
  const { token, text } = await folder.add({
    name,
    agents,
    listeners: listener === 'both' ? listenerNames : [listener],
    createdMs,
    expiresMs: expires === Infinity ? null : createdMs + expires,
    revokedMs: null,
  });
  if (flags.json === true) await printJson({ ...shownToken(token), token: text });
  else await printLines([text]);
  tell(
    `token ${token.id} is for ${describeRights(token)}, ${describeEnd(token)}. It is shown only this once: the server keeps only a hash of it.`,
  );
  for (const each of token.listeners)
    if (!required.includes(each) && !before.some(({ listeners }) => listeners.includes(each)))
      tell(
        `It is the first token for the ${each} listener, which requires a token from everybody from now on.`,
      );
  tell('A running server reads it when it receives SIGHUP.');
  return exitDone;
}

async function listTokens(flags: ListFlags): Promise<number> {
  const settings = await readSettings(flags);
  const location = resolve(settings.dataFolder);
  requireData(location);
  const folder = await TokenFolder.open(location);
  const tokens = await folder.list();
  if (flags.json === true) await printJson(tokens.map(shownToken));
  else if (tokens.length === 0) await printLines([describeNone(location, await folder.listeners())]);
  else await printLines(tokenTable(tokens));
  return exitDone;
}

async function revokeToken(id: string, flags: GlobalFlags): Promise<number> {
  const settings = await readSettings(flags);
  const location = resolve(settings.dataFolder);
  requireData(location);
  const folder = await TokenFolder.open(location);
  const { name, revokedMs } = await folder.revoke(id, Date.now()).catch((error: unknown) => {
    if (!isLogstrataError(error) || error.code !== 'not_found') throw error;
    throw new LogstrataError(
      'not_found',
      `there is no token ${id}: "logstrata token list" lists the tokens`,
      { cause: error },
    );
  });
  const called = name === null ? '' : ` (${name})`;
  await printLines([
    `revoked  ${id}${called} at ${formatTime(revokedMs)} UTC; a running server applies it when it receives SIGHUP`,
  ]);
  return exitDone;
}

async function clearTokens(flags: ClearFlags): Promise<number> {
  const settings = await readSettings(flags);
  const location = resolve(settings.dataFolder);
  requireData(location);
  const folder = await TokenFolder.open(location);
  const counted = formatCounted(await folder.count(), 'token');
  if (flags.yes !== true)
    throw new UsageError(
      `this removes ${counted}; then everybody who reaches the listeners can query them`,
      '("--yes" confirms; "logstrata token revoke" revokes a single token)',
    );
  await folder.clear();
  await printLines([
    `removed  ${counted}: the listeners require no token, once a running server receives SIGHUP`,
  ]);
  return exitDone;
}

function describeNone(location: string, required: readonly ListenerName[]): string {
  if (required.length === 0) return `no tokens in ${location}: its listeners require none`;
  return `no tokens in ${location}, where some were made before: they are still required (${required.join(', ')})`;
}

/** A token in the JSON output, without its digest. */
function shownToken({ id, name, agents, listeners, createdMs, expiresMs, revokedMs }: Token): object {
  return { id, name, agents, listeners, createdMs, expiresMs, revokedMs };
}

/** The date without the time: a row with two full times would be too wide. `--json` has them in milliseconds. */
function formatDay(ms: number): string {
  return new Date(ms).toISOString().slice(0, 'yyyy-mm-dd'.length);
}

function tokenTable(tokens: readonly Token[]): string[] {
  const header = ['id', 'name', 'agents', 'listeners', 'made (UTC)', 'until (UTC)', 'state'];
  const rows = tokens.map((token) => [
    token.id,
    token.name ?? '-',
    token.agents?.join(', ') ?? 'all',
    token.listeners.length === 1 ? token.listeners[0]! : 'both',
    formatDay(token.createdMs),
    token.expiresMs === null ? 'for ever' : formatDay(token.expiresMs),
    stateOf(token),
  ]);
  return formatTable(header, rows);
}

function stateOf({ expiresMs, revokedMs }: Token): string {
  if (revokedMs !== null) return `revoked ${formatDay(revokedMs)}`;
  return expiresMs !== null && expiresMs <= Date.now() ? 'expired' : 'in force';
}

function describeRights({ agents, listeners }: Token): string {
  const which = agents === null ? 'all agents' : agents.join(', ');
  return `${which} at ${listeners.length === 1 ? `the ${listeners[0]} listener` : 'both listeners'}`;
}

function describeEnd({ expiresMs }: Token): string {
  return expiresMs === null ? 'and does not expire' : `until ${formatTime(expiresMs)} UTC`;
}

/** Adds `logstrata token`, which manages the tokens that listeners ask for. */
export function addTokenCommand(program: Command): void {
  const token = program
    .command('token')
    .summary('make, list and revoke the tokens that listeners require')
    .description('Manages the access tokens of a data folder.')
    .addHelpText('after', examples);
  token
    .command('new')
    .description('Makes a token and prints it, only this once, to standard output.')
    .addOption(new Option('--agent <name...>', 'agents that it may read (default: all)').argParser(readAgent))
    .addOption(
      new Option('--listener <name>', 'listener that accepts it')
        .choices([...listenerNames, 'both'])
        .default('both'),
    )
    .addOption(
      new Option('--expires <span>', 'time until it expires, or "never"')
        .argParser(readExpires)
        .default(readExpires(expiresDefault), expiresDefault),
    )
    .addOption(new Option('--name <who>', 'who or what uses it, shown in the list').argParser(readName))
    .option('--json', 'print the result as JSON')
    .action(async (_flags: unknown, command: Command) => {
      process.exitCode = await makeToken(command.optsWithGlobals<NewFlags>());
    });
  token
    .command('list')
    .description('Lists the tokens, including expired and revoked ones.')
    .option('--json', 'print the result as JSON')
    .action(async (_flags: unknown, command: Command) => {
      process.exitCode = await listTokens(command.optsWithGlobals<ListFlags>());
    });
  token
    .command('revoke')
    .description('Revokes a token. It stays in the list.')
    .argument('<id>', 'the token, as "list" shows it', readId)
    .action(async (id: string, _flags: unknown, command: Command) => {
      process.exitCode = await revokeToken(id, command.optsWithGlobals<GlobalFlags>());
    });
  token
    .command('clear')
    .description('Removes all tokens: from then on the listeners require none.')
    .option('--yes', 'do it')
    .action(async (_flags: unknown, command: Command) => {
      process.exitCode = await clearTokens(command.optsWithGlobals<ClearFlags>());
    });
}
