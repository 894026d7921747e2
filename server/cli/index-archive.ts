import type { Command } from 'commander';
import type { ArchiveAttaching, AttachRound } from '../../agents/archive/archive-attaching.js';
import type { AgentStore, Archive, AttachedStats } from '../../engine/index.js';
import {
  chooseAgent,
  retentionOf,
  readSettings,
  type GlobalFlags,
  type Settings,
  workersOption,
} from './options.js';
import { withWorkers, completed } from './opened-archive.js';
import { stoppable } from './stoppable.js';
import { exitDone, exitFailed, UsageError } from './failure.js';
import {
  formatBytes,
  formatCount,
  formatCounted,
  describeRowOrder,
  withProgress,
  printJson,
  printLines,
  tell,
} from './terminal.js';

interface IndexFlags extends GlobalFlags {
  readonly again?: boolean;
  readonly json?: boolean;
  readonly workers?: number;
}

const examples = `
Examples:
  $ logstrata index web           attach new files of the archive, and index those that have no index
  $ logstrata index web --again   rebuild all indexes, for example after verify has found a damaged one

Files are only read. If the command is stopped, run it again to continue. A server on the same data does
all of this by itself, and may keep running.

Exit code 1 if a file can't be read.`;

/** The result of attaching and indexing files. */
interface IndexReport extends AttachRound {
  readonly indexed: number;
  readonly bytesIndexed: number;
  readonly bytesIndexes: number;
  /** Totals of all attached files. */
  readonly all: AttachedStats;
}

async function attachAndIndex(
  archive: Archive,
  name: string,
  settings: Settings,
  again: boolean,
  signal: AbortSignal,
): Promise<IndexReport> {
  const definition = await completed(archive, await chooseAgent(settings, name));
  if (definition.archive?.mode !== 'in-place') {
    throw new UsageError(
      `agent "${name}" has no archive that is queried in place`,
      `To store its files: logstrata load ${name}`,
    );
  }
  const store = await archive.agent(name, definition.schema, retentionOf(definition));
  const { ArchiveAttaching } = await import('../../agents/archive/archive-attaching.js');
  const attaching = new ArchiveAttaching({
    definition,
    archive: definition.archive,
    store,
    dataFolder: archive.location,
    objects: archive.objects,
    log: { info: () => {}, warn: () => {}, error: (_facts, message) => tell(`problem  ${message}`) },
    now: Date.now,
    redefine: async ({ schema }) => void (await archive.redefine(name, schema, retentionOf(definition))),
  });
  const round = await attach(attaching, name, signal);
  const indexed = await indexAll(store, again, signal);
  const { attached: all } = await store.stats();
  return { ...round, ...indexed, all, problems: [...round.problems, ...indexed.problems] };
}

function attach(attaching: ArchiveAttaching, name: string, signal: AbortSignal): Promise<AttachRound> {
  return withProgress(`attaching the archive of ${name}`, (progress) =>
    attaching.round(signal, (read, files) =>
      progress.update(read / files, `${formatCount(read)} of ${formatCounted(files, 'file')}`),
    ),
  );
}

function indexAll(
  store: AgentStore,
  again: boolean,
  signal: AbortSignal,
): Promise<Pick<IndexReport, 'indexed' | 'bytesIndexed' | 'bytesIndexes' | 'problems'>> {
  return withProgress(`indexing ${store.name}`, async (progress) => {
    const { indexed, problems } = await store.indexAttached({
      signal,
      again,
      onProgress: ({ filesDone, files, bytesDone, bytes }) =>
        progress.update(
          bytes === 0 ? 1 : bytesDone / bytes,
          `${formatCount(filesDone)} of ${formatCounted(files, 'file')}, ${formatBytes(bytesDone)}`,
        ),
    });
    for (const { error } of problems) tell(`problem  ${error.message}`);
    return {
      indexed: indexed.length,
      bytesIndexed: indexed.reduce((sum, file) => sum + file.bytes, 0),
      bytesIndexes: indexed.reduce((sum, file) => sum + file.indexBytes, 0),
      problems: problems.map(({ path, error }) => ({ path, message: error.message })),
    };
  });
}

function describeIndexReport(report: IndexReport): string[] {
  const { attached, rows, moved, removed, waiting, indexed, bytesIndexed, bytesIndexes, all } = report;
  return [
    `attached ${formatCounted(attached, 'file')}, ${formatCounted(rows, 'row')}`,
    ...(moved === 0 ? [] : [`moved    ${formatCounted(moved, 'file')}`]),
    ...(removed === 0 ? [] : [`removed  ${formatCounted(removed, 'file')}`]),
    ...(waiting === 0 ? [] : [`waiting  ${formatCounted(waiting, 'file')}, still being written`]),
    `indexed  ${formatCounted(indexed, 'file')}, ${formatBytes(bytesIndexed)}; the index has ${formatBytes(bytesIndexes)}`,
    ...(all.order.filesUnordered === 0 ? [] : [`in order of time: ${describeRowOrder(all)}`]),
  ];
}

async function index(name: string, flags: IndexFlags, signal: AbortSignal): Promise<number> {
  const settings = await readSettings(flags);
  await chooseAgent(settings, name);
  return withWorkers(settings, 'write', 'index', flags.workers, async (archive) => {
    const report = await attachAndIndex(archive, name, settings, flags.again === true, signal);
    if (flags.json === true) await printJson(report);
    else await printLines(describeIndexReport(report));
    return report.problems.length > 0 ? exitFailed : exitDone;
  });
}

/** Adds `logstrata index`: attaches and indexes the files of an archive that are queried in place. */
export function addIndexCommand(program: Command): void {
  program
    .command('index')
    .summary('attach and index the files of an archive')
    .description('Attaches the files of an archive that is queried in place, and indexes them.')
    .argument('<agent>', 'name of the agent')
    .addOption(workersOption('read and index'))
    .option('--again', 'also index files again that have an index')
    .option('--json', 'print the result as JSON')
    .addHelpText('after', examples)
    .action(stoppable((flags: IndexFlags, { signal }, agent: string) => index(agent, flags, signal)));
}
