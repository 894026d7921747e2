import type { Command } from 'commander';
import { describeIndexOf } from './query.js';
import {
  aheadWarning,
  isAhead,
  isLogstrataError,
  type RetentionOutlook,
  type StoredLoad,
  type StoreStats,
} from '../../engine/index.js';
import type { AttachStatus } from '../../agents/archive/archive-attaching.js';
import type { ImportStatus } from '../../agents/archive/archive-import.js';
import type { CollectStatus } from '../../agents/collect/logs/collect-counts.js';
import {
  type ServerStatus,
  agentOfFile,
  readAgentsFolder,
  describePolicyInForce,
  readSettings,
  type GlobalFlags,
  type Settings,
} from './options.js';
import { exitDone } from './failure.js';
import {
  formatBytes,
  formatCount,
  formatCounted,
  formatSpan,
  formatTime,
  describeRowOrder,
  formatPairs,
  formatTable,
  printJson,
  printLines,
  screenWidth,
  tell,
} from './terminal.js';
import { noRecordsYet, storesOf, withArchive } from './opened-archive.js';

interface StatsFlags extends GlobalFlags {
  readonly json?: boolean;
}

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

const examples = `
Examples:
  $ logstrata stats           one line an agent
  $ logstrata stats nginx     everything about one agent
  $ logstrata stats --json    for scripts: an array of objects`;

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

function collectingDetails({ collecting }: AgentStats): [string, string][] {
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
    ...(rotations === 0 ? [] : [['  rotated by us', `${formatCount(rotations)} times`] as [string, string]]),
    ['  cut off', `${formatCount(truncations)} times${lost}`],
    ...files
      .filter(({ failure }) => failure !== null)
      .map(({ failure }): [string, string] => ['  unreadable', failure!]),
  ];
}

function importingDetails({ importing }: AgentStats): [string, string][] {
  if (importing === undefined) return [];
  const { files, bytes, filesLeft, bytesLeft, filesWaiting, records, rejected, path, msLeft } = importing;
  const { paused } = importing;
  const time = msLeft === null || filesLeft === 0 ? '' : `, about ${formatSpan(msLeft)}`;
  return [
    ['archive', `${formatCounted(files, 'file')}, ${formatBytes(bytes)}`],
    ...(paused === null ? [] : [['  paused', paused] as [string, string]]),
    ['  to be stored', `${formatCounted(filesLeft, 'file')}, ${formatBytes(bytesLeft)}${time}`],
    ...(path === null ? [] : [['  under way', path] as [string, string]]),
    ['  still written to', formatCounted(filesWaiting, 'file')],
    ['  since start', `${formatCounted(records, 'record')}, ${formatCount(rejected)} rejected`],
    ...problemDetails(importing),
  ];
}

function attachedDetails({ attached, attaching }: AgentStats): [string, string][] {
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
    ...(files === 0 ? [] : [['  in order of time', describeRowOrder(attached)] as [string, string]]),
    ...attachingDetails(attaching),
  ];
}

function farDetails({ far }: AgentStats): [string, string][] {
  if (far.units === 0 && far.leftovers === 0) return [];
  const units = `${formatCounted(far.records, 'record')} in ${formatCounted(far.units, 'unit')}`;
  return [
    ['far tier', `${units}, ${formatBytes(far.bytes)} as sent`],
    ['  only there', formatCounted(far.onlyRecords, 'record')],
    ['  last shipped', formatTime(far.shippedMs)],
    ...(far.leftovers === 0
      ? []
      : [['  to be dropped', formatCounted(far.leftovers, 'attempt')] as [string, string]]),
  ];
}

function attachingDetails(attaching: AttachStatus | undefined): [string, string][] {
  if (attaching === undefined) return [];
  const { filesLeft, filesWaiting, paused } = attaching;
  return [
    ...(paused === null ? [] : [['  paused', paused] as [string, string]]),
    ['  to be attached', formatCounted(filesLeft, 'file')],
    ['  still written to', formatCounted(filesWaiting, 'file')],
    ...problemDetails(attaching),
  ];
}

/** Rows with the problems of an archive's files. */
function problemDetails({ problems, problemsListed }: AttachStatus | ImportStatus): [string, string][] {
  const more = problems - problemsListed.length;
  return [
    ...problemsListed.map(({ message }): [string, string] => ['  problem', message]),
    ...(more === 0 ? [] : [['  more problems', formatCount(more)] as [string, string]]),
  ];
}

function details(store: AgentStats): string[] {
  const fields = store.schema.fields.map((field) => `${field.name} ${field.type}${describeIndexOf(field)}`);
  const { segmentsToRefilter: older } = store;
  const refilter = `${formatCounted(older, 'segment')}; \`logstrata compact ${store.agent}\` updates their filters`;
  return [
    ...formatPairs([
      ['agent', store.agent],
      ['records', `${formatCount(store.records)} (${formatCount(store.hotRecords)} of them hot)`],
      ['times (UTC)', `${formatTime(store.timeMinMs)} to ${formatTime(store.timeMaxMs)}`],
      ['cursors', `${store.firstCursor ?? '-'} to ${store.lastCursor ?? '-'}`],
      [
        'sealed',
        `${formatCounted(store.segments, 'segment')}, ${formatCounted(store.rowGroups, 'row group')}, ${formatBytes(store.bytesSealed)}`,
      ],
      ['  of it ZSTD', formatBytes(store.bytesZstd)],
      ['  of it gram filters', formatBytes(store.bytesGramFilters)],
      ['  of it value filters', formatBytes(store.bytesValueFilters)],
      ...(older === 0 ? [] : [['  outdated filters', refilter] as [string, string]]),
      ['hot', `${formatCounted(store.hotFiles, 'file')}, ${formatBytes(store.bytesHot)}`],
      [
        'rejected lines',
        `${formatCount(store.counters.rejected)}, ${formatCount(store.linesRejected)} of them kept in ${formatBytes(store.bytesRejected)}`,
      ],
      ...describePolicyInForce(store.retention),
      ['removed by retention', describeRetired(store.retired)],
      ...store.restorable.map(({ records, paths }): [string, string] => [
        'lost, until loaded again',
        `${formatCounted(records, 'record')} of ${paths.join(', ')}`,
      ]),
      ['unreadable values', formatCount(store.counters.unreadableValues)],
      ['replaced UTF-8 sequences', formatCount(store.counters.replacedBytes)],
      ['input', formatBytes(store.counters.inputBytes)],
      ['source files known', formatCount(store.sources)],
      ...loadDetails(store.loads),
      ['manifest', formatCount(store.manifest)],
      ...collectingDetails(store),
      ...importingDetails(store),
      ...attachedDetails(store),
      ...farDetails(store),
      ...fields.map((field, i): [string, string] => [i === 0 ? 'fields' : '', field]),
    ]),
  ];
}

