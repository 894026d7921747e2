import { DamageError, LogstrataError } from '../terms/errors.js';
import type { CommittedValues } from '../store/manifest/committed-values.js';
import { buildingFolder } from '../store/manifest/committer.js';
import { keepPredecessor, publishManifest } from '../store/manifest/manifest-file.js';
import {
  isFarOnly,
  liveRuns,
  type Counters,
  type Manifest,
  noCounters,
  nothingRetired,
  type SegmentEntry,
} from '../store/manifest/manifest.js';
import { Coverage } from '../store/manifest/coverage.js';
import { examine, type Finding, type Findings, type HotFinding } from './examination.js';
import { HotSalvage } from './hot-salvage.js';
import { restorableOf, restorableRecords, type Restorable } from '../store/manifest/lost-loads.js';
import { isCounted, type LostRecords } from './lost-records.js';
import { firstFreeOrdinal } from './ordinals.js';
import { Quarantine } from './quarantine.js';
import { rewriteSegments } from './rewrite.js';
import type { RepairContext, RepairOptions } from './repair-context.js';

/** What a repair found and did. */
export interface RepairReport {
  /** Whether anything was changed. */
  readonly changed: boolean;
  /** `whole`: the newest manifest was readable. `rebuilt`: it was rebuilt from the files, and from an older manifest if `basedOn` names one. */
  readonly manifest: 'whole' | 'rebuilt';
  /** Number of the older manifest that the rebuilt one is based on; null for none. */
  readonly basedOn: number | null;
  /** Files that no manifest listed and that were adopted. */
  readonly adopted: readonly string[];
  /** Files that were put into quarantine, and why. */
  readonly quarantined: readonly { readonly file: string; readonly to: string; readonly reason: string }[];
  readonly lost: readonly LostRecords[];
  /** Records lost now or earlier that can be restored by loading their files again. */
  readonly restorable: readonly Restorable[];
  /** Number of records of `lost` that cannot be restored in that way, as far as known. */
  readonly lostForGood: number;
  /** Number of records that can be answered, hot ones included. */
  readonly records: number;
}

/**
 * Repairs an agent's folder. This process must be the writer. Rebuilds a lost or damaged manifest from the files, rewrites the undamaged
 * row groups of damaged segments and the undamaged batches of damaged hot files, and moves what is damaged to `quarantine/`. Records keep
 * their positions. One manifest publishes all changes; before that nothing is changed, so an interrupted repair can be repeated. Throws
 * `not_found` if there is nothing of the agent.
 */
export async function repairAgent(context: RepairContext, options: RepairOptions): Promise<RepairReport> {
  const { directory, agent, id } = context;
  const found = await examine(context, options);
  const quarantine = new Quarantine(directory, agent);
  const adopted = await adopt(found, options, quarantine);
  if (found.isWhole) {
    const changed = await moveManifests(context, found, found.base!, quarantine);
    return reportOf(found, adopted, quarantine, { changed, manifest: found.base! });
  }
  await directory.makeDirectory(buildingFolder(agent, id));
  try {
    const coverage = new Coverage();
    const segments = await salvageSegments(context, options, found, coverage, quarantine);
    const hot = new HotSalvage(context, found, coverage);
    segments.push(...(await hot.seal(quarantine)));
    found.lost.push(...hot.lost);
    for (const { file, reason } of [...found.badRejected, ...found.illegible]) quarantine.add(file, reason);
    await quarantine.link();
    const manifest = { ...nextManifest(agent, found, segments, hot.values), hot: hot.kept };
    await publishManifest(directory, agent, manifest);
    await quarantine.removeOriginals();
    await moveManifests(context, found, manifest, quarantine);
    return reportOf(found, adopted, quarantine, { changed: true, manifest });
  } finally {
    await directory.removeDirectory(buildingFolder(agent, id));
  }
}

/** Moves damaged manifests, which are no longer needed, to the quarantine. Returns whether there were any. */
async function moveManifests(
  { directory, agent }: RepairContext,
  { badManifests }: Findings,
  newest: Manifest,
  quarantine: Quarantine,
): Promise<boolean> {
  for (const file of badManifests) await quarantine.move(file, 'its content is not what was written');
  if (badManifests.length > 0) await keepPredecessor(directory, agent, newest);
  return badManifests.length > 0;
}

/** Asks whether to adopt the files that no manifest lists. Returns the adopted ones. */
async function adopt(
  found: Findings,
  options: RepairOptions,
  quarantine: Quarantine,
): Promise<readonly string[]> {
  const unlisted = found.segments.filter(({ listed }) => !listed).map(({ file }) => file);
  unlisted.push(...found.hot.filter(({ listed }) => !listed).map(({ file }) => file));
  unlisted.push(...found.rejected.filter(({ listed }) => !listed).map(({ entry }) => entry.file));
  if (unlisted.length === 0 || (await options.adopt(unlisted))) return unlisted;
  const reason = 'no manifest lists it, and it was not adopted';
  for (const file of unlisted) quarantine.add(file, reason);
  const isListed = ({ listed }: { readonly listed: boolean }): boolean => listed;
  found.segments = found.segments.filter(isListed);
  found.hot = found.hot.filter(isListed);
  found.rejected = found.rejected.filter(isListed);
  return [];
}

