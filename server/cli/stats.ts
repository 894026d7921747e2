import type { AttachStatus } from '../../agents/archive/archive-attaching.js';
import type { ImportStatus } from '../../agents/archive/archive-import.js';
import type { CollectStatus } from '../../agents/collect/logs/collect-counts.js';
import {
  aheadWarning,
  isAhead,
  type RetentionOutlook,
  type StoredLoad,
  type StoreStats,
} from '../../engine/index.js';
import { exitDone, expectedError } from './failure.js';
import { noRecordsYet, storesOf, withArchive } from './opened-archive.js';
import {
  agentOfFile,
  describePolicyInForce,
  readAgentsFolder,
  readSettings,
  type GlobalFlags,
  type ServerStatus,
  type Settings,
} from './options.js';
import { describeIndexOf } from './query.js';
import {
  describeRowOrder,
  formatBytes,
  formatCount,
  formatCounted,
  formatPairs,
  formatSpan,
  formatTable,
  formatTime,
  linesOf,
  printJson,
  printLines,
  screenWidth,
  tell,
  type Pair,
} from './terminal.js';

/** The figures of an agent, with the state of the running server, if there is one. */
interface AgentStats extends StoreStats {
  readonly collecting?: CollectStatus;
  readonly importing?: ImportStatus;
  readonly attaching?: AttachStatus;
  readonly retention: RetentionOutlook;
  /** Whether the agents' folder has a file for it; null where that can't be determined. */
  readonly hasFile: boolean | null;
  readonly loads: readonly StoredLoad[];
}

/** Maximum number of loads that are listed. */
const loadsShownMax = 10;

function summaryTable(stats: readonly StoreStats[]): string[] {
  const header = ['agent', 'records', 'hot', 'rejected', 'segments', 'on disk', 'first (UTC)', 'last (UTC)'];
  const rowsWith = (showTime: (timeMs: number | null) => string): string[][] =>
    stats.map((store) => [
      store.agent,
      formatCount(store.records),
      formatCount(store.hotRecords),
      formatCount(store.counters.rejected),
      formatCount(store.segments),
      formatBytes(store.bytesSealed + store.bytesHot),
      showTime(store.timeMinMs),
      showTime(store.timeMaxMs),
    ]);
  const lines = formatTable(header, rowsWith(formatTime), [1, 2, 3, 4, 5]);
  const width = screenWidth();
  if (width === null || lines.every((line) => line.length <= width)) return lines;
  // On a narrow screen the times are shown without seconds.
  const rows = rowsWith((timeMs) => formatTime(timeMs).replace(/:\d\d$/, ''));
  return formatTable(header, rows, [1, 2, 3, 4, 5], width);
}

function collectingDetails({ collecting }: AgentStats): Pair[] {
  if (collecting === undefined) return [];
  const {
    files,
    lagBytes,
    records,
    bytes,
    rejected,
    notKept,
    rotations,
    truncations,
    truncatedBytes,
    paused,
  } = collecting;
  const keptOf = notKept === 0 ? '' : `, ${formatCount(notKept)} of them not kept`;
  const lost = truncatedBytes === 0 ? '' : `, ${formatBytes(truncatedBytes)} lost`;
  return [
    ['collecting', paused === null ? formatCounted(files.length, 'file') : `paused: ${paused}`],
    [
      '  since start',
      `${formatCount(records)} records, ${formatBytes(bytes)}, ${formatCount(rejected)} rejected${keptOf}`,
    ],
    ['  behind', formatBytes(lagBytes)],
    ['  rotated by us', rotations > 0 && `${formatCount(rotations)} times`],
    ['  cut off', `${formatCount(truncations)} times${lost}`],
    ...files.map(({ failure }): Pair => ['  unreadable', failure]),
  ];
}

function importingDetails({ importing }: AgentStats): Pair[] {
  if (importing === undefined) return [];
  const { files, bytes, filesLeft, bytesLeft, filesWaiting, records, rejected, path, msLeft, paused } =
    importing;
  const time = msLeft === null || filesLeft === 0 ? '' : `, about ${formatSpan(msLeft)}`;
  return [
    ['archive', `${formatCounted(files, 'file')}, ${formatBytes(bytes)}`],
    ['  paused', paused],
    ['  to be stored', `${formatCounted(filesLeft, 'file')}, ${formatBytes(bytesLeft)}${time}`],
    ['  under way', path],
    ['  still written to', formatCounted(filesWaiting, 'file')],
    ['  since start', `${formatCounted(records, 'record')}, ${formatCount(rejected)} rejected`],
    ...problemDetails(importing),
  ];
}

