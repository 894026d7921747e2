import { resolve } from 'node:path';
import { isLogstrataError, LogstrataError } from '../../engine/index.js';
import { didYouMean } from '../../agents/definition/suggestion.js';
import { listenerNames, TokenFolder, type ListenerName, type Token } from '../http/token-folder.js';
import { exitDone, expectedError, UsageError } from './failure.js';
import { requireData } from './opened-archive.js';
import { readAgentsFolder, readSettings, type GlobalFlags, type Settings } from './options.js';
import { formatCounted, formatTable, formatTime, printJson, printLines, tell } from './terminal.js';

interface NewFlags extends GlobalFlags {
  readonly agent?: readonly string[];
  readonly listener: ListenerName | 'both';
  readonly expires: number;
  readonly name?: string;
}

interface ClearFlags extends GlobalFlags {
  readonly yes?: boolean;
}

/** Warns of agents that do not exist. It is not an error, as a token may be made before the agent. */
async function warnOfUnknown(settings: Settings, agents: readonly string[]): Promise<void> {
  const found = await readAgentsFolder(settings).catch(expectedError);
  if (!('agents' in found)) return;
  const known = found.agents.map(({ name }) => name);
  for (const agent of agents.filter((each) => !known.includes(each)))
    tell(`logstrata: warning: there is no agent ${JSON.stringify(agent)} yet${didYouMean(agent, known)}`);
}

/** Runs `logstrata token new`. */
export async function makeToken(flags: NewFlags): Promise<number> {
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
  tell(`A running server reads it ${whenRead(settings)}.`);
  return exitDone;
}

/** Opens the tokens of a data folder that is there. */
async function openTokens(
  flags: GlobalFlags,
): Promise<{ folder: TokenFolder; location: string; settings: Settings }> {
  const settings = await readSettings(flags);
  const location = resolve(settings.dataFolder);
  requireData(location);
  return { folder: await TokenFolder.open(location), location, settings };
}

/** When a running server applies changed tokens, if it has this configuration. */
function whenRead({ config }: Settings): string {
  return config.watch ? 'within seconds' : 'when it receives SIGHUP';
}

/** Runs `logstrata token list`. */
export async function listTokens(flags: GlobalFlags): Promise<number> {
  const { folder, location } = await openTokens(flags);
  const tokens = await folder.list();
  if (flags.json === true) await printJson(tokens.map(shownToken));
  else if (tokens.length === 0) await printLines([describeNone(location, await folder.listeners())]);
  else await printLines(tokenTable(tokens));
  return exitDone;
}

/** Runs `logstrata token revoke`. */
export async function revokeToken(flags: GlobalFlags, id: string): Promise<number> {
  const { folder, settings } = await openTokens(flags);
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
    `revoked  ${id}${called} at ${formatTime(revokedMs)} UTC; a running server applies it ${whenRead(settings)}`,
  ]);
  return exitDone;
}

/** Runs `logstrata token clear`. */
export async function clearTokens(flags: ClearFlags): Promise<number> {
  const { folder, settings } = await openTokens(flags);
  const counted = formatCounted(await folder.count(), 'token');
  if (flags.yes !== true)
    throw new UsageError(
      `this removes ${counted}; then everybody who reaches the listeners can query them`,
      '("--yes" confirms; "logstrata token revoke" revokes a single token)',
    );
  await folder.clear();
  await printLines([
    `removed  ${counted}: the listeners require no token; a running server applies it ${whenRead(settings)}`,
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
