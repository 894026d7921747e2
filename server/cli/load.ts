import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { Command } from 'commander';
import {
  type FieldDefinition,
  hasColumns,
  type AgentDefinition,
} from '../../agents/definition/definition.js';
import type { FileReport, LoadEvent, LoadProgress, LoadSummary } from '../../agents/load/load-report.js';
import {
  assertNever,
  type AgentStore,
  type Archive,
  type Codec,
  isLogstrataError,
  LogstrataError,
} from '../../engine/index.js';
import { messageWithPlace, exitDone, exitFailed, UsageError } from './failure.js';
import {
  formatBytes,
  formatCount,
  formatCounted,
  formatRate,
  formatSpan,
  startProgress,
  type Progress,
  tell,
  withProgress,
  askYesNo,
  canAsk,
  printJson,
  printLines,
} from './terminal.js';
import type { LoadFilesOptions, UntimedFile } from '../../agents/load/load.js';
import { openerOf } from '../../agents/sources/opened-file.js';
import {
  chooseAgent,
  codecOption,
  retentionOf,
  readSettings,
  type GlobalFlags,
  type Settings,
  workersOption,
} from './options.js';
import { withWorkers, completed } from './opened-archive.js';
import { filesToLoad, type FilesToLoad } from './files-to-load.js';
import { stoppable } from './stoppable.js';

/** Milliseconds of work before its speed is used to estimate the time left. */
const timeLeftAfterMs = 500;

/** Shows the progress of a load on standard error: a bar, or lines, for the current file, and a line for each finished file. */
class LoadDisplay {
  #progress: Progress | undefined;
  #phase: LoadProgress['phase'] | undefined;
  #phaseStartMs = 0;
  #phaseStartFraction = 0;

  /** Handles one event of a load. */
  show(event: LoadEvent): void {
    switch (event.kind) {
      case 'start': {
        const place = event.files === 1 ? '' : ` (${event.index + 1} of ${event.files})`;
        this.#progress = startProgress(`${event.path}${place}`);
        this.#phase = undefined;
        break;
      }
      case 'progress':
        this.#update(event);
        break;
      case 'end':
        this.stop();
        describeFile(event.report).forEach(tell);
        break;
      default:
        assertNever(event);
    }
  }

  /** Removes the progress of the current file from the screen. */
  stop(): void {
    this.#progress?.stop();
    this.#progress = undefined;
  }

  #update(event: LoadProgress): void {
    const nowMs = performance.now();
    if (event.phase !== this.#phase) {
      this.#phase = event.phase;
      this.#phaseStartMs = nowMs;
      this.#phaseStartFraction = event.fraction;
    }
    const elapsedMs = nowMs - this.#phaseStartMs;
    this.#progress?.update(event.fraction, this.#describe(event, elapsedMs));
  }

  #describe(event: LoadProgress, elapsedMs: number): string {
    const left = this.#timeLeft(event.fraction, elapsedMs);
    switch (event.phase) {
      case 'checking':
        return `checking what is already stored${left}`;
      case 'reading': {
        const size = `${formatBytes(event.fileBytesRead)} of ${formatBytes(event.fileBytes)}`;
        const rate = elapsedMs < timeLeftAfterMs ? '' : `, ${formatRate(event.records, elapsedMs)}`;
        return `${size}, ${formatCounted(event.records, 'record')}${rate}${left}`;
      }
      case 'writing':
        return `writing ${formatCounted(event.records, 'record')}${left}`;
      default:
        return assertNever(event.phase);
    }
  }

  #timeLeft(fraction: number, elapsedMs: number): string {
    const done = fraction - this.#phaseStartFraction;
    if (elapsedMs < timeLeftAfterMs || done <= 0) return '';
    return `, ${formatSpan((elapsedMs * (1 - fraction)) / done)} left`;
  }
}

/** The result of one file as a line; a line before it where records of earlier loads were restored. */
export function describeFile(file: FileReport): string[] {
  const { path, restored } = file;
  if (restored === 0) return describeOutcome(file);
  const back = formatCounted(restored, 'record');
  const line = `restored ${path}: ${back} that ${restored === 1 ? 'was' : 'were'} lost, under the same cursors`;
  return [line, ...describeOutcome(file)];
}