function attachedDetails({ attached, attaching }: AgentStats): Pair[] {
  if (attaching === undefined && attached.files === 0) return [];
  const { files, records, bytes, filesIndexed, bytesIndexed, bytesIndexes } = attached;
  const share =
    bytesIndexed === 0 ? '' : `, ${((100 * bytesIndexes) / bytesIndexed).toFixed(1)} % of those files`;
  return [
    [
      'files in place',
      `${formatCounted(files, 'file')}, ${formatBytes(bytes)}, ${formatCounted(records, 'record')}`,
    ],
    ['  indexed', `${formatCounted(filesIndexed, 'file')}, ${formatBytes(bytesIndexed)}`],
    ['  index', `${formatBytes(bytesIndexes)}${share}`],
    ['  in order of time', files > 0 && describeRowOrder(attached)],
    ...attachingDetails(attaching),
  ];
}

function farDetails({ far }: AgentStats): Pair[] {
  if (far.units === 0 && far.leftovers === 0) return [];
  const units = `${formatCounted(far.records, 'record')} in ${formatCounted(far.units, 'unit')}`;
  return [
    ['far tier', `${units}, ${formatBytes(far.bytes)} as sent`],
    ['  only there', formatCounted(far.onlyRecords, 'record')],
    ['  last shipped', formatTime(far.shippedMs)],
    ['  to be dropped', far.leftovers > 0 && formatCounted(far.leftovers, 'attempt')],
  ];
}

function attachingDetails(attaching: AttachStatus | undefined): Pair[] {
  if (attaching === undefined) return [];
  const { filesLeft, filesWaiting, paused, version } = attaching;
  return [
    ['  table', version],
    ['  paused', paused],
    ['  to be attached', formatCounted(filesLeft, 'file')],
    ['  still written to', formatCounted(filesWaiting, 'file')],
    ...problemDetails(attaching),
  ];
}

/** Rows with the problems of an archive's files. */
function problemDetails({ problems, problemsListed }: AttachStatus | ImportStatus): Pair[] {
  const more = problems - problemsListed.length;
  return [
    ...problemsListed.map(({ message }): Pair => ['  problem', message]),
    ['  more problems', more > 0 && formatCount(more)],
  ];
}

function details(store: AgentStats): string[] {
  const fields = store.schema.fields.map((field) => `${field.name} ${field.type}${describeIndexOf(field)}`);
  const { segmentsToRefilter: older } = store;
  const sealed = `${formatCounted(store.segments, 'segment')}, ${formatCounted(store.rowGroups, 'row group')}`;
  const rejected = `${formatCount(store.counters.rejected)}, ${formatCount(store.linesRejected)} of them kept`;
  return formatPairs([
    ['agent', store.agent],
    ['records', `${formatCount(store.records)} (${formatCount(store.hotRecords)} of them hot)`],
    ['times (UTC)', `${formatTime(store.timeMinMs)} to ${formatTime(store.timeMaxMs)}`],
    ['cursors', `${store.firstCursor ?? '-'} to ${store.lastCursor ?? '-'}`],
    ['sealed', `${sealed}, ${formatBytes(store.bytesSealed)}`],
    ['  of it ZSTD', formatBytes(store.bytesZstd)],
    ['  of it gram filters', formatBytes(store.bytesGramFilters)],
    ['  of it value filters', formatBytes(store.bytesValueFilters)],
    [
      '  outdated filters',
      older > 0 &&
        `${formatCounted(older, 'segment')}; \`logstrata compact ${store.agent}\` updates their filters`,
    ],
    ['hot', `${formatCounted(store.hotFiles, 'file')}, ${formatBytes(store.bytesHot)}`],
    ['rejected lines', `${rejected} in ${formatBytes(store.bytesRejected)}`],
    ...describePolicyInForce(store.retention),
    ['removed by retention', describeRetired(store.retired)],
    ...store.restorable.map(({ records, paths }): Pair => [
      'lost, until loaded again',
      `${formatCounted(records, 'record')} of ${paths.join(', ')}`,
    ]),
    ['unreadable values', formatCount(store.counters.unreadableValues)],
    ['replaced UTF-8 sequences', formatCount(store.counters.replacedBytes)],
    ['input', formatBytes(store.counters.inputBytes)],
    ['source files known', formatCount(store.sources)],
    ...pairsOf('loads', describeLoads(store.loads)),
    ['manifest', formatCount(store.manifest)],
    ...collectingDetails(store),
    ...importingDetails(store),
    ...attachedDetails(store),
    ...farDetails(store),
    ...pairsOf('fields', fields),
  ]);
}

