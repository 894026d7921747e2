import { resolve } from 'node:path';
import type { AgentDefinition } from '../../agents/definition/definition.js';
import { FugoDatabase, type FugoTable } from '../../agents/fugo/fugo-database.js';
import {
  importFugo,
  offsetsBeside,
  readOffsets,
  type FugoOffsets,
  type FugoResult,
} from '../../agents/fugo/import-fugo.js';
import { formatCursor, isLogstrataError, type Archive, type Codec } from '../../engine/index.js';
import { listNames } from '../../agents/definition/suggestion.js';
import { exitDone, exitFailed, UsageError } from './failure.js';
import { withWorkers } from './opened-archive.js';
import { readAgentsFolder, readSettings, retentionOf, type GlobalFlags, type Settings } from './options.js';
import type { StopSignals } from './stoppable.js';
import {
  formatBytes,
  formatCount,
  formatCounted,
  linesOf,
  printJson,
  printLines,
  tell,
  withProgress,
} from './terminal.js';

interface ImportFlags extends GlobalFlags {
  readonly agent?: readonly string[];
  /** A path; false where `--no-offsets` was given. */
  readonly offsets?: string | false;
  readonly codec?: Codec;
  readonly workers?: number;
}

/** The result of importing the table of one agent. */
type ImportReport = { readonly agent: string } & (FugoResult | { readonly problem: string });

/** A table of the database, and the agent that it is imported to. */
interface ChosenTable {
  readonly table: FugoTable;
  readonly definition: AgentDefinition;
}

/**
 * Chooses the tables to import. Returns the names of wanted tables without an agent file separately. Throws a `UsageError` for a wanted
 * table that does not exist.
 */
function chooseTables(
  tables: readonly FugoTable[],
  agents: readonly AgentDefinition[],
  wanted: readonly string[] | undefined,
  path: string,
): { readonly chosen: ChosenTable[]; readonly left: string[] } {
  const names = tables.map(({ name }) => name);
  const missing = wanted?.find((name) => !names.includes(name));
  if (missing !== undefined)
    throw new UsageError(
      `there is no table ${JSON.stringify(missing)} in ${path}`,
      names.length === 0 ? 'It has no tables with a cursor' : `It has ${listNames(names)}`,
    );
  const chosen: ChosenTable[] = [];
  const left: string[] = [];
  for (const table of tables) {
    if (wanted?.includes(table.name) === false) continue;
    const definition = agents.find(({ name }) => name === table.name);
    if (definition === undefined) left.push(table.name);
    else chosen.push({ table, definition });
  }
  return { chosen, left };
}

/** Reads up to where the service has read each log. Without the file it warns and returns an empty map. */
async function offsetsFor(path: string, flag: string | false | undefined): Promise<FugoOffsets> {
  if (flag === false) return new Map();
  const file = flag ?? offsetsBeside(path);
  if (file !== undefined) return readOffsets(file);
  tell(
    'logstrata: warning: there is no offsets.yaml beside the database: logs that still exist will be read from their beginning, and ' +
      'their records stored a second time. Name the file with --offsets, or give --no-offsets',
  );
  return new Map();
}

function describeResult({ agent, ...result }: ImportReport): string[] {
  if ('problem' in result) return [`FAILED   ${agent}: ${result.problem}`];
  const { records, firstCursor, lastCursor, bytesOnDisk, logs } = result;
  const shown = (ordinal: number | null): string => formatCursor({ partition: 0, ordinal: ordinal! });
  const stored =
    records === 0
      ? 'nothing new'
      : `${formatCounted(records, 'record')}, ${shown(firstCursor)} to ${shown(lastCursor)}, ${formatBytes(bytesOnDisk)}`;
  const { unreadableValues, replacedBytes, columnsLeft } = result;
  return linesOf(
    `ok       ${agent}: ${stored}${logs === 0 ? '' : `; ${formatCounted(logs, 'log')} will be continued`}`,
    unreadableValues > 0 &&
      `         ${formatCounted(unreadableValues, 'value')} did not fit the type of the field and became null`,
    replacedBytes > 0 && `         ${formatCount(replacedBytes)} bytes that were not UTF-8 became U+FFFD`,
    columnsLeft.length > 0 && `         columns without a field were left out: ${listNames(columnsLeft)}`,
  );
}

/** Imports one table. An error of the table is returned, so that the others are still imported. */
async function importTable(
  archive: Archive,
  database: FugoDatabase,
  { table, definition }: ChosenTable,
  offsets: FugoOffsets,
  { codec }: ImportFlags,
  signal: AbortSignal,
): Promise<ImportReport> {
  const { name: agent, schema } = definition;
  try {
    return await withProgress(`importing ${agent}`, async (progress) => {
      const store = await archive.agent(agent, schema, retentionOf(definition));
      const onProgress = (fraction: number, records: number): void =>
        progress.update(fraction, formatCounted(records, 'record'));
      const result = await importFugo({
        store,
        definition,
        database,
        table,
        offsets,
        codec,
        signal,
        onProgress,
      });
      return { agent, ...result };
    });
  } catch (error) {
    if (signal.aborted || !isLogstrataError(error)) throw error;
    return { agent, problem: error.message };
  }
}

async function importAll(
  database: FugoDatabase,
  path: string,
  settings: Settings,
  flags: ImportFlags,
  signal: AbortSignal,
): Promise<number> {
  const { agents, problems } = await readAgentsFolder(settings);
  for (const problem of problems) tell(`logstrata: warning: ${problem.file}: ${problem.message}`);
  const { chosen, left } = chooseTables(database.tables(), agents, flags.agent, path);
  const offsets = await offsetsFor(path, flags.offsets);
  const reports: ImportReport[] = left.map((agent) => ({
    agent,
    problem: `there is no agent file for this table in ${resolve(settings.agentsFolder)}: copy the file of the service, or choose other tables with --agent`,
  }));
  await withWorkers(settings, 'write', 'import', flags.workers, async (archive) => {
    for (const each of chosen)
      reports.push(await importTable(archive, database, each, offsets, flags, signal));
  });
  if (flags.json === true) await printJson(reports);
  else
    await printLines(
      reports.length === 0 ? [`there is no table to import in ${path}`] : reports.flatMap(describeResult),
    );
  return reports.some((report) => 'problem' in report) ? exitFailed : exitDone;
}

/** Runs `logstrata import fugo`: imports the records of a Fugo service, with their cursors. */
export async function importDatabase(
  flags: ImportFlags,
  { signal }: StopSignals,
  path: string,
): Promise<number> {
  const settings = await readSettings(flags);
  const database = await FugoDatabase.open(path);
  try {
    return await importAll(database, path, settings, flags, signal);
  } finally {
    database.close();
  }
}