function describeOutcome(file: FileReport): string[] {
  switch (file.outcome) {
    case 'loaded': {
      const continued =
        file.continuedAt === null ? '' : ` from byte ${formatCount(file.continuedAt)} on, since it has grown`;
      const notKept = file.notKept === 0 ? '' : `, ${formatCount(file.notKept)} of them NOT KEPT`;
      const rejected =
        file.rejected === 0 ? '' : `, ${formatCounted(file.rejected, 'line')} rejected${notKept}`;
      const load = file.load === null ? '' : ` (load ${file.load})`;
      return [
        `loaded   ${file.path}${continued}: ${formatCounted(file.records, 'record')}${rejected}${load}`,
      ];
    }
    case 'known':
      return [`known    ${file.path}: already stored (--again stores it once more)`];
    case 'restored':
      return [];
    case 'still_rejected':
      return [`kept     ${file.path}: ${formatCounted(file.rejected, 'line')} still rejected`];
    case 'empty':
      return [`empty    ${file.path}`];
    case 'failed': {
      const { error } = file;
      const why =
        error === null ? 'unknown reason' : messageWithPlace(error.message, error.path, error.offset);
      return [`failed   ${why}`, `         ${file.path} was not stored`];
    }
    case 'not_stored':
      // The reason is one of the whole load, and is reported once at the end.
      return [`left out ${file.path}: it was not stored`];
    default:
      return assertNever(file.outcome);
  }
}

/** The totals of a load as lines for people. `rejectedFolder` is where rejected lines are kept. */
export function describeSummary(
  summary: LoadSummary,
  rejectedFolder: string,
  fields: readonly FieldDefinition[],
): string[] {
  const lines: string[] = [];
  if (summary.loaded > 0) {
    lines.push(
      `${formatCounted(summary.records, 'record')} of ${formatCounted(summary.loaded, 'file')} stored in ` +
        `${formatSpan(summary.seconds * 1000)}: ${formatBytes(summary.contentBytes)} of log, ` +
        `${formatRate(summary.records, summary.seconds * 1000)}, ${formatBytes(summary.bytesOnDisk)} on disk`,
    );
  }
  if (summary.restored > 0)
    lines.push(`${formatCounted(summary.restored, 'record')} of earlier loads restored`);
  lines.push(...describeLosses(summary, rejectedFolder, fields));
  if (
    summary.loaded + summary.restored === 0 &&
    summary.known > 0 &&
    summary.failed === 0 &&
    summary.stopped === null
  ) {
    lines.push('nothing to do: everything is already stored');
  }
  if (summary.failed > 0)
    lines.push(
      `${formatCounted(summary.failed, 'file')} failed and ${summary.failed === 1 ? 'was' : 'were'} not stored`,
    );
  return lines;
}

/** Lines about input that was not stored as it was: rejected lines, values that became null, and bytes that are not UTF-8. */
function describeLosses(
  counts: Pick<
    LoadSummary,
    'rejected' | 'notKept' | 'unreadableValues' | 'unreadable' | 'replacedBytes' | 'nulBytes'
  >,
  rejectedFolder: string,
  fields: readonly FieldDefinition[],
): string[] {
  const lines: string[] = [];
  if (counts.rejected > 0) {
    const kept = counts.rejected - counts.notKept;
    const keptOf = counts.notKept === 0 ? 'kept' : `the first ${formatCount(kept)} kept`;
    lines.push(
      `${formatCounted(counts.rejected, 'line')} rejected, ${keptOf} in ${rejectedFolder}, with the reasons`,
    );
  }
  if (counts.notKept > 0) {
    lines.push(
      `WARNING  ${formatCounted(counts.notKept, 'rejected line')} were counted and NOT KEPT: rejected.max_bytes of the agent is reached. They are only in ` +
        'the files they were read from. To keep more, raise rejected.max_bytes in the agent file',
    );
  }
  if (counts.unreadableValues > 0) {
    const what = counts.unreadableValues === 1 ? 'its field' : 'their fields';
    lines.push(
      `${formatCounted(counts.unreadableValues, 'value')} did not fit the type of ${what} and became null:`,
      ...describeUnreadable(counts.unreadable, fields),
    );
  }
  if (counts.replacedBytes > 0) {
    lines.push(
      `${formatCounted(counts.replacedBytes, 'byte sequence')} that ${counts.replacedBytes === 1 ? 'was' : 'were'} not UTF-8 became U+FFFD`,
    );
  }
  if (counts.nulBytes > 0)
    lines.push(
      `${formatCounted(counts.nulBytes, 'NUL byte')} before lines left out, as of a file that was truncated`,
    );
  return lines;
}

/** Maximum number of fields that are listed. */
const fieldsShownMax = 10;

