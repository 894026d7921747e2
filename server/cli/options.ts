import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { AttachStatus } from '../../agents/archive/archive-attaching.js';
import type { ImportStatus } from '../../agents/archive/archive-import.js';
import type { CollectStatus } from '../../agents/collect/logs/collect-counts.js';
import type { CollectLog, LogFacts } from '../../agents/collect/logs/collect-log.js';
import type { AgentsFolder } from '../../agents/definition/agent-file.js';
import { ConfigError } from '../../agents/definition/config-error.js';
import { defaultConfig, type Config } from '../../agents/definition/config.js';
import type { AgentDefinition } from '../../agents/definition/definition.js';
import {
  type Retention,
  assert,
  assertNever,
  fileSystemError,
  LogstrataError,
  readBounded,
  type OverCount,
  type PolicyCause,
  type RetentionEvent,
  type RetentionOutlook,
  type RetentionPolicy,
  type RetentionRule,
  samePolicy,
  type Schema,
  type Taken,
} from '../../engine/index.js';
import { likelyFilter } from '../../agents/definition/filter-operators.js';
import { didYouMean, listNames } from '../../agents/definition/suggestion.js';
import { parseTimeValue } from '../../agents/definition/time-value.js';
import { UsageError } from './failure.js';
import { formatBytes, formatCount, formatCounted, formatPeriod, formatTime } from './terminal.js';

/** The global options of the program. */
export interface GlobalFlags {
  readonly agents?: string | undefined;
  readonly data?: string | undefined;
  readonly config?: string | undefined;
  /** In bytes; only commands with `--cache` have it. */
  readonly cache?: number | undefined;
  /** Whether the answer is JSON; only commands with `--json` have it. */
  readonly json?: boolean;
}

/** The settings of a command: the configuration, and the folders to use after flags, configuration and defaults are combined. */
export interface Settings {
  readonly config: Config;
  /** Path of the configuration file; undefined where there is none. */
  readonly configPath: string | undefined;
  readonly agentsFolder: string;
  readonly dataFolder: string;
  /** Bound in bytes on the decoded columns in memory; null for a share of the machine's memory. */
  readonly cacheBytes: number | null;
}

const configDefault = 'config.yaml';
const configOfMachine = '/etc/logstrata/config.yaml';
const agentsDefault = 'agents';

/**
 * The path of the configuration file: the value of `--config`, else of `LOGSTRATA_CONFIG`, else `config.yaml` in the working folder, else
 * that in /etc, as far as these exist. A working folder with an agents folder does not use the one in /etc. Undefined where there is none.
 */
export function configPathOf(
  named: string | undefined,
  environment: Readonly<Record<string, string | undefined>>,
  exists: (path: string) => boolean,
): string | undefined {
  const { LOGSTRATA_CONFIG: ofEnvironment = '' } = environment;
  if (named !== undefined) return named;
  if (ofEnvironment !== '') return ofEnvironment;
  if (exists(configDefault)) return configDefault;
  return exists(configOfMachine) && !exists(agentsDefault) ? configOfMachine : undefined;
}

/** Reads the configuration (`configPathOf`), if there is one. Flags override it. Throws a `ConfigError` with all mistakes in the file. */
export async function readSettings(flags: GlobalFlags): Promise<Settings> {
  const configPath = configPathOf(flags.config, process.env, existsSync);
  const config = configPath === undefined ? defaultConfig : await readConfigFile(configPath);
  const beside = configPath === undefined ? agentsDefault : join(dirname(configPath), agentsDefault);
  return {
    config,
    configPath,
    agentsFolder: flags.agents ?? beside,
    dataFolder: flags.data ?? config.storage.path,
    cacheBytes: flags.cache ?? config.storage.cacheBytes,
  };
}

/** Loads the YAML parser, which is not needed without a file, and reads the file. */
async function readConfigFile(path: string): Promise<Config> {
  const { readConfig } = await import('../../agents/definition/config-file.js');
  return readConfig(path);
}

/** Reads the folder of agent files. Throws `not_found` or `io` where it can't be read. */
export async function readAgentsFolder(settings: Settings): Promise<AgentsFolder> {
  const { readAgents } = await import('../../agents/definition/agent-file.js');
  return readAgents(settings.agentsFolder, settings.dataFolder);
}

/**
 * All agents of the folder. Throws a `ConfigError` with the problems of all files where one of them is invalid; `not_found` where there are
 * none.
 */
export async function allAgents(settings: Settings): Promise<readonly AgentDefinition[]> {
  const { agents, problems } = await readAgentsFolder(settings);
  if (problems.length > 0) throw new ConfigError(problems);
  if (agents.length === 0) throw new LogstrataError('not_found', noAgents(settings.agentsFolder));
  return agents;
}