/** Pairs of which only the first has the name. */
function pairsOf(name: string, values: readonly string[]): Pair[] {
  return values.map((value, i) => [i === 0 ? name : '', value]);
}

/** The newest loads with their ids, by which they can be removed. */
function describeLoads(loads: readonly StoredLoad[]): string[] {
  const newest = loads.toReversed().slice(0, loadsShownMax);
  const rest = loads.length - newest.length;
  return linesOf(
    newest.map(({ id, nowMs, records, paths }) => {
      const more = paths.length > 1 ? ` and ${formatCounted(paths.length - 1, 'other')}` : '';
      return `${id}  ${formatTime(nowMs)}  ${formatCounted(records, 'record')}  ${paths[0] ?? ''}${more}`;
    }),
    rest > 0 && `and ${formatCounted(rest, 'older one')}; --json lists them all`,
  );
}

/** Names of the agents that have a file, even an invalid one; null where the folder can't be read. */
async function agentFiles(settings: Settings): Promise<ReadonlySet<string> | null> {
  const found = await readAgentsFolder(settings).catch(expectedError);
  if ('code' in found) return null;
  return new Set([
    ...found.agents.map(({ name }) => name),
    ...found.problems.map(({ file }) => agentOfFile(file)),
  ]);
}

/** Notes on agents that are ahead of the clock, and on those that have no file any more. */
function notes(stats: readonly AgentStats[], folder: string): string[] {
  const ahead = stats.filter(({ highestPartition }) => isAhead(highestPartition, Date.now()));
  const gone = stats.filter(({ hasFile, records }) => hasFile === false && records > 0);
  return linesOf(
    ahead.length > 0 && [
      '',
      ...ahead.map(({ agent, highestPartition }) => `warning: ${aheadWarning(agent, highestPartition)}`),
    ],
    gone.length > 0 && [
      '',
      `note: there is no agent file for ${gone.map(({ agent }) => agent).join(', ')} in ${folder}: the records stay stored, but a server`,
      `      does not serve them. To remove them: logstrata remove ${gone[0]!.agent}`,
    ],
  );
}

function describeRetired({ records, segments, bytes, below }: StoreStats['retired']): string {
  if (records === 0) return 'nothing';
  const files = `${formatCounted(segments, 'segment')} of ${formatBytes(bytes)}`;
  // Rules remove single records, of no hour up to which all are gone.
  const until = below === 0 ? '' : ` from before ${formatTime(below * 3_600_000)} UTC`;
  return `${formatCounted(records, 'record')}${until}, ${files}`;
}

/** Runs `logstrata stats`: shows the figures of the archive. */
export async function stats(flags: GlobalFlags, agent?: string): Promise<number> {
  const settings = await readSettings(flags);
  return withArchive(settings, 'read', 'stats', async (archive) => {
    const status = (await archive.writerStatus()) as ServerStatus | undefined;
    for (const [name, reason] of Object.entries(status?.leftOut ?? {}))
      if (agent === undefined || agent === name) tell(`problem: ${name} is not served: ${reason}`);
    const files = await agentFiles(settings);
    const found: AgentStats[] = [];
    for (const store of await storesOf(archive, agent)) {
      const { name } = store;
      const retention = await archive.retentionOutlook(name);
      const ofServer = (['collecting', 'importing', 'attaching'] as const).flatMap((part) => {
        const known = status?.[part]?.[name];
        return known === undefined ? [] : [[part, known] as const];
      });
      found.push({
        ...(await store.stats()),
        retention,
        hasFile: files?.has(name) ?? null,
        loads: await store.loads(),
        ...Object.fromEntries(ofServer),
      });
    }
    if (flags.json === true) await printJson(agent === undefined ? found : found[0]);
    else if (found.length === 0) await printLines([noRecordsYet(archive)]);
    else {
      const shown = agent === undefined ? summaryTable(found) : details(found[0]!);
      await printLines([...shown, ...notes(found, settings.agentsFolder)]);
    }
    return exitDone;
  });
}