function describeUnreadable(
  unreadable: LoadSummary['unreadable'],
  fields: readonly FieldDefinition[],
): string[] {
  const most = unreadable.toSorted((a, b) => b.values - a.values);
  const lines = most.slice(0, fieldsShownMax).map(({ field, values, example }) => {
    const { name, type } = fields[field]!;
    return `  ${name} (${type}): ${formatCount(values)}, the first of them ${JSON.stringify(example)}`;
  });
  return most.length > lines.length ? [...lines, '  and other fields'] : lines;
}

interface LoadFlags extends GlobalFlags {
  readonly again?: boolean;
  readonly merge?: boolean;
  readonly beyondRetention?: boolean;
  readonly codec?: Codec;
  readonly rejected?: boolean;
  readonly force?: boolean;
  readonly failIfNothing?: boolean;
  readonly json?: boolean;
  readonly workers?: number;
}

const examples = `
Examples:
  $ logstrata load nginx access.log                one file
  $ logstrata load nginx '/var/log/nginx/access*'  plain, .gz and .zst alike
  $ journalctl -f -o cat | logstrata load app -    standard input
  $ logstrata load app --rejected     rejected lines, after the agent was corrected
  $ logstrata load shop               the files of the agent's archive
  $ logstrata load shop 's3://logs/shop/*.gz'      objects of an object storage

Each file is stored as a whole or not at all. A file whose content is already
stored is skipped, and of one that has grown only the new part is read, even if
it was renamed or compressed. A server on the same data may keep running.
"remove" undoes a load, by the id that is printed with it.

Exit code 1 if a file failed, if all lines are still rejected, and with
--fail-if-nothing if everything was already stored.`;

/** An error in the JSON output. */
function errorForJson(error: LogstrataError | null): object | null {
  if (error === null) return null;
  return { code: error.code, message: error.message, path: error.path ?? null, offset: error.offset ?? null };
}

type Unreadable = Pick<LoadSummary, 'unreadable'>;

/** The unreadable values in the JSON output, with names of fields instead of indexes. */
function unreadableForJson({ unreadable }: Unreadable, { fields }: AgentDefinition): object {
  return { unreadable: unreadable.map((each) => ({ ...each, field: fields[each.field]!.name })) };
}

function summaryForJson(summary: LoadSummary, agent: AgentDefinition): object {
  return {
    ...summary,
    ...unreadableForJson(summary, agent),
    files: summary.files.map((file) => ({
      ...file,
      ...unreadableForJson(file, agent),
      error: errorForJson(file.error),
    })),
    stopped: errorForJson(summary.stopped),
  };
}

/** The options that all kinds of load share. */
function loadContext(
  store: AgentStore,
  definition: AgentDefinition,
  { config }: Settings,
): Pick<LoadFilesOptions, 'store' | 'definition' | 'timezone' | 'now'> {
  return { store, definition, timezone: config.server.timezone, now: Date.now };
}

/** Loads files into an open store, as `logstrata load` does. */
export async function loadIntoStore(
  store: AgentStore,
  definition: AgentDefinition,
  files: readonly string[],
  settings: Settings,
  options: Omit<LoadFilesOptions, 'store' | 'definition' | 'timezone' | 'now' | 'files'>,
): Promise<LoadSummary> {
  const { loadFiles } = await import('../../agents/load/load.js');
  return loadFiles({ ...options, ...loadContext(store, definition, settings), files });
}

/** Loads files, or the rejected lines of earlier loads, and shows the progress and the result. Returns the exit code. */
async function loadShown(
  written: AgentDefinition,
  named: FilesToLoad | 'rejected',
  settings: Settings,
  flags: LoadFlags,
  signal: AbortSignal,
): Promise<number> {
  return withWorkers(settings, 'write', 'load', flags.workers, async (archive, workers) => {
    const { definition, files, formats, refused } = await chosenFiles(archive, written, named);
    const archived = named === 'rejected' ? [] : named.found.map(({ path }) => path);
    const store = await archive.agent(definition.name, definition.schema, retentionOf(definition));
    const display = new LoadDisplay();
    const { beyondRetention, codec, again, merge } = flags;
    const onEvent = (event: LoadEvent): void => display.show(event);
    const openFile = openerOf(archive.objects);
    const options = { beyondRetention, codec, signal, workers, openFile, onEvent };
    let summary: LoadSummary;
    if (files === 'rejected') {
      const { loadRejected } = await import('../../agents/load/load-rejected.js');
      summary = await loadRejected({ ...options, ...loadContext(store, definition, settings) });
    } else {
      const acceptUntimed = async (file: UntimedFile): Promise<boolean> => {
        display.stop();
        return flags.force === true || askAboutUntimed(file);
      };
      const { EqualFiles } = await import('../../agents/load/equal-files.js');
      const equals = archived.length === 0 ? undefined : new EqualFiles(new Set(archived), openFile);
      const chosen = { ...options, again, merge, formats, equals, acceptUntimed };
      summary = await loadIntoStore(store, definition, files, settings, chosen);
    }
    display.stop();
    if (files === 'rejected' && summary.files.length === 0 && summary.stopped === null)
      tell(`agent "${definition.name}" has no rejected lines in ${settings.dataFolder}: nothing to do`);
    const exitCode = await printSummary(summary, definition, settings, flags);
    return refused > 0 ? exitFailed : exitCode;
  });
}