/** Rows with the newest loads and their ids, by which they can be removed. */
function loadDetails(loads: readonly StoredLoad[]): [string, string][] {
  const newest = loads.toReversed().slice(0, loadsShownMax);
  const lines = newest.map(({ id, nowMs, records, paths }) => {
    const more = paths.length > 1 ? ` and ${formatCounted(paths.length - 1, 'other')}` : '';
    return `${id}  ${formatTime(nowMs)}  ${formatCounted(records, 'record')}  ${paths[0] ?? ''}${more}`;
  });
  const rest = loads.length - newest.length;
  if (rest > 0) lines.push(`and ${formatCounted(rest, 'older one')}; --json lists them all`);
  return lines.map((line, i) => [i === 0 ? 'loads' : '', line]);
}

/** Names of the agents that have a file, even an invalid one; null where the folder can't be read. */
async function agentFiles(settings: Settings): Promise<ReadonlySet<string> | null> {
  try {
    const { agents, problems } = await readAgentsFolder(settings);
    return new Set([...agents.map(({ name }) => name), ...problems.map(({ file }) => agentOfFile(file))]);
  } catch (error) {
    if (isLogstrataError(error)) return null;
    throw error;
  }
}

/** A note on stored agents that have no file any more. */
function notes(stats: readonly AgentStats[], folder: string): string[] {
  const ahead = stats.filter(({ highestPartition }) => isAhead(highestPartition, Date.now()));
  const warnings = ahead.map(
    ({ agent, highestPartition }) => `warning: ${aheadWarning(agent, highestPartition)}`,
  );
  return [...(warnings.length === 0 ? [] : ['', ...warnings]), ...goneNotes(stats, folder)];
}

function goneNotes(stats: readonly AgentStats[], folder: string): string[] {
  const gone = stats.filter(({ hasFile, records }) => hasFile === false && records > 0);
  if (gone.length === 0) return [];
  const names = gone.map(({ agent }) => agent).join(', ');
  return [
    '',
    `note: there is no agent file for ${names} in ${folder}: the records stay stored, but a server`,
    `      does not serve them. To remove them: logstrata remove ${gone[0]!.agent}`,
  ];
}

function describeRetired({ records, segments, bytes, below }: StoreStats['retired']): string {
  if (records === 0) return 'nothing';
  const files = `${formatCounted(segments, 'segment')} of ${formatBytes(bytes)}`;
  return `${formatCounted(records, 'record')} from before ${formatTime(below * 3_600_000)} UTC, ${files}`;
}

async function stats(agent: string | undefined, flags: StatsFlags): Promise<number> {
  const settings = await readSettings(flags);
  return withArchive(settings, 'read', 'stats', async (archive) => {
    const status = (await archive.writerStatus()) as ServerStatus | undefined;
    const found: AgentStats[] = [];
    for (const [name, reason] of Object.entries(status?.leftOut ?? {}))
      if (agent === undefined || agent === name) tell(`problem: ${name} is not served: ${reason}`);
    const files = await agentFiles(settings);
    for (const store of await storesOf(archive, agent)) {
      const collecting = status?.collecting?.[store.name];
      const importing = status?.importing?.[store.name];
      const attaching = status?.attaching?.[store.name];
      const retention = await archive.retentionOutlook(store.name);
      found.push({
        ...(await store.stats()),
        retention,
        hasFile: files?.has(store.name) ?? null,
        loads: await store.loads(),
        ...(collecting === undefined ? {} : { collecting }),
        ...(importing === undefined ? {} : { importing }),
        ...(attaching === undefined ? {} : { attaching }),
      });
    }
    if (flags.json === true) await printJson(agent === undefined ? found : found[0]);
    else if (agent !== undefined)
      await printLines([...details(found[0]!), ...notes(found, settings.agentsFolder)]);
    else if (found.length === 0) await printLines([noRecordsYet(archive)]);
    else await printLines([...summaryTable(found), ...notes(found, settings.agentsFolder)]);
    return exitDone;
  });
}

/** Adds `logstrata stats`: shows the figures of the archive. */
export function addStatsCommand(program: Command): void {
  program
    .command('stats')
    .summary('show what the archive holds')
    .description('Shows what the archive holds: records, times, files and sizes.')
    .argument('[agent]', 'name of an agent (default: all)')
    .option('--json', 'print the result as JSON')
    .addHelpText('after', examples)
    .action(async (agent: string | undefined, _flags: unknown, command: Command) => {
      process.exitCode = await stats(agent, command.optsWithGlobals<StatsFlags>());
    });
}
