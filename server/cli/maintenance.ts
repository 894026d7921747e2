import { resolve } from 'node:path';
import { shellPath } from '../../agents/sources/paths.js';
import {
  closing,
  isLogstrataError,
  isObjectPath,
  LogstrataError,
  openBackupFolder,
  openBackupObjects,
  type Archive,
  type BackupFolder,
  type BackupResult,
  type Codec,
  type CompactResult,
  type Damage,
  type FarReport,
  type FetchResult,
  type LostRecords,
  type RemovalPreview,
  type RemovalRequest,
  type RepairReport,
  type Restorable,
  type Schema,
  type ShipResult,
  type VerifyReport,
} from '../../engine/index.js';
import { TokenFolder } from '../http/token-folder.js';
import { exitDone, exitFailed, expectedError, UsageError } from './failure.js';
import { reportEach, storesOf, withArchive } from './opened-archive.js';
import {
  chooseAgent,
  describeRetention,
  readAgentsFolder,
  readSettings,
  retentionEntry,
  retentionOf,
  timeRangeOf,
  type GlobalFlags,
  type Settings,
  type TimeRangeFlags,
} from './options.js';
import type { StopSignals } from './stoppable.js';
import {
  askYesNo,
  canAsk,
  formatBytes,
  formatCount,
  formatCounted,
  formatTime,
  linesOf,
  printJson,
  printLines,
  tell,
  withProgress,
} from './terminal.js';

/** Maximum number of position ranges that are listed per file or damage; the JSON output has all. */
const rangesShownMax = 8;
/** Maximum number of files that are listed in a question, and of loads that can be restored. */
const shownMax = 20;

/**
 * The schemas of the agents whose files list the fields. Rewritten and rebuilt segments get the filters that these schemas ask for. Records can
 * be maintained without the files.
 */
async function fieldsOfFiles(settings: Settings): Promise<ReadonlyMap<string, Schema>> {
  const found = await readAgentsFolder(settings).catch(expectedError);
  const agents = 'agents' in found ? found.agents : [];
  const definite = agents.filter(({ archive }) => archive?.infersFields !== true);
  return new Map(definite.map(({ name, schema }) => [name, schema]));
}

/** At most so many lines, and a line about the others, which the JSON output has. */
function firstOf(lines: readonly string[], most: number, noun: string, indent: string): string[] {
  const more = lines.length - most;
  if (more <= 0) return [...lines];
  return [...lines.slice(0, most), `${indent}and ${formatCounted(more, noun)}; --json lists them all`];
}

/** Lines with the commands that restore lost records, and the number of records of each. */
function describeRestorable(agent: string, restorable: readonly Restorable[]): string[] {
  const lines = restorable.map(({ records, paths }) => {
    const command = ['logstrata load', agent, ...paths.map(shellPath)].join(' ');
    return `lost     ${agent}: ${formatCounted(records, 'record')}; to restore them: ${command}`;
  });
  const more = lines.length - shownMax;
  if (more <= 0) return lines;
  const rest = `         and those of ${formatCounted(more, 'more load')}; --json lists them all`;
  return [...lines.slice(0, shownMax), rest];
}

interface VerifyFlags extends GlobalFlags {
  readonly far?: boolean;
  readonly repair?: boolean;
  readonly yes?: boolean;
}

function describeDamage(damage: Damage): string[] {
  const place = linesOf(
    damage.offset !== null && `byte ${damage.offset}`,
    damage.rowGroup !== null && `row group ${damage.rowGroup}`,
    damage.column !== null && `column ${damage.column}`,
  );
  const where = place.length === 0 ? damage.file : `${damage.file} (${place.join(', ')})`;
  const ranges = damage.positions.map(
    ({ first, last, records }) => `           ${first} … ${last} (${formatCounted(records, 'record')})`,
  );
  return [
    `DAMAGED  ${where}: ${damage.reason}`,
    damage.records === 0
      ? '         no record is lost'
      : damage.records === null
        ? '         loses records; a repair shows how many'
        : `         loses ${formatCounted(damage.records, 'record')}:`,
    ...(damage.records === 0 ? [] : firstOf(ranges, rangesShownMax, 'more range', '           ')),
  ];
}