interface ChosenFiles extends Pick<LoadFilesOptions, 'formats'> {
  readonly definition: AgentDefinition;
  readonly files: readonly string[] | 'rejected';
  /** Number of files that do not fit the agent's fields. Each has been reported. */
  readonly refused: number;
}

/** The files to load, and the agent with all fields, which may come from the columns of the files. */
async function chosenFiles(
  archive: Archive,
  written: AgentDefinition,
  named: FilesToLoad | 'rejected',
): Promise<ChosenFiles> {
  const definition = await completed(archive, written);
  if (named === 'rejected') return { definition, files: named, refused: 0 };
  const formatsOf = (found: FilesToLoad['found']) => new Map(found.map(({ path, format }) => [path, format]));
  if (definition.archive?.infersFields !== true)
    return { definition, files: named.paths, formats: formatsOf(named.found), refused: 0 };
  await archive.agent(definition.name, definition.schema, retentionOf(definition));
  const { withColumns } = await import('./columns-to-load.js');
  const fitting = await withColumns(archive, definition, definition.archive, named);
  const { paths: files, refused } = fitting;
  return { definition: fitting.definition, files, formats: formatsOf(fitting.found), refused };
}

/**
 * Asks whether to store a file without a single readable time. It is usually the result of a wrong time format: all times would be null,
 * and the records would be filed under the current time.
 */
async function askAboutUntimed({ path, records, field, example }: UntimedFile): Promise<boolean> {
  if (!canAsk()) return false;
  const why = example === null ? 'no line has one' : `the first is ${JSON.stringify(example)}`;
  tell(`none of the ${formatCounted(records, 'record')} of ${path} has a readable "${field}": ${why}`);
  return askYesNo('Store them anyway, with the time of the load as their place?');
}

async function printSummary(
  summary: LoadSummary,
  agent: AgentDefinition,
  { dataFolder }: Settings,
  flags: LoadFlags,
): Promise<number> {
  if (flags.json === true) await printJson(summaryForJson(summary, agent));
  else await printLines(describeSummary(summary, join(dataFolder, agent.name, 'rejected'), agent.fields));
  if (summary.stopped !== null) tellStop(summary, summary.stopped);
  const { exitCode, failed, stopped, loaded, restored, rejected } = summary;
  const isKnown = failed === 0 && stopped === null && loaded + restored === 0 && rejected === 0;
  return isKnown && flags.failIfNothing !== true ? exitDone : exitCode;
}

function tellStop({ loaded, files }: LoadSummary, stopped: LogstrataError): void {
  // A failure in the middle of a file has been printed with that file already.
  if (!files.some(({ error }) => error === stopped))
    tell(`logstrata: stopped: ${messageWithPlace(stopped.message, stopped.path, stopped.offset)}`);
  const kept = loaded === 0 ? 'Nothing was stored' : `${formatCounted(loaded, 'file')} stored and kept`;
  tell(`${kept}; run the same command again to load the rest.`);
}

async function loadStandardInput(
  definition: AgentDefinition,
  settings: Settings,
  flags: LoadFlags,
  signal: AbortSignal,
): Promise<number> {
  const read = async (archive: Archive): Promise<number> => {
    const store = await archive.agent(definition.name, definition.schema, retentionOf(definition));
    const { loadStream } = await import('../../agents/load/load-stream.js');
    const summary = await withProgress('standard input', (progress) =>
      loadStream({
        ...loadContext(store, definition, settings),
        signal,
        input: process.stdin,
        onProgress: ({ records, waiting, contentBytes }) => {
          const stored = `${formatCounted(records, 'record')} stored`;
          progress.update(null, `${formatBytes(contentBytes)}, ${stored}, ${waiting} waiting`);
        },
      }),
    );
    const { records, contentBytes, seconds, error } = summary;
    if (flags.json === true) {
      await printJson({
        ...summary,
        ...unreadableForJson(summary, definition),
        error: errorForJson(error),
      });
    } else {
      const rate = formatRate(records, seconds * 1000);
      const stored = `${formatCounted(records, 'record')} stored in ${formatSpan(seconds * 1000)}`;
      await printLines([`${stored}: ${formatBytes(contentBytes)} of log, ${rate}`]);
      const folder = join(settings.dataFolder, definition.name, 'rejected');
      await printLines(describeLosses(summary, folder, definition.fields));
    }
    if (error !== null) tell(`logstrata: ${messageWithPlace(error.message, error.path, error.offset)}`);
    return summary.exitCode;
  };
  // The input may never end, so merging and retention run meanwhile, as in a server.
  return withWorkers(settings, 'write', 'load', flags.workers, read, { lasts: true });
}