/**
 * The segments of the next manifest: undamaged ones unchanged, and new ones with the undamaged parts of the others. Undamaged and large
 * segments are handled first, so that a record that is in two files (a segment and the one it was merged into) is taken from the better
 * one.
 */
async function salvageSegments(
  context: RepairContext,
  options: RepairOptions,
  found: Findings,
  coverage: Coverage,
  quarantine: Quarantine,
): Promise<SegmentEntry[]> {
  const order = [...found.segments].sort(
    (a, b) => Number(a.damages.length > 0) - Number(b.damages.length > 0) || b.entry.rows - a.entry.rows,
  );
  // Segments that are only in the far tier have no file to examine.
  const kept = found.base?.segments.filter(isFarOnly) ?? [];
  for (const run of kept.flatMap(liveRuns)) coverage.add(run);
  let index = 0;
  for (const finding of order) {
    if (options.signal?.aborted) throw new LogstrataError('cancelled', 'the repair was stopped');
    const { entry, wholeRuns, damages } = finding;
    const missing = wholeRuns.flatMap((run) => coverage.missing(run));
    const rows = missing.reduce((sum, run) => sum + run.rows, 0);
    for (const run of missing) coverage.add(run);
    if (damages.length > 0) quarantine.add(entry.file, finding.reason);
    if (rows === finding.liveRows && damages.length === 0) {
      kept.push(entry);
    } else if (rows > 0) {
      const { liveFrom: _, ...all } = entry;
      kept.push(...(await rewritePart(context, finding, { ...all, runs: missing }, index++)));
    }
  }
  for (const finding of order) found.lost.push(...finding.lostBeyond(coverage));
  return kept;
}

/** Rewrites the undamaged part of a segment. Its row groups were just verified, so damage found now means that the disk is failing. */
async function rewritePart(
  { directory, agent, id, workers }: RepairContext,
  { schema, entry, footer }: Finding,
  part: SegmentEntry,
  index: number,
): Promise<readonly SegmentEntry[]> {
  const unit = `${id.slice(0, 8)}${index.toString(16).padStart(4, '0')}`;
  await directory.makeDirectory(buildingFolder(agent, unit));
  try {
    const { schemaVersion, codec } = entry;
    const job = { agent, id: unit, segments: [part], schema, schemaVersion, codec, share: 1 };
    const footers = new Map(footer === undefined ? [] : [[entry.file, footer]]);
    return await rewriteSegments({ directory, workers, footers }, job);
  } catch (error) {
    if (!(error instanceof DamageError)) throw error;
    throw new LogstrataError('io', `${entry.file} reads differently each time: ${error.message}`, {
      cause: error,
    });
  } finally {
    await directory.removeDirectory(buildingFolder(agent, unit));
  }
}

function nextManifest(
  agent: string,
  found: Findings,
  segments: readonly SegmentEntry[],
  values: CommittedValues,
): Manifest {
  const { base } = found;
  values.applySegments(segments);
  return {
    number: found.highestNumber + 1,
    agent,
    schemas: found.schemas,
    segments,
    hot: [],
    attached: found.attached,
    ...(base?.attachedFrom === undefined ? {} : { attachedFrom: base.attachedFrom }),
    nextOrdinals: values.nextOrdinals(),
    ordinalsFrom: knowsOrdinals(found) ? base!.ordinalsFrom : firstFreeOrdinal(found, values),
    highestPartition: Math.max(values.highestPartition, found.highestPartition),
    checkpoints: values.checkpoints(),
    loads: base?.loads ?? [],
    rejected: found.rejected.map(({ entry }) => entry),
    counters: base === undefined ? countersOf(segments, found) : values.counters,
    retired: base?.retired ?? nothingRetired,
    ...(base?.retention === undefined ? {} : { retention: base.retention }),
  };
}

/** Whether all assigned ordinals are known. Those of lost batches that are newer than the manifest are not. */
function knowsOrdinals({ isRebuilt, hot }: Findings): boolean {
  const isKnown = ({ entry, damages }: HotFinding): boolean =>
    damages.every((damage) => isCounted(entry, damage));
  return !isRebuilt && hot.every(isKnown);
}

/** The counters that can be derived from the files. */
function countersOf(segments: readonly SegmentEntry[], { rejected }: Findings): Counters {
  const lines = rejected.reduce((sum, { entry }) => sum + entry.lines, 0);
  return { ...noCounters, records: rowsOf(segments), rejected: lines };
}

function rowsOf(segments: readonly SegmentEntry[]): number {
  return segments.reduce((sum, { rows }) => sum + rows, 0);
}

function reportOf(
  found: Findings,
  adopted: readonly string[],
  quarantine: Quarantine,
  { changed, manifest }: { readonly changed: boolean; readonly manifest: Manifest },
): RepairReport {
  const before = found.base === undefined ? [] : restorableOf(found.base);
  const restorable = restorableOf(manifest);
  const lost = found.lost.reduce((sum, { records }) => sum + (records ?? 0), 0);
  const comesBack = restorableRecords(restorable) - restorableRecords(before);
  return {
    changed,
    manifest: found.isRebuilt ? 'rebuilt' : 'whole',
    basedOn: found.isRebuilt ? (found.base?.number ?? null) : null,
    adopted,
    quarantined: quarantine.taken,
    lost: found.lost,
    restorable,
    lostForGood: Math.max(0, lost - comesBack),
    records: rowsOf(manifest.segments) + found.hotRecordsKept,
  };
}
