import { accessSync, constants, existsSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import type { CollectLog } from '../../agents/collect/logs/collect-log.js';
import { hasColumns, type AgentDefinition } from '../../agents/definition/definition.js';
import type { ReaderConfig } from '../../agents/definition/far-config.js';
import {
  bytesBeforeThreads,
  DamageError,
  isLogstrataError,
  LogstrataError,
  openArchive,
  openFarTier,
  openObjectStorage,
  readerLagMsMax,
  WorkerPool,
  workersDefault,
  type AgentStore,
  type Archive,
  type FarEvent,
  type FarTier,
  type ObjectStorage,
  type StoreStats,
  type Trouble,
} from '../../engine/index.js';
import type { HttpWriterClient } from '../http/http-writer-client.js';
import { didYouMean, listNames } from '../../agents/definition/suggestion.js';
import { exitDone, exitFailed } from './failure.js';
import { describeRetention, logRetention, readSmallText, retentionOf, type Settings } from './options.js';
import {
  formatBytes,
  formatCount,
  formatCounted,
  formatTime,
  printJson,
  printLines,
  tell,
  withProgress,
  type Progress,
} from './terminal.js';

/** Subfolder of the data folder for the cache. No agent can have this name. */
const cacheFolder = '.objects';

/**
 * Calls `run` with the object storage of the configuration. Fetched data is cached in the data folder; where that does not exist or can't
 * be written, in a temporary folder that is removed when `run` has ended.
 *
 * @param mayMakeData true where the command creates a missing data folder anyway
 */
export async function withObjects<T>(
  { config, dataFolder }: Settings,
  mayMakeData: boolean,
  run: (objects: ObjectStorage) => Promise<T>,
): Promise<T> {
  const location = resolve(dataFolder);
  const temporaryFolder =
    mayMakeData || isWritable(location) ? undefined : await mkdtemp(join(tmpdir(), 'logstrata-'));
  const objects = await openObjectStorage({
    ...config.s3,
    cacheFolder: join(temporaryFolder ?? location, cacheFolder),
  });
  try {
    return await run(objects);
  } finally {
    await objects.close();
    if (temporaryFolder !== undefined) await rm(temporaryFolder, { recursive: true, force: true });
  }
}

function isWritable(folder: string): boolean {
  try {
    accessSync(folder, constants.W_OK);
    return true;
  } catch {
    return false;
  }
}

/** How a command uses an archive. */
export interface ArchiveUse {
  readonly workers?: WorkerPool;
  /**
   * True for a command that runs until it is stopped. Background work (merging small segments, retention) is then done while it runs; other
   * commands must not be delayed by it.
   */
  readonly lasts?: boolean;
  /** Receives warnings and events while the archive is open; standard error by default. */
  readonly log?: Pick<CollectLog, 'info' | 'warn'>;
}

const standardErrorLog: Pick<CollectLog, 'info' | 'warn'> = {
  info: (_facts, message) => tell(`logstrata: ${message}`),
  warn: (_facts, message) => tell(`logstrata: warning: ${message}`),
};

/** `write` makes a data folder where there is none; `change` writes to one that is there. */
type OpenMode = 'read' | 'change' | 'write';

/**
 * Opens the archive in the data folder, calls `run`, and closes the archive even if `run` fails. `role` names this process to others that
 * want the archive. `workers` are not closed. Throws `invalid` where the configuration makes this machine a reader; `not_found` without a
 * data folder, except in mode `write`: a mistyped name must not create one.
 */
export async function withArchive<T>(
  settings: Settings,
  mode: OpenMode,
  role: string,
  run: (archive: Archive) => Promise<T>,
  { workers, lasts = false, log = standardErrorLog }: ArchiveUse = {},
): Promise<T> {
  const location = resolve(settings.dataFolder);
  const { reader } = settings.config.server;
  if (reader !== null) {
    const message = `this machine is a reader and stores no records: it queries the writer ${reader.writer} (server.reader). Run the command there`;
    throw new LogstrataError('invalid', message);
  }
  if (mode !== 'write') requireData(location);
  return withFar(settings, async (far) =>
    withObjects(settings, mode === 'write', async (objects) => {
      const archive = await openArchive(location, {
        mode: mode === 'read' ? 'read' : 'write',
        role,
        objects,
        ...(far === undefined ? {} : { far }),
        ...(workers === undefined ? {} : { workers }),
        ...(settings.cacheBytes === null ? {} : { cacheBytes: settings.cacheBytes }),
        graceMs: settings.config.fileInput.graceMs,
        removalDelayMs: settings.config.server.queryTimeoutMs,
        zstdAfterMs: settings.config.storage.zstdAfterMs,
        ...(lasts ? { background: { threads: 1 } as const } : {}),
        anticipates: role === 'serve',
        alone: role === 'repair',
        onWarning: (message) => log.warn({}, message),
        // A command that runs retention itself prints the result itself.
        ...(lasts
          ? { onRetention: (event) => logRetention(log, event), onShipped: (event) => logShipped(log, event) }
          : {}),
      });
      try {
        return await run(archive);
      } finally {
        await archive.close();
      }
    }),
  );
}

/** Like `withArchive`, with a pool of worker threads that ends with it. By default there are as many threads as cores. */
export async function withWorkers<T>(
  settings: Settings,
  mode: OpenMode,
  role: string,
  threads: number | undefined,
  run: (archive: Archive, workers: WorkerPool) => Promise<T>,
  opened: Omit<ArchiveUse, 'workers'> = {},
): Promise<T> {
  const workers = new WorkerPool(threads ?? workersDefault(), undefined, bytesBeforeThreads);
  try {
    return await withArchive(settings, mode, role, (archive) => run(archive, workers), {
      ...opened,
      workers,
    });
  } finally {
    await workers.close();
  }
}

/** Throws `not_found` where there is no data folder. Commands that only look at records must not create a folder with a mistyped name. */
export function requireData(location: string): void {
  if (existsSync(location)) return;
  const message = `the data folder ${location} is not there: load something first, or name another one with --data`;
  throw new LogstrataError('not_found', message, { path: location });
}

/** The agents that a command is for: the named one, or all in the archive. Throws `not_found` for one that has no records. */
async function agentsOf(archive: Archive, name: string | undefined): Promise<string[]> {
  const known = await archive.agents();
  if (name !== undefined && !known.includes(name)) throw noRecords(name, known, archive.location);
  return name === undefined ? known : [name];
}

/** The stores of the agents that a command is for (`agentsOf`). */
export async function storesOf(archive: Archive, name: string | undefined): Promise<AgentStore[]> {
  const stores: AgentStore[] = [];
  for (const each of await agentsOf(archive, name)) stores.push(await archive.agent(each));
  return stores;
}

/** The error for an agent without records, whether or not it has an agent file. */
function noRecords(name: string, known: readonly string[], where: string): LogstrataError {
  const there = known.length === 0 ? 'It is empty' : `There are records of ${listNames(known)}`;
  const message = `there are no records of an agent ${JSON.stringify(name)} in ${where}${didYouMean(name, known)}. ${there}`;
  return new LogstrataError('not_found', message);
}

/** The work of a command on each agent, and how its result is shown. */
export interface EachAgent<Report> {
  /** A verb such as `verifying`, shown before the agent's name while the work runs. */
  readonly doing: string;
  readonly work: (
    agent: string,
    options: { readonly signal: AbortSignal; readonly onProgress: (fraction: number) => void },
    progress: Progress,
  ) => Promise<Report>;
  /** The result of one agent as lines of text. */
  readonly describe: (agent: string, report: Report) => readonly string[];
  /** Whether a result makes the exit code 1; by default none does. */
  readonly isFailure?: (report: Report) => boolean;
}

/**
 * Runs the work on the named agent, or on all. Without `json` the result of each agent is printed as soon as it is known. With `json` one
 * value is printed at the end: an object where an agent was named, else an array. Returns the exit code.
 */
export async function reportEach<Report extends object>(
  archive: Archive,
  agent: string | undefined,
  json: boolean | undefined,
  signal: AbortSignal,
  { doing, work, describe, isFailure = () => false }: EachAgent<Report>,
): Promise<number> {
  const reports: (Report & { readonly agent: string })[] = [];
  for (const name of await agentsOf(archive, agent)) {
    const report = await withProgress(`${doing} ${name}`, (progress) =>
      work(name, { signal, onProgress: progress.onFraction }, progress),
    );
    reports.push({ agent: name, ...report });
    if (json !== true) await printLines(describe(name, report));
  }
  if (json === true) await printJson(agent === undefined ? reports : reports[0]);
  else if (reports.length === 0) await printLines([noRecordsYet(archive)]);
  return reports.some(isFailure) ? exitFailed : exitDone;
}

/** The message for a data folder without records. */
export function noRecordsYet({ location }: Archive): string {
  return `no records in ${location} yet`;
}

/**
 * Calls `run` with the far tier of the configuration; with undefined where none is configured. Connects only when the tier is needed, and
 * closes the connections when `run` has ended.
 */
export async function withFar<T>(
  { config }: Settings,
  run: (far: FarTier | undefined) => Promise<T>,
): Promise<T> {
  const { far } = config.storage;
  if (far === null) return run(undefined);
  const { shards, database, user, passwordFile, afterMs, keepLocalMs, bytesPerSecond } = far;
  const password = passwordFile === null ? '' : readSmallText(passwordFile).replace(/\r?\n$/, '');
  const tier = await openFarTier({
    servers: { shards, database, user, password },
    policy: { afterMs, keepLocalMs },
    bytesPerSecond,
    // A reader on another machine may run its query by a state of the writer that is this much older.
    longestQueryMs: config.server.queryTimeoutMs + readerLagMsMax,
  });
  try {
    return await run(tier);
  } finally {
    await tier.cluster.close();
  }
}

/** Logs that a segment was shipped. */
function logShipped(log: Pick<CollectLog, 'info'>, event: FarEvent): void {
  const { agent, rows, bytes, shard, unit } = event;
  log.info(
    { agent, rows, bytes, shard: shard + 1, unit },
    `agent ${agent}: ${formatCounted(rows, 'record')} shipped to the far tier (${formatBytes(bytes)}, shard ${shard + 1})`,
  );
}

/** An agent that a server answers for. */
export interface ServedAgent {
  /** The definition with all fields (`completed`). */
  readonly definition: AgentDefinition;
  /** The definition as written in the agent's file, which may leave the fields to the files of its archive. */
  readonly written: AgentDefinition;
  readonly store: AgentStore;
}

/** The agents that a server answers for, by name. */
export class ServedAgents<Agent = ServedAgent> extends Map<string, Agent> {
  /**
   * By name, why an agent whose file is valid can't be served: the files of its archive are not there, or can't be used. Every other agent is
   * served. Requests for it are answered with the reason, and it is tried again now and then (`ChangedAgents`).
   */
  readonly leftOut = new Map<string, string>();

  /** The agents that are left out, as reasons why the server is not ready. */
  get troubles(): Trouble[] {
    return [...this.leftOut].map(([agent, reason]) => ({ agent, reason: `it is not served: ${reason}` }));
  }
}

/** Opens the store of every agent with its current fields and retention. Agents whose archives can't be used are left out. */
export async function openAgents(
  archive: Archive,
  definitions: readonly AgentDefinition[],
): Promise<ServedAgents> {
  const served = new ServedAgents();
  for (const definition of definitions) {
    try {
      const complete = await completed(archive, definition);
      const store = await archive.agent(complete.name, complete.schema, retentionOf(complete));
      served.set(complete.name, { definition: complete, written: definition, store });
    } catch (error) {
      if (definition.archive === undefined || !isLogstrataError(error)) throw error;
      served.leftOut.set(definition.name, error.message);
    }
  }
  return served;
}

/**
 * Adds the fields of the archive's files to a definition that lists none. Throws a `ConfigError` where the files have none, and
 * `ArchiveRefusal` where they can't be used.
 *
 * @param looks whether to look at the files also if nothing of them is needed; by default where the agent has no records yet
 */
export async function completed(
  archive: Archive,
  definition: AgentDefinition,
  looks = false,
): Promise<AgentDefinition> {
  const { name, archive: input } = definition;
  if (input === undefined) return definition;
  const isStored = (await archive.agents()).includes(name);
  if (definition.file === undefined && hasColumns(input) && (looks || !isStored)) {
    const { findFiles } = await import('../../agents/archive/found-files.js');
    await findFiles(input, archive.location, archive.objects);
  }
  // An agent that lists its fields is not opened here: that would be with its stored fields, not with these.
  if (!input.infersFields) return definition;
  const { completedDefinition } = await import('../../agents/archive/archive-report.js');
  const stored = isStored ? (await archive.agent(name)).schema : undefined;
  return withProgress(`reading the archive of ${name}`, (progress) =>
    completedDefinition(definition, stored, archive.location, archive.objects, progress.onFiles),
  );
}

/** Agents that are described one by one at the start of a server: no screen shows more, and nobody reads each of a thousand. */
const agentsDescribedMax = 20;

/** The first lines about agents at the start of a server, and how many lines are left out. */
export function firstLines(lines: readonly string[]): readonly string[] {
  const more = lines.length - agentsDescribedMax;
  if (more <= 0) return lines;
  return [
    ...lines.slice(0, agentsDescribedMax),
    `         and ${formatCounted(more, 'line')} more like this`,
  ];
}

/** The statistics of an agent; undefined where its records are damaged: then it is not served, but the others are. */
async function readableStats(store: AgentStore): Promise<StoreStats | undefined> {
  return store.stats().catch((error: unknown) => {
    if (!(error instanceof DamageError)) throw error;
    return undefined;
  });
}

/** The number of records of some agents, and their times. */
function describeRecords(stats: readonly StoreStats[]): string {
  const records = stats.reduce((sum, each) => sum + each.records, 0);
  const timed = stats.filter(({ timeMinMs }) => timeMinMs !== null);
  const first = timed.reduce((min, { timeMinMs }) => Math.min(min, timeMinMs!), Infinity);
  const last = timed.reduce((max, { timeMaxMs }) => Math.max(max, timeMaxMs!), -Infinity);
  const times = timed.length === 0 ? '' : `, ${formatTime(first)} to ${formatTime(last)} UTC`;
  return `${formatCounted(records, 'record')}${times}`;
}

/**
 * Lines about the agents for the start of a server: fields, records, times, retention, and the notes on their files. Many agents have one
 * line together, besides those that are damaged or left out.
 */
export async function describeServedAgents(served: ServedAgents): Promise<string[]> {
  const isMany = served.size > agentsDescribedMax;
  const known: StoreStats[] = [];
  const lines: string[] = [];
  const damaged: string[] = [];
  const notes: string[] = [];
  for (const { definition, store } of served.values()) {
    const { name, fields, retention } = definition;
    const stats = await readableStats(store);
    if (stats === undefined) damaged.push(`agent    ${name}: its records are DAMAGED and not served`);
    else known.push(stats);
    notes.push(...definition.notes.map((note) => `note     ${note}`));
    if (isMany || stats === undefined) continue;
    lines.push(`agent    ${name}: ${formatCounted(fields.length, 'field')}, ${describeRecords([stats])}`);
    lines.push(`         keeps ${describeRetention(retention)}`);
  }
  if (isMany)
    lines.push(
      `agents   ${formatCount(served.size)}: ${describeRecords(known)}`,
      '         "logstrata stats" lists them',
    );
  const leftOut = [...served.leftOut].map(([name, reason]) => `LEFT OUT ${name} is not served: ${reason}`);
  return [...lines, ...firstLines(notes), ...firstLines(damaged), ...firstLines(leftOut)];
}

/**
 * Makes the client of the writer that the configuration names. It connects at the first request. Throws `not_found` or `io` where a file
 * can't be read.
 */
export async function openWriterClient({
  writer,
  tokenFile,
  caFile,
}: ReaderConfig): Promise<HttpWriterClient> {
  const { HttpWriterClient: Client } = await import('../http/http-writer-client.js');
  return new Client({
    address: writer,
    token: tokenFile === null ? null : readSmallText(tokenFile).trim(),
    ca: caFile === null ? null : readSmallText(caFile),
  });
}