function describeVerified(agent: string, report: VerifyReport): string[] {
  const { files, bytes, records, damages, restorable, unnamedFiles } = report;
  const size = `${formatCounted(files, 'file')}, ${formatBytes(bytes)}, ${formatCounted(records, 'record')}`;
  return [
    ...(damages.length === 0
      ? [`ok       ${agent}: ${size}`]
      : [
          ...damages.flatMap(describeDamage),
          `DAMAGED  ${agent}: ${formatCounted(damages.length, 'damage')} in ${size}`,
          `repair   ${agent}: stop the server, then run: logstrata verify ${agent} --repair (it keeps all intact records)`,
        ]),
    ...describeRestorable(agent, restorable),
    ...unnamedFiles.map((file) => `note     ${agent}: ${file} belongs to no record and is never read`),
  ];
}

function describeFar(agent: string, report: FarReport): string[] {
  const { units, records, replicas, damages, strays } = report;
  const size = `${formatCounted(records, 'record')} in ${formatCounted(units, 'unit')} on ${formatCounted(replicas, 'server')}`;
  return [
    ...damages.map(({ url, unit, reason }) => `DAMAGED  ${url}: unit ${unit}: ${reason}`),
    `${damages.length === 0 ? 'ok      ' : 'DAMAGED '} ${agent}: ${size}`,
    ...strays.map(
      ({ url, partition, rows }) =>
        `note     ${agent}: ${url} has ${formatCounted(rows, 'row')} of attempt ${partition}, which is never read`,
    ),
  ];
}

/** Whether to adopt files that no manifest lists: true with `--yes`, else the user is asked. Throws `invalid` where nobody can be asked. */
async function askToAdopt(
  agent: string,
  files: readonly string[],
  yes: boolean | undefined,
): Promise<boolean> {
  if (yes === true) return true;
  const what = `${formatCounted(files.length, 'file')} of agent ${agent} that no manifest lists`;
  if (!canAsk()) {
    throw new LogstrataError(
      'invalid',
      `there ${files.length === 1 ? 'is' : 'are'} ${what}, and no terminal to ask whether to adopt them: --yes adopts them. Nothing was changed`,
    );
  }
  for (const file of files.slice(0, shownMax)) tell(`  ${file}`);
  if (files.length > shownMax) tell(`  and ${files.length - shownMax} more`);
  return askYesNo(`Adopt ${what}? Otherwise they are put aside.`);
}

function describeRange({ first, last, records, fromMs, untilMs }: LostRecords): string {
  const count = records === null ? 'an unknown number of records' : formatCounted(records, 'record');
  const times = untilMs === 0 ? 'of unknown times' : `${formatTime(fromMs)} to ${formatTime(untilMs)} UTC`;
  return `${count}: ${first === null || last === null ? times : `${first} … ${last}, ${times}`}`;
}

/** What is lost of one file for one reason: the total in one line, and the single ranges below where there are several. */
function describeLost(ranges: readonly LostRecords[]): string[] {
  const { file, reason } = ranges[0]!;
  const { last, untilMs } = ranges.at(-1)!;
  const all = { ...ranges[0]!, last, untilMs };
  const records = ranges.reduce((sum, range) => sum + (range.records ?? 0), 0);
  const total = describeRange(ranges.length === 1 ? all : { ...all, records });
  const single = ranges.length === 1 ? [] : ranges.map((range) => `           ${describeRange(range)}`);
  return [
    `LOST     ${total}`,
    `         ${file}: ${reason}`,
    ...firstOf(single, rangesShownMax, 'more range', '           '),
  ];
}

/** Groups losses by file and reason. Only neighbours whose cursors are known are grouped. */
function groupsOf(lost: readonly LostRecords[]): LostRecords[][] {
  const groups: LostRecords[][] = [];
  for (const each of lost) {
    const last = groups.at(-1)?.at(-1);
    const goesOn = last?.file === each.file && last.reason === each.reason;
    if (goesOn && last.first !== null && each.first !== null) groups.at(-1)!.push(each);
    else groups.push([each]);
  }
  return groups;
}

function describeRebuilt(agent: string, { basedOn }: RepairReport): string[] {
  const isAlone = basedOn === null;
  const sources = isAlone
    ? 'it is unknown which log files were loaded: a file that is loaded again is stored a second time'
    : 'files that were loaded after that manifest may be stored a second time if they are loaded again';
  return [
    `rebuilt  ${agent}: the manifest, ${isAlone ? 'from the files alone' : `from manifest ${basedOn} and the files`}`,
    `note     ${agent}: ${sources}`,
  ];
}

