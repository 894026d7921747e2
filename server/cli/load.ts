import { existsSync } from 'node:fs';
import { join } from 'node:path';
import {
  archiveFilesMax,
  findFiles,
  foundFile,
  listObjects,
  type FoundFile,
} from '../../agents/archive/found-files.js';
import { GrowingFields } from '../../agents/archive/inferred-fields.js';
import {
  hasColumns,
  type AgentDefinition,
  type ArchiveInput,
  type FieldDefinition,
} from '../../agents/definition/definition.js';
import { EqualFiles } from '../../agents/sources/source-cursor.js';
import { formatOf } from '../../agents/load/load-file.js';
import { describeLacking } from '../../agents/decode/value-writer.js';
import { expandFiles } from '../../agents/load/load-paths.js';
import { loadRejected } from '../../agents/load/load-rejected.js';
import type { FileReport, LoadEvent, LoadProgress, LoadSummary } from '../../agents/load/load-report.js';
import { loadStream } from '../../agents/load/load-stream.js';
import { loadFiles, type LoadFilesOptions, type UntimedFile } from '../../agents/load/load.js';
import { openerOf } from '../../agents/sources/opened-file.js';
import {
  assertNever,
  isLogstrataError,
  isObjectPath,
  LogstrataError,
  type AgentStore,
  type Archive,
  type Codec,
} from '../../engine/index.js';
import { exitDone, exitFailed, messageWithPlace, UsageError } from './failure.js';
import { completed, withObjects, withWorkers } from './opened-archive.js';
import { chooseAgent, readSettings, retentionOf, type GlobalFlags, type Settings } from './options.js';
import type { StopSignals } from './stoppable.js';
import {
  askYesNo,
  canAsk,
  formatBytes,
  formatCount,
  formatCounted,
  formatRate,
  formatSpan,
  linesOf,
  printJson,
  printLines,
  Progress,
  tell,
  withProgress,
} from './terminal.js';

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
        this.#progress = new Progress(`${event.path}${place}`);
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
  const { loaded, restored, known, failed, records, stopped } = summary;
  const ms = summary.seconds * 1000;
  return linesOf(
    loaded > 0 &&
      `${formatCounted(records, 'record')} of ${formatCounted(loaded, 'file')} stored in ${formatSpan(ms)}: ` +
        `${formatBytes(summary.contentBytes)} of log, ${formatRate(records, ms)}, ${formatBytes(summary.bytesOnDisk)} on disk`,
    restored > 0 && `${formatCounted(restored, 'record')} of earlier loads restored`,
    describeLosses(summary, rejectedFolder, fields),
    loaded + restored === 0 &&
      known > 0 &&
      failed === 0 &&
      stopped === null &&
      'nothing to do: everything is already stored',
    failed > 0 && `${formatCounted(failed, 'file')} failed and ${failed === 1 ? 'was' : 'were'} not stored`,
  );
}

/** Lines about input that was not stored as it was: rejected lines, values that became null, and bytes that are not UTF-8. */
function describeLosses(
  counts: Pick<
    LoadSummary,
    | 'rejected'
    | 'notKept'
    | 'unreadableValues'
    | 'unreadable'
    | 'replacedBytes'
    | 'nulBytes'
    | 'skippedLines'
    | 'maskedTexts'
  >,
  rejectedFolder: string,
  fields: readonly FieldDefinition[],
): string[] {
  const { rejected, notKept, unreadableValues, replacedBytes, nulBytes, skippedLines, maskedTexts } = counts;
  const kept = notKept === 0 ? 'kept' : `the first ${formatCount(rejected - notKept)} kept`;
  return linesOf(
    rejected > 0 &&
      `${formatCounted(rejected, 'line')} rejected, ${kept} in ${rejectedFolder}, with the reasons`,
    notKept > 0 &&
      `WARNING  ${formatCounted(notKept, 'rejected line')} were counted and NOT KEPT: rejected.max_bytes of the agent is reached. They are only in ` +
        'the files they were read from. To keep more, raise rejected.max_bytes in the agent file',
    unreadableValues > 0 && [
      `${formatCounted(unreadableValues, 'value')} did not fit the type of ${unreadableValues === 1 ? 'its field' : 'their fields'} and became null:`,
      ...describeUnreadable(counts.unreadable, fields),
    ],
    counts.unreadable.flatMap((each) => (each.lackedBy === undefined ? [] : [describeLacking(each, fields)])),
    replacedBytes > 0 &&
      `${formatCounted(replacedBytes, 'byte sequence')} that ${replacedBytes === 1 ? 'was' : 'were'} not UTF-8 became U+FFFD`,
    nulBytes > 0 &&
      `${formatCounted(nulBytes, 'NUL byte')} before lines left out, as of a file that was truncated`,
    skippedLines > 0 && `${formatCounted(skippedLines, 'line')} skipped, as the agent's file says`,
    maskedTexts > 0 && `${formatCounted(maskedTexts, 'text')} masked`,
  );
}

