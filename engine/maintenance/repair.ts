import { isLogstrataError, DamageError, LogstrataError } from '../core/errors.js';
import type { Directory } from '../store/disk/directory.js';
import type { HotFile } from '../store/reading/agent-state.js';
import { CommittedValues, buildingFolder } from '../store/manifest/commit.js';
import { HotRows } from '../store/reading/hot-rows.js';
import {
  type HotEntry,
  type SegmentEntry,
  isFarOnly,
  liveRows,
  liveRuns,
  type Counters,
  type Manifest,
  noCounters,
  nothingRetired,
} from '../store/manifest/manifest.js';
import { sealHotFiles } from '../store/writer/seal.js';
import { Coverage, restorableOf, restorableRecords, type Restorable } from '../store/manifest/coverage.js';
import {
  staysHot,
  type Findings,
  type HotFinding,
  type RepairContext,
  examine,
  type Finding,
  type RepairOptions,
} from './examination.js';
import { lostInHot, type LostRecords, isCounted } from './lost-records.js';
import { keepPredecessor, publishManifest } from '../store/manifest/manifest-file.js';
import { rewriteSegments } from './rewrite.js';
import { ordinalMax, repairOrdinalStep } from '../core/limits.js';

/**
 * Files of an agent that are put aside: `dt=…/x.parquet` becomes `quarantine/dt=…/x.parquet.aside`, which tools that look for Parquet files
 * do not match. Each file is linked to the new name before the manifest without it is published, and its old name is removed afterwards. So
 * no crash can lose its content.
 */
class Quarantine {
  readonly taken: { file: string; to: string; reason: string }[] = [];

  constructor(
    private readonly directory: Directory,
    private readonly agent: string,
  ) {}

  /** Adds a file that `link` and `removeOriginals` are to move. */
  add(file: string, reason: string): void {
    this.taken.push({ file, to: `quarantine/${file}.aside`, reason });
  }

  /** Links each file to its second name, durably. Skips missing files. */
  async link(): Promise<void> {
    for (const { file, to } of [...this.taken]) {
      const folder = `${this.agent}/${to.slice(0, to.lastIndexOf('/'))}`;
      await this.directory.makeDirectory(folder);
      try {
        await this.directory.link(`${this.agent}/${file}`, `${this.agent}/${to}`);
      } catch (error) {
        if (!isLogstrataError(error)) throw error;
        if (error.code === 'not_found')
          this.taken.splice(
            this.taken.findIndex((item) => item.file === file),
            1,
          );
        // An interrupted repair has linked it already.
        else if (error.code !== 'exists') throw error;
      }
      await this.directory.syncDirectory(folder);
    }
  }

  /** Removes the old names of the linked files, after the manifest without them is published. */
  async removeOriginals(): Promise<void> {
    for (const { file } of this.taken) await this.directory.remove(`${this.agent}/${file}`);
  }

  /** Puts a file aside that nothing refers to any more. */
  async move(file: string, reason: string): Promise<void> {
    const to = `quarantine/${file}.aside`;
    await this.directory.makeDirectory(`${this.agent}/quarantine`);
    try {
      await this.directory.rename(`${this.agent}/${file}`, `${this.agent}/${to}`);
      this.taken.push({ file, to, reason });
    } catch (error) {
      if (!isLogstrataError(error) || error.code !== 'not_found') throw error;
    }
  }
}

/** The hot files of a repair: undamaged ones are kept, and the undamaged batches of others are sealed. */
class HotSalvage {
  /** The values of the manifest plus those of the sealed batches. */
  readonly values: CommittedValues;
  readonly kept: HotEntry[] = [];
  readonly lost: LostRecords[] = [];

  constructor(
    private readonly context: RepairContext,
    private readonly found: Findings,
    private readonly coverage: Coverage,
  ) {
    this.values = new CommittedValues(found.base);
  }

  /** Seals the undamaged batches of damaged files, and adds these files to the quarantine. */
  async seal(quarantine: Quarantine): Promise<readonly SegmentEntry[]> {
    const files: HotFile[] = [];
    for (const finding of this.found.hot) {
      if (staysHot(this.found, finding)) {
        this.kept.push(finding.entry);
        continue;
      }
      if (finding.damages.length > 0) quarantine.add(finding.file, finding.damages[0]!.reason);
      const file = this.take(finding);
      if (file.rows.rowCount > 0) files.push(file);
    }
    const segments = await sealHotFiles(this.context, files);
    for (const { entry, damages } of this.found.hot)
      for (const damage of damages) this.lost.push(...lostInHot(entry, damage, this.coverage));
    return segments;
  }

  /** The batches whose rows are in no sealed segment. */
  private take({ entry, schema, batches }: HotFinding): HotFile {
    const rows = new HotRows(schema, entry.file);
    for (const { batch, runs, meta, offset } of batches) {
      if (runs.some((run) => this.coverage.touches(run))) continue;
      rows.append(batch, runs);
      for (const run of runs) this.coverage.add(run);
      if (offset < entry.foldedBytes) continue;
      this.values.applyRuns(runs);
      this.values.applyCheckpoints(meta.checkpoints);
      this.values.applyCounters(meta.counters);
    }
    return { entry, schema, rows, endBytes: 0, rejected: null };
  }
}

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
 * one, which of equal ones is that with removed rows.
 */
async function salvageSegments(
  context: RepairContext,
  options: RepairOptions,
  found: Findings,
  coverage: Coverage,
  quarantine: Quarantine,
): Promise<SegmentEntry[]> {
  const order = [...found.segments].sort(
    (a, b) =>
      Number(a.damages.length > 0) - Number(b.damages.length > 0) ||
      b.entry.rows - a.entry.rows ||
      (b.entry.removed?.length ?? 0) - (a.entry.removed?.length ?? 0),
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
    if (rows === finding.livePlaces && damages.length === 0) {
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
  return segments.reduce((sum, segment) => sum + liveRows(segment), 0);
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

/**
 * An ordinal that was certainly never assigned, in any partition, for when the manifest that counted ordinals is lost. Throws `limit` if so
 * many manifests have been rebuilt that no such ordinal is left.
 */
function firstFreeOrdinal({ base, segments }: Findings, values: CommittedValues): number {
  let highest = base?.ordinalsFrom ?? 1;
  for (const [, next] of values.nextOrdinals()) highest = Math.max(highest, next);
  for (const { entry } of segments)
    for (const { firstOrdinal, rows } of entry.runs) highest = Math.max(highest, firstOrdinal + rows);
  const first = (Math.floor(highest / repairOrdinalStep) + 1) * repairOrdinalStep + 1;
  if (first + repairOrdinalStep > ordinalMax)
    throw new LogstrataError('limit', `no ordinals are left that were certainly never used (at ${highest})`);
  return first;
}