function describeRepaired(agent: string, report: RepairReport): string[] {
  const { changed, manifest, adopted, quarantined, lost, lostForGood } = report;
  const records = formatCounted(report.records, 'record');
  const restorable = describeRestorable(agent, report.restorable);
  if (!changed) return [`ok       ${agent}: nothing to repair, ${records}`, ...restorable];
  return linesOf(
    manifest === 'rebuilt' && describeRebuilt(agent, report),
    adopted.length > 0 &&
      `adopted  ${agent}: ${formatCounted(adopted.length, 'file')} that no manifest listed`,
    quarantined.map(({ file, to, reason }) => `aside    ${file} -> ${to}: ${reason}`),
    groupsOf(lost).flatMap(describeLost),
    `repaired ${agent}: ${records} can be queried`,
    restorable,
    lostForGood > 0 &&
      `note     ${agent}: ${formatCounted(lostForGood, 'lost record')} came from no known load (a followed log, standard input, ` +
        `rejected lines, or an older version), so no command can restore just those`,
  );
}

/** Runs `logstrata verify`: reads every byte of the archive and checks it against the checksums. */
export async function verify(flags: VerifyFlags, { signal }: StopSignals, agent?: string): Promise<number> {
  const settings = await readSettings(flags);
  if (flags.far === true && flags.repair === true)
    throw new UsageError('--far cannot be combined with --repair', 'For example: logstrata verify --far');
  if (flags.yes === true && flags.repair !== true && flags.far !== true)
    throw new UsageError('--yes needs --repair', 'For example: logstrata verify --repair --yes');
  if (flags.repair === true) {
    const fields = await fieldsOfFiles(settings);
    return withArchive(settings, 'change', 'repair', (archive) =>
      reportEach(archive, agent, flags.json, signal, {
        doing: 'reading',
        work: (name, options, progress) =>
          archive.repair(name, {
            ...options,
            schema: fields.get(name),
            adopt: (files) => {
              progress.stop();
              return askToAdopt(name, files, flags.yes);
            },
          }),
        describe: describeRepaired,
        isFailure: ({ lost }) => lost.length > 0,
      }),
    );
  }
  return withArchive(settings, 'read', 'verify', (archive) =>
    flags.far === true
      ? reportEach(archive, agent, flags.json, signal, {
          doing: 'counting',
          work: async (name, options) => (await archive.agent(name)).verifyFar(options),
          describe: describeFar,
          isFailure: ({ damages }) => damages.length > 0,
        })
      : reportEach(archive, agent, flags.json, signal, {
          doing: 'verifying',
          work: (name, options) => archive.verify(name, options),
          describe: describeVerified,
          isFailure: ({ damages }) => damages.length > 0,
        }),
  );
}

interface CompactFlags extends GlobalFlags {
  readonly codec?: Codec;
}

function describeCompacted(agent: string, result: CompactResult): string[] {
  const before = `${formatCounted(result.segmentsBefore, 'segment')} (${formatBytes(result.bytesBefore)})`;
  const after = `${formatCounted(result.segmentsAfter, 'segment')} (${formatBytes(result.bytesAfter)})`;
  return [before === after ? `${agent}: nothing to do, ${after}` : `${agent}: ${before} -> ${after}`];
}

/** Runs `logstrata compact`: seals hot records and merges small segments. */
export async function compact(flags: CompactFlags, { signal }: StopSignals, agent?: string): Promise<number> {
  const settings = await readSettings(flags);
  const { codec } = flags;
  const fields = await fieldsOfFiles(settings);
  return withArchive(settings, 'change', 'compact', (archive) =>
    reportEach(archive, agent, flags.json, signal, {
      doing: 'compacting',
      work: async (name, options) =>
        (await archive.agent(name, fields.get(name))).compact({ ...options, codec }),
      describe: describeCompacted,
    }),
  );
}

interface BackupFlags extends GlobalFlags {
  readonly agent?: string;
}

/** The result of copying an agent; `problem` where that failed. */
type BackupReport = BackupResult | { readonly problem: string };