/** Throws a `UsageError` for arguments and flags that can't be combined. */
function checkUsage(paths: readonly string[], flags: LoadFlags): void {
  const isStream = paths.includes('-');
  if (!isStream && flags.rejected !== true) return;
  const given = [
    paths.length > (isStream ? 1 : 0) || (isStream && flags.rejected === true) ? 'files' : undefined,
    flags.again === true ? '--again' : undefined,
    flags.merge === true ? '--merge' : undefined,
    isStream && flags.beyondRetention === true ? '--beyond-retention' : undefined,
  ];
  const wrong = given.find((word) => word !== undefined);
  if (wrong === undefined) return;
  const what = flags.rejected === true ? '--rejected' : 'standard input (-)';
  throw new UsageError(`${what} can't be combined with ${wrong}`);
}

/**
 * Throws `invalid` for an agent whose files are queried in place and not stored, and for standard input where the agent reads columns, not
 * lines.
 */
function requireStorable({ name, file, archive }: AgentDefinition, isStream: boolean): void {
  if (file !== undefined) return;
  if (archive?.mode === 'in-place') {
    const message = `agent "${name}" stores no files: those of its archive are queried in place. To attach new files now: logstrata index ${name}. To store them instead: mode: import`;
    throw new LogstrataError('invalid', message);
  }
  if (!isStream || !hasColumns(archive)) return;
  const message = `agent "${name}" reads Parquet and Arrow files, which can't be read from standard input (-). Name a file`;
  throw new LogstrataError('invalid', message);
}

/** The agent to load into. Where the name is a file instead, the error says that the agent comes first. */
async function agentToLoad(settings: Settings, name: string): Promise<AgentDefinition> {
  try {
    return await chooseAgent(settings, name);
  } catch (error) {
    if (!isLogstrataError(error) || error.code !== 'not_found' || !existsSync(name)) throw error;
    throw new UsageError(
      error.message,
      `${name} is a file. The agent comes first: logstrata load AGENT ${name}`,
    );
  }
}

async function load(
  agent: string,
  paths: readonly string[],
  flags: LoadFlags,
  signal: AbortSignal,
): Promise<number> {
  checkUsage(paths, flags);
  const settings = await readSettings(flags);
  const definition = await agentToLoad(settings, agent);
  requireStorable(definition, paths.includes('-'));
  for (const note of definition.notes) tell(`note     ${note}`);
  if (flags.rejected === true) return loadShown(definition, 'rejected', settings, flags, signal);
  if (paths.includes('-')) return loadStandardInput(definition, settings, flags, signal);
  // The files are found before the archive is opened: a mistyped name must not create a data folder.
  const files = await filesToLoad(paths, definition, settings);
  if (signal.aborted) return exitFailed;
  return loadShown(definition, files, settings, flags, signal);
}

/** Adds `logstrata load`: stores files or standard input. */
export function addLoadCommand(program: Command): void {
  program
    .command('load')
    .summary('store log files, or standard input')
    .description('Stores log files: plain, gzip or zstd, recognised by their content. "-" is standard input.')
    .argument('<agent>', 'name of the agent')
    .argument('[files...]', "files or patterns, or - (default: those of the agent's archive)")
    .option('--rejected', 'load the lines that were rejected before')
    .option('--again', 'store files again that are already stored')
    .option('--merge', 'sort all files together and store them as one, or not at all')
    .option(
      '--beyond-retention',
      'also store records older than retention.period, and keep them for that long from now',
    )
    .option('--force', 'store files without any readable time, ordered by the time of the load')
    .option('--fail-if-nothing', 'exit code 1 if everything is already stored')
    .addOption(codecOption('lz4'))
    .addOption(workersOption('parse and write'))
    .option('--json', 'print the result as JSON')
    .addHelpText('after', examples)
    .action(
      stoppable((flags: LoadFlags, { signal }, agent: string, files: string[]) =>
        load(agent, files, flags, signal),
      ),
    );
}
