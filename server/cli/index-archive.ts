import { ArchiveAttaching, type AttachRound } from '../../agents/archive/archive-attaching.js';
import type { AgentStore, Archive, AttachedStats } from '../../engine/index.js';
import { exitDone, exitFailed, UsageError } from './failure.js';
import { completed, withWorkers } from './opened-archive.js';
import { chooseAgent, readSettings, retentionOf, type GlobalFlags, type Settings } from './options.js';
import type { StopSignals } from './stoppable.js';
import {
  describeRowOrder,
  formatBytes,
  formatCount,
  formatCounted,
  linesOf,
  printJson,
  printLines,
  tell,
  withProgress,
} from './terminal.js';

interface IndexFlags extends GlobalFlags {
  readonly again?: boolean;
  readonly workers?: number;
}

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
  const round = await withProgress(`attaching the archive of ${name}`, ({ onFiles }) =>
    attaching.round(signal, onFiles),
  );
  const indexed = await indexAll(store, again, signal);
  const { attached: all } = await store.stats();
  return { ...round, ...indexed, all, problems: [...round.problems, ...indexed.problems] };
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
  const { version, attached, rows, moved, removed, waiting, indexed, bytesIndexed, bytesIndexes, all } =
    report;
  return linesOf(
    version !== null && `table    ${version}`,
    `attached ${formatCounted(attached, 'file')}, ${formatCounted(rows, 'row')}`,
    moved > 0 && `moved    ${formatCounted(moved, 'file')}`,
    removed > 0 && `removed  ${formatCounted(removed, 'file')}`,
    waiting > 0 && `waiting  ${formatCounted(waiting, 'file')}, still being written`,
    `indexed  ${formatCounted(indexed, 'file')}, ${formatBytes(bytesIndexed)}; the index has ${formatBytes(bytesIndexes)}`,
    all.order.filesUnordered > 0 && `in order of time: ${describeRowOrder(all)}`,
  );
}

/** Runs `logstrata index`: attaches and indexes the files of an archive that are queried in place. */
export async function index(flags: IndexFlags, { signal }: StopSignals, name: string): Promise<number> {
  const settings = await readSettings(flags);
  await chooseAgent(settings, name);
  return withWorkers(settings, 'write', 'index', flags.workers, async (archive) => {
    const report = await attachAndIndex(archive, name, settings, flags.again === true, signal);
    if (flags.json === true) await printJson(report);
    else await printLines(describeIndexReport(report));
    return report.problems.length > 0 ? exitFailed : exitDone;
  });
}