/**
 * The agent `name`. Problems in the files of other agents are ignored. Throws a `ConfigError` for problems in its own file; `not_found`
 * where it has no file.
 */
export async function chooseAgent(settings: Settings, name: string): Promise<AgentDefinition> {
  const { agents, problems } = await readAgentsFolder(settings);
  const found = agents.find((agent) => agent.name === name);
  if (found !== undefined) return found;
  const own = problems.filter((problem) => agentOfFile(problem.file) === name);
  if (own.length > 0) throw new ConfigError(own);
  const known = agents.map((agent) => agent.name);
  const where = settings.agentsFolder;
  const there =
    known.length === 0 ? `There are no agents in ${where}.` : `Agents in ${where}: ${listNames(known)}.`;
  const message = `there is no agent ${JSON.stringify(name)}${didYouMean(name, known)}. ${there}`;
  throw new LogstrataError('not_found', message);
}

/** The name of the agent that a file of the folder defines. */
export function agentOfFile(path: string): string {
  return path.replace(/^.*[\\/]/, '').replace(/\.ya?ml$/, '');
}

/** The message for a folder without agent files, which says how to write one. */
export function noAgents(folder: string): string {
  return (
    `there are no agents in ${folder}: an agent is a file <name>.yaml that describes one kind of log, ` +
    'and "logstrata agent new <name> --log <file>" writes one'
  );
}

/** The folder that the package was installed or cloned to. It contains package.json, `agents/` and `data/samples/`. */
export function packageRoot(): string {
  // Built code is nested deeper than its source, so the folder is searched for upwards.
  let folder = dirname(fileURLToPath(import.meta.url));
  while (!existsSync(join(folder, 'package.json'))) {
    assert(dirname(folder) !== folder, 'no package.json above the code');
    folder = dirname(folder);
  }
  return folder;
}

/** The version in package.json. */
export function packageVersion(): string {
  const manifest = JSON.parse(readFileSync(join(packageRoot(), 'package.json'), 'utf8')) as {
    version: string;
  };
  return manifest.version;
}

/** Default limit of a query, the same as of the HTTP route (`interface.md`). */
export const limitDefault = 100;

/** The values of the options that are parameters or filters of a query, each as often as it was given. */
export interface QueryBounds {
  readonly since?: readonly string[];
  readonly until?: readonly string[];
  readonly limit?: readonly string[];
  readonly after?: readonly string[];
  readonly before?: readonly string[];
  readonly fields?: readonly string[];
}

/**
 * Builds the query string of a command's words, each `field__op=value` with the value as typed (not URL-encoded) or a text to search for, and
 * of its options: filters on the time, and parameters of the same names. So the command line and the route parse queries with the same code,
 * and refuse the same ones. Throws a `UsageError` for a word that looks like a mistyped filter.
 */
export function rawQueryOf(
  words: readonly string[],
  { since, until, ...parameters }: Readonly<Record<string, readonly string[] | undefined>>,
  schema: Schema,
): string {
  const filters = words.map((word): [string, string] => {
    const equals = word.indexOf('=');
    return equals > 0 ? [word.slice(0, equals), word.slice(equals + 1)] : ['*__like', textOf(word, schema)];
  });
  const named = Object.entries({ ...timeFilters({ since, until }, schema), ...parameters });
  const options = named.flatMap(([name, values = []]) =>
    values.map((value): [string, string] => [name, value]),
  );
  return new URLSearchParams([...filters, ...options]).toString();
}

/** A word as a text to search for. */
function textOf(word: string, schema: Schema): string {
  const likely = likelyFilter(word, null, schema);
  if (likely !== undefined || word.includes('__'))
    throw new UsageError(
      `a filter is field__operator=value, not ${JSON.stringify(word)}`,
      likely === undefined
        ? 'For example: status__gte=500, message__like=timeout, time__since=2h'
        : `Write: ${likely}`,
    );
  if (/^(?:or|OR|AND|NOT)$/.test(word))
    throw new UsageError(
      `all words must be found, and ${JSON.stringify(word)} is none between them`,
      "One of two: any='*__like=timeout' any='*__like=refused'; without: '*__not_like=health'; the word itself: '*__like=or'",
    );
  return word;
}

/** The filters of the options for a range of times, on the field that records are placed by. */
function timeFilters(
  options: Readonly<Record<'since' | 'until', readonly string[] | undefined>>,
  schema: Schema,
): Record<string, readonly string[]> {
  const given = Object.entries(options).filter(([, values]) => values !== undefined);
  const field = schema.fields.find(({ type }) => type === 'time');
  if (given.length > 0 && field === undefined)
    throw new UsageError(`--${given[0]![0]} needs a field of type time, and the agent has none`);
  return Object.fromEntries(given.map(([name, values]) => [`${field!.name}__${name}`, values!]));
}