function describeCopied(agent: string, report: BackupReport): string[] {
  if ('problem' in report) return [`FAILED   ${agent}: ${report.problem}`];
  const { records, files, bytes, filesCopied, bytesCopied, filesRemoved } = report;
  const all = `${formatCounted(records, 'record')} in ${formatCounted(files, 'file')}, ${formatBytes(bytes)}`;
  const copied =
    filesCopied === 0
      ? 'nothing new'
      : `${formatCounted(filesCopied, 'file')} (${formatBytes(bytesCopied)}) copied`;
  const removed = filesRemoved === 0 ? '' : `, ${formatCounted(filesRemoved, 'old file')} removed`;
  return [`ok       ${agent}: ${all}; ${copied}${removed}`];
}

/** Runs `logstrata backup`: copies a data folder, even while a server writes to it. */
export async function backup(flags: BackupFlags, { signal }: StopSignals, folder: string): Promise<number> {
  const settings = await readSettings(flags);
  return withArchive(settings, 'read', 'backup', async (archive) => {
    return closing(openTarget(folder, archive), async (target) => {
      const code = await reportEach<BackupReport>(archive, flags.agent, flags.json, signal, {
        doing: 'copying',
        work: async (name, options) => {
          try {
            return await (await archive.agent(name)).backup(target, options);
          } catch (error) {
            // An error of one agent must not keep the others from being copied.
            if (signal.aborted || !isLogstrataError(error)) throw error;
            return { problem: error.message };
          }
        },
        describe: describeCopied,
        isFailure: (report) => 'problem' in report,
      });
      if (flags.agent !== undefined) return code;
      // Without the tokens a server on the copy would let everybody in.
      await TokenFolder.of(target.directory).copy(await TokenFolder.open(archive.location));
      const here = await archive.agents();
      const gone = (await target.agents()).filter((name) => !here.includes(name));
      if (flags.json !== true)
        await printLines(
          gone.map((name) => `note     ${name}: no longer in this data folder; its copy stays unchanged`),
        );
      return code;
    });
  });
}

/** Opens the target of the copy: a folder, or the objects below a prefix. */
async function openTarget(place: string, { location, objects }: Archive): Promise<BackupFolder> {
  if (!isObjectPath(place) || objects === undefined) return openBackupFolder(resolve(place), location);
  if (!/^s3:\/\/[^/]+\/[^/]/.test(place))
    throw new UsageError(
      `${place} has no prefix: a copy in a bucket needs one, such as s3://bucket/prefix`,
      'For example: s3://backups/logs',
    );
  return openBackupObjects(place, objects);
}

interface RemoveFlags extends GlobalFlags, TimeRangeFlags {
  readonly load?: string;
  readonly ahead?: boolean;
  readonly yes?: boolean;
}

/** The records that the flags select. Throws a `UsageError` for flags that can't be combined. */
function removalOf(flags: RemoveFlags, settings: Settings): RemovalRequest {
  const { load, since, until, ahead } = flags;
  if (load !== undefined && (since !== undefined || until !== undefined))
    throw new UsageError(
      '--load cannot be combined with --since and --until: give a load or a range of times',
    );
  if (ahead === true && load !== undefined)
    throw new UsageError('--ahead cannot be combined with --load: give one of them');
  if (ahead === true) return { kind: 'ahead', ...timeRangeOf(flags, settings) };
  if (load !== undefined) return { kind: 'load', id: load };
  if (since === undefined && until === undefined) return { kind: 'all' };
  return { kind: 'times', ...timeRangeOf(flags, settings) };
}

function describePreview(agent: string, preview: RemovalPreview): string[] {
  const { records, rejectedLines, bytes, fromMs, untilMs, rewritten, paths, isLowered } = preview;
  return linesOf(
    `${formatCounted(records, 'record')} of agent ${agent}, about ${formatBytes(bytes)} on the disk`,
    fromMs !== null &&
      untilMs !== null &&
      `  of the hours from ${formatTime(fromMs)} to ${formatTime(untilMs)} UTC`,
    isLowered &&
      `  the clock says ${formatTime(Date.now())} UTC; new records will be placed by it, before any that stay in later hours`,
    rejectedLines > 0 && `  and ${formatCounted(rejectedLines, 'rejected line')}`,
    rewritten > 0 && `  ${formatCounted(rewritten, 'segment')} that hold other records too will be rewritten`,
    paths.slice(0, 5).map((path) => `  loaded from ${path}`),
    paths.length > 5 && `  and from ${formatCount(paths.length - 5)} more`,
  );
}