/** Maximum number of fields that are listed. */
const fieldsShownMax = 10;

function describeUnreadable(
  unreadable: LoadSummary['unreadable'],
  fields: readonly FieldDefinition[],
): string[] {
  const most = unreadable.filter(({ values }) => values > 0).toSorted((a, b) => b.values - a.values);
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
  readonly workers?: number;
}

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
    const complete = await completed(archive, written);
    const { definition, paths, found, refused } = await fittingFiles(archive, complete, named);
    const store = await archive.agent(definition.name, definition.schema, retentionOf(definition));
    const display = new LoadDisplay();
    const { beyondRetention, codec, again, merge } = flags;
    const onEvent = (event: LoadEvent): void => display.show(event);
    const openFile = openerOf(archive.objects);
    const options = { beyondRetention, codec, signal, workers, openFile, onEvent };
    let summary: LoadSummary;
    if (named === 'rejected') {
      summary = await loadRejected({ ...options, ...loadContext(store, definition, settings) });
    } else {
      const acceptUntimed = async (file: UntimedFile): Promise<boolean> => {
        display.stop();
        return flags.force === true || askAboutUntimed(file);
      };
      const formats = new Map(found.map(({ path, format }) => [path, format]));
      const archived = new Set(named.found.map(({ path }) => path));
      const equals = archived.size === 0 ? undefined : new EqualFiles(archived, openFile);
      const chosen = { ...options, again, merge, formats, equals, acceptUntimed };
      summary = await loadIntoStore(store, definition, paths, settings, chosen);
    }
    display.stop();
    if (named === 'rejected' && summary.files.length === 0 && summary.stopped === null)
      tell(`agent "${definition.name}" has no rejected lines in ${settings.dataFolder}: nothing to do`);
    const exitCode = await printSummary(summary, definition, settings, flags);
    return refused > 0 ? exitFailed : exitCode;
  });
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
  const [wrong] = linesOf(
    (paths.length > (isStream ? 1 : 0) || (isStream && flags.rejected === true)) && 'files',
    flags.again === true && '--again',
    flags.merge === true && '--merge',
    isStream && flags.beyondRetention === true && '--beyond-retention',
  );
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
function agentToLoad(settings: Settings, name: string): Promise<AgentDefinition> {
  return chooseAgent(settings, name).catch((error: unknown) => {
    if (!isLogstrataError(error) || error.code !== 'not_found' || !existsSync(name)) throw error;
    const hint = `${name} is a file. The agent comes first: logstrata load AGENT ${name}`;
    throw new UsageError(error.message, hint);
  });
}