const hourMs = 3_600_000;

/** The retention of an agent whose file has none: records are kept for ever. */
const keptForEver: Retention = { periodMs: null, bytesMax: null, intervalMs: hourMs, graceMs: 24 * hourMs };

/** Why expired records are not removed yet: so old a backlog may be the result of a wrong clock. */
const whyRetentionWaits =
  'some records have been over the retention limit for more than a week, so retention waits';

/** The retention of an agent's file, or the default. */
export function retentionOf({ retention }: AgentDefinition): Retention {
  return retention ?? keptForEver;
}

/** How long, and how much, a policy keeps. */
function describePolicy({ periodMs, bytesMax, rules = [] }: RetentionPolicy): string {
  if (periodMs === null && bytesMax === null && rules.length === 0) return 'all records for ever';
  const period = periodMs === null ? 'records of any age' : `records for ${formatPeriod(periodMs)}`;
  const size = bytesMax === null ? [] : [`at most ${formatBytes(bytesMax)}`];
  return [period, ...size, ...rules.map(describeRule)].join(', ');
}

/** For example `those with level__in=debug,trace for 3d`. */
function describeRule({ where, periodMs }: RetentionRule): string {
  const filters = where.map(({ field, op, values }) => {
    return `${field}__${values.length > 1 ? 'in' : op}=${values.join(',')}`;
  });
  return `those with ${filters.join(' and ')} for ${formatPeriod(periodMs)}`;
}

/** The retention of an agent's file, for people. */
export function describeRetention(retention: Retention | undefined): string {
  const { periodMs, bytesMax, intervalMs, rules = [] } = retention ?? keptForEver;
  if (periodMs === null && bytesMax === null && rules.length === 0)
    return 'all records for ever (there is no retention.period)';
  const period =
    periodMs === null
      ? 'records of any age (there is no retention.period)'
      : `records for ${formatPeriod(periodMs)}`;
  const size = bytesMax === null ? [] : [`at most ${formatBytes(bytesMax)}`];
  return [period, ...size, ...rules.map(describeRule), `looks every ${formatPeriod(intervalMs)}`].join(', ');
}

/** For example `199 of 200 records of 2026-05-07 06:00:00 to 2026-11-22 07:00:00 UTC`. */
function describeOver(over: OverCount, all: number): string {
  return `${formatCount(over.records)} of ${formatCounted(all, 'record')}${describeSpan(over)}`;
}

function describeSpan({ fromMs, toMs }: Pick<OverCount, 'fromMs' | 'toMs'>): string {
  return fromMs === null ? '' : ` of ${formatTime(fromMs)} to ${formatTime(toMs)} UTC`;
}

/** Lines that say which stored records a changed retention would remove, and when. Empty where the retention in force is the wanted one. */
export function describeChange(agent: string, wanted: Retention, outlook: RetentionOutlook): string[] {
  const { kept, over, records } = outlook;
  const { pending } = kept;
  const isWanted = (policy: RetentionPolicy): boolean => samePolicy(policy, wanted);
  const rules =
    (wanted.rules ?? []).length > 0 ? ', and records that a rule names, which are not counted' : '';
  if (isWanted(kept) && pending === undefined) return [];
  const due =
    pending !== undefined && isWanted(pending)
      ? `${formatTime(pending.sinceMs + pending.graceMs)} UTC`
      : `${formatPeriod(wanted.graceMs)} after a server has read the file`;
  const what = isWanted(kept)
    ? `${whyRetentionWaits}: it will remove`
    : `so far it has kept ${describePolicy(kept)}; the change removes`;
  return [
    `${what} ${describeOver(over, records)}${rules},`,
    `but not before ${due}; to remove them now: "logstrata retention apply ${agent}"`,
  ];
}

/** Pairs of a label and a text about the policy in force, and about the one that follows, if any. */
export function describePolicyInForce({ kept, over, records }: RetentionOutlook): [string, string][] {
  const { pending } = kept;
  const now: [string, string] = ['keeps', describePolicy(kept)];
  if (pending === undefined) return [now];
  const due = formatTime(pending.sinceMs + pending.graceMs);
  const what = `${describePolicy(pending)}: removes ${describeOver(over, records)}`;
  return [now, [`  from ${due} UTC`, pending.leapt === true ? `${what}; ${whyRetentionWaits}` : what]];
}

const causes: Readonly<Record<PolicyCause, string>> = {
  back: 'no records are waiting to be removed any more',
  looser: 'the change removes no record that was kept before',
  grace: 'retention.grace has passed',
  applied: '"logstrata retention apply" was run',
  disk_low: 'less than a tenth of the disk is free, so retention.grace is cut short',
};