/** Whether the user wants to remove the records. Throws `invalid` where nobody can be asked. */
async function confirmsRemoval({ yes }: RemoveFlags): Promise<boolean> {
  if (yes === true) return true;
  if (canAsk()) return askYesNo('Remove them for good?');
  const message = 'no terminal to ask for confirmation: --yes removes without asking. Nothing was removed';
  throw new LogstrataError('invalid', message);
}

/** Runs `logstrata remove`: removes records. */
export async function remove(flags: RemoveFlags, { signal }: StopSignals, agent: string): Promise<number> {
  const settings = await readSettings(flags);
  const removal = removalOf(flags, settings);
  return withArchive(settings, 'change', 'remove', async (archive) => {
    const store = (await storesOf(archive, agent))[0]!;
    const preview = await store.previewRemoval(removal);
    if (preview.records + preview.rejectedLines === 0 && !preview.isLowered) {
      if (flags.json === true) await printJson({ ...preview, removed: false });
      else await printLines([`nothing to remove: no record of agent ${agent} matches`]);
      return exitDone;
    }
    if (flags.json !== true) describePreview(agent, preview).forEach(tell);
    if (!(await confirmsRemoval(flags))) {
      tell('nothing was removed');
      return exitFailed;
    }
    const removed = await withProgress(`removing records of ${agent}`, ({ onFraction: onProgress }) =>
      store.remove(removal, { signal, onProgress }),
    );
    if (flags.json === true) await printJson({ ...removed, removed: true });
    else await printLines([`removed ${formatCounted(removed.records, 'record')} of agent ${agent}`]);
    return exitDone;
  });
}

/** Runs `logstrata retention apply`: applies a stricter retention at once. */
export async function applyRetention(flags: GlobalFlags, name: string): Promise<number> {
  const settings = await readSettings(flags);
  const retention = retentionOf(await chooseAgent(settings, name));
  return withArchive(settings, 'change', 'retention', async (archive) => {
    await storesOf(archive, name);
    const events = await archive.applyRetention(name, retention);
    if (flags.json === true) await printJson(events);
    else if (events.length > 0) await printLines(events.map((event) => retentionEntry(event).message));
    else await printLines([`nothing to do: ${name} keeps ${describeRetention(retention)}`]);
    return exitDone;
  });
}

function describeShipped(agent: string, result: ShipResult): string[] {
  const { segments, rows, bytes, freed, dropped } = result;
  const shipped =
    segments === 0
      ? 'nothing to ship'
      : `${formatCounted(rows, 'record')} shipped in ${formatCounted(segments, 'unit')} (${formatBytes(bytes)})`;
  const here = freed === 0 ? '' : `, ${formatCounted(freed, 'file')} removed here`;
  const there = dropped === 0 ? '' : `, ${formatCounted(dropped, 'attempt')} dropped there`;
  return [`${agent}: ${shipped}${here}${there}`];
}

function describeFetched(agent: string, { units, rows, stillHere }: FetchResult): string[] {
  if (units === 0) return [`${agent}: nothing to bring back`];
  const here = stillHere === 0 ? '' : `, ${formatCounted(stillHere, 'unit')} whose files were still here`;
  const back = `${formatCounted(rows, 'record')} of ${formatCounted(units, 'unit')} brought back`;
  return [`${agent}: ${back}${here}`];
}

/** Runs `logstrata far ship`: ships old records to the far tier. */
export async function ship(flags: GlobalFlags, { signal }: StopSignals, agent?: string): Promise<number> {
  return withArchive(await readSettings(flags), 'change', 'far', (archive) =>
    reportEach(archive, agent, flags.json, signal, {
      doing: 'shipping',
      work: async (name, options) => (await archive.agent(name)).shipFar(options),
      describe: describeShipped,
    }),
  );
}

/** Runs `logstrata far fetch`: brings units back from the far tier. */
export async function fetchBack(
  flags: GlobalFlags & TimeRangeFlags,
  { signal }: StopSignals,
  agent: string,
): Promise<number> {
  const settings = await readSettings(flags);
  const times = timeRangeOf(flags, settings);
  return withArchive(settings, 'change', 'far', (archive) =>
    reportEach(archive, agent, flags.json, signal, {
      doing: 'fetching',
      work: async (name, options) => (await archive.agent(name)).fetchFar(times, options),
      describe: describeFetched,
    }),
  );
}