/** Runs `logstrata load`: stores files or standard input. */
export async function load(
  flags: LoadFlags,
  { signal }: StopSignals,
  agent: string,
  paths: readonly string[],
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

/** The files to load. */
interface FilesToLoad {
  readonly paths: readonly string[];
  /** Details of the files that were found by the archive's patterns; empty where files were named. */
  readonly found: readonly FoundFile[];
}

/**
 * The files to load: the named files and patterns, or the files of the agent's archive where none is named. Throws a `UsageError` where
 * there is neither; `not_found` where a pattern matches nothing.
 */
async function filesToLoad(
  paths: readonly string[],
  { name, archive }: AgentDefinition,
  settings: Settings,
): Promise<FilesToLoad> {
  if (paths.length > 0) return { paths: await namedFiles(paths, name, settings), found: [] };
  if (archive?.mode !== 'import')
    throw new UsageError(
      'no file is named: give files or patterns, - for standard input, or --rejected',
      'The agent comes first: logstrata load AGENT FILE…',
    );
  return filesOfArchive(archive, settings);
}

async function namedFiles(
  paths: readonly string[],
  agent: string,
  settings: Settings,
): Promise<readonly string[]> {
  const onDisk = paths.filter((path) => !isObjectPath(path));
  const tellSkipped = (path: string): void =>
    tell(
      `warning  ${path} is skipped: its name is not UTF-8; rename it, or: cat … | logstrata load ${agent} -`,
    );
  const files = onDisk.length === 0 ? [] : [...(await expandFiles(onDisk, undefined, tellSkipped))];
  for (const glob of paths.filter(isObjectPath)) files.push(...(await namedObjects(glob, settings)));
  return [...new Set(files)];
}

/** The objects that a pattern matches, in the order of their names. */
async function namedObjects(glob: string, settings: Settings): Promise<readonly string[]> {
  const listed = await withObjects(settings, false, (objects) => listObjects(glob, objects, archiveFilesMax));
  if (listed === undefined) throw new LogstrataError('limit', `${glob} names too many objects`);
  if (listed.problem !== undefined) throw new LogstrataError('io', listed.problem, { path: glob });
  if (listed.objects.length === 0)
    throw new LogstrataError('not_found', `${glob} matches no object`, { path: glob });
  return listed.objects.map(({ path }) => path);
}

async function filesOfArchive(archive: ArchiveInput, settings: Settings): Promise<FilesToLoad> {
  const { files, problems } = await withObjects(settings, false, (objects) =>
    findFiles(archive, settings.dataFolder, objects),
  );
  for (const { message } of problems) tell(`warning  ${message}`);
  if (files.length === 0) {
    const globs = archive.globs.map(({ glob }) => glob).join(', ');
    throw new LogstrataError('not_found', `archive.path (${globs}) names no file`);
  }
  return { paths: files.map(({ path }) => path), found: files };
}

/** Files that fit the agent, and the agent with its fields, to which the columns of the files may have added some. */
interface FittingFiles extends FilesToLoad {
  readonly definition: AgentDefinition;
  /** Number of files that do not fit. Each has been reported on standard error. */
  readonly refused: number;
}

/** Adds the columns of files to the fields of an agent whose own file lists none. Files that do not fit are reported and left out. */
async function fittingFiles(
  archive: Archive,
  definition: AgentDefinition,
  named: FilesToLoad | 'rejected',
): Promise<FittingFiles> {
  const { archive: input } = definition;
  if (named === 'rejected') return { definition, paths: [], found: [], refused: 0 };
  if (input?.infersFields !== true) return { definition, ...named, refused: 0 };
  const { objects } = archive;
  await archive.agent(definition.name, definition.schema, retentionOf(definition));
  const redefine = async ({ name, schema }: AgentDefinition): Promise<void> =>
    void (await archive.redefine(name, schema, retentionOf(definition)));
  const log = { warn: (_facts: object, message: string) => tell(`note     ${message}`) };
  const fields = new GrowingFields({ definition, archive: input, objects, log, redefine });
  const known = new Map(named.found.map((file) => [file.path, file]));
  const fitting = new Map<string, FoundFile>();
  const { length } = named.paths;
  await withProgress(`reading the files for ${definition.name}`, async ({ onFiles }) => {
    for (const [i, path] of named.paths.entries()) {
      const file = known.get(path) ?? (await namedFile(archive, definition, input, path));
      const problem = await fields.take(file, undefined);
      if (problem === undefined) fitting.set(path, file);
      else tell(`problem  ${problem}`);
      onFiles(i + 1, length);
    }
  });
  const [paths, found] = [[...fitting.keys()], [...fitting.values()]];
  return { definition: fields.definition, paths, found, refused: length - paths.length };
}

async function namedFile(
  { objects }: Archive,
  definition: AgentDefinition,
  input: ArchiveInput,
  path: string,
): Promise<FoundFile> {
  const openFile = openerOf(objects);
  const format = await formatOf({ definition, openFile }, path);
  return foundFile(path, format, await openFile(path), input);
}