/** An entry of the log about retention. */
export interface RetentionEntry {
  readonly level: 'info' | 'warn';
  readonly facts: LogFacts;
  readonly message: string;
}

/** The log entry of an event of retention. */
export function retentionEntry(event: RetentionEvent): RetentionEntry {
  const { agent, policy } = event;
  switch (event.kind) {
    case 'taken': {
      const { taken } = event;
      const lines =
        taken.rejectedLines === 0 ? '' : ` and ${formatCounted(taken.rejectedLines, 'rejected line')}`;
      const what = `${formatCounted(taken.records, 'record')}${describeSpan(taken)}${lines}`;
      return {
        level: 'info',
        facts: { agent, ...takenFacts(taken) },
        message: `retention removed ${what}; the agent keeps ${describePolicy(policy)}`,
      };
    }
    case 'in_force':
      return {
        level: event.cause === 'disk_low' ? 'warn' : 'info',
        facts: { agent },
        message: `from now on the agent keeps ${describePolicy(policy)}: ${causes[event.cause]}`,
      };
    case 'pending': {
      const { over, records, inForce, dueMs, leapt } = event;
      const why = leapt
        ? `${whyRetentionWaits}: the clock was set ahead, no records arrived for a long time, or the records that arrived are old. It will remove`
        : `the agent's file keeps ${describePolicy(policy)} now, and has kept ${describePolicy(inForce)} so far. The change removes`;
      const undo = leapt ? 'you can correct the clock' : 'you can undo the change';
      return {
        level: 'warn',
        facts: { agent, records: over.records, of: records, ...spanFacts(over), due: isoTime(dueMs) },
        message:
          `${why} ${describeOver(over, records)}, but not before ${formatTime(dueMs)} UTC. Until then ${undo}; ` +
          `to remove them now: "logstrata retention apply ${agent}"`,
      };
    }
    default:
      return assertNever(event);
  }
}

/** Logs an event of an agent's retention. */
export function logRetention(log: Pick<CollectLog, 'info' | 'warn'>, event: RetentionEvent): void {
  const { level, facts, message } = retentionEntry(event);
  log[level](facts, message);
}

function takenFacts({ records, rejectedLines, segments, bytes, ...span }: Taken): LogFacts {
  return { records, rejectedLines, files: segments, bytes, ...spanFacts(span) };
}

function spanFacts({ fromMs, toMs }: Pick<OverCount, 'fromMs' | 'toMs'>): LogFacts {
  return { from: isoTime(fromMs), to: isoTime(toMs) };
}

function isoTime(timeMs: number | null): string | null {
  return timeMs === null ? null : `${formatTime(timeMs).replace(' ', 'T')}Z`;
}

/** What a server answers to other processes that ask for its status. Each record is by agent. */
export interface ServerStatus {
  readonly collecting?: Readonly<Record<string, CollectStatus>>;
  readonly importing?: Readonly<Record<string, ImportStatus>>;
  readonly attaching?: Readonly<Record<string, AttachStatus>>;
  /** Why agents are not served (`ServedAgents`). */
  readonly leftOut?: Readonly<Record<string, string>>;
}

/** Far more than a password, a token or the certificates of an authority have. */
const textBytesMax = 1024 * 1024;

/** The text of a file that the configuration names, read while the program starts. Throws `not_found`, `io`, and `invalid` where it is too long. */
export function readSmallText(path: string): string {
  let bytes: Buffer;
  try {
    bytes = readBounded(path, textBytesMax, true);
  } catch (error) {
    throw fileSystemError(error, 'read', path);
  }
  if (bytes.length > textBytesMax)
    throw new LogstrataError('invalid', `${path} has more than ${textBytesMax} bytes`, { path });
  return bytes.toString('utf8');
}

/** The flags for a range of times. */
export interface TimeRangeFlags {
  readonly since?: string;
  readonly until?: string;
}

/** Parses a range of times to milliseconds since the epoch, [since, until); null where it has no bound. Throws a `UsageError`. */
export function timeRangeOf(
  { since, until }: TimeRangeFlags,
  { config }: Settings,
): { readonly sinceMs: number | null; readonly untilMs: number | null } {
  const timeOf = (flag: string, text: string | undefined): number | null => {
    if (text === undefined) return null;
    const value = parseTimeValue(text, { now: Date.now(), timezone: config.server.timezone });
    if ('problem' in value) throw new UsageError(`${flag}: ${value.problem}`);
    return Number(value.ms);
  };
  const sinceMs = timeOf('--since', since);
  const untilMs = timeOf('--until', until);
  if (sinceMs !== null && untilMs !== null && sinceMs >= untilMs)
    throw new UsageError('--since must be before --until: since ≤ time < until');
  return { sinceMs, untilMs };
}
