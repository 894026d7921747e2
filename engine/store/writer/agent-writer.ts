import { randomBytes } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import { type RecordBatch, batchBytes } from '../../columns/column.js';
import { assertOrdinalsLeft, partitionOfTime } from '../../core/cursor.js';
import { LogstrataError, isLogstrataError } from '../../core/errors.js';
import { everyStep } from '../../core/waiting.js';
import {
  rowGroupBytesMax,
  rowGroupRowsMax,
  rejectedBytesMaxDefault,
  reservationMsMax,
} from '../../core/limits.js';
import { sameSchema, type Schema } from '../../core/schema.js';
import type { WorkerPool } from '../../workers/worker-pool.js';
import {
  keptForEver,
  PolicyInForce,
  policyOf,
  samePolicy,
  type Retirable,
  takingPolicy,
  type PolicyDecision,
  type WantedPolicy,
  hasLeapt,
  proposeRetirement,
  retentionBounds,
  type Taken,
} from '../manifest/retention-policy.js';
import {
  changeLists,
  type AttachedChanges,
  type AttachedResult,
  type AttachingCommitter,
} from '../attached/attached-list.js';
import {
  type CommittedValues,
  type AppendResult,
  type CommitExtras,
  buildingFolder,
  type PartitionCount,
  type PartitionStart,
  type Publication,
  type SourcePart,
} from '../manifest/commit.js';
import { assertStillLost } from '../manifest/coverage.js';
import type { AgentState } from '../reading/agent-state.js';
import type { Directory } from '../disk/directory.js';
import { assertRejectedStill } from '../manifest/rejected-file.js';
import { hotEntriesForManifest, sealHotFiles } from './seal.js';
import { publishManifest, readNewestManifest } from '../manifest/manifest-file.js';
import {
  type Manifest,
  type OrdinalRun,
  type RetentionPolicy,
  datedRejected,
  type HotEntry,
  mergeRejected,
  nothingRetired,
} from '../manifest/manifest.js';
import { changeFar, type FarChanges, leftoversOf } from '../manifest/far-changes.js';
import { Semaphore } from '../../workers/semaphore.js';
import { OpenHotFile } from './open-hot-file.js';
import { partTimes, partsOf, placementTimes, livePartition, ordinalRuns } from '../manifest/placement.js';
import type { Heads } from '../reading/recovery.js';
import type { Removals } from './removals.js';
import { SourceClaims, newestLoads } from '../manifest/loaded-rows.js';
import type { Codec } from '../../parquet/compression.js';
import { sortPage } from '../load/sorted-page.js';
import { loadsWithout } from '../manifest/removal.js';
import { ruleMark, rulesInForce } from '../manifest/retention-rules.js';

export interface WriterOptions {
  readonly now: () => number;
  readonly graceMs: number;
  readonly codec: Codec;
  readonly workers: WorkerPool;
}

/** What one run of retention has done; `taken` is null where it has removed nothing. */
export interface RetentionLook extends PolicyDecision {
  readonly taken: Taken | null;
}

const dayMs = 86_400_000;

/**
 * The only writer of an agent's records. It runs commits one at a time, and each is durable before the state shows it, so that no crash
 * loses a record that a client has seen.
 */
export class AgentWriter implements AttachingCommitter {
  readonly tally = new CommitTally();
  private readonly commits = new Semaphore(1);
  private readonly units = new Map<string, WriterUnit>();
  private open: OpenHotFile | undefined;
  /** Set after a failed commit, when only the disk tells whether the manifest was published. The next commit reads it first (`settle`). */
  private uncertain = false;
  private readonly policy: PolicyInForce;
  private readonly claims: SourceClaims;

  constructor(
    private readonly directory: Directory,
    private readonly state: AgentState,
    private readonly removals: Removals,
    private readonly options: WriterOptions,
  ) {
    this.policy = new PolicyInForce(() => directory.diskSpace());
    this.claims = new SourceClaims(state.manifest?.number ?? 0);
  }

  get schema(): Schema {
    return this.state.schema;
  }

  get schemaVersion(): number {
    const version = currentVersion(this.state.manifest, this.state.schema);
    if (version === undefined)
      throw new LogstrataError('closed', `agent ${this.state.agent} has not been opened for writing`);
    return version;
  }

  /**
   * Runs before every commit. After a failed one it reads the newest manifest from disk. Throws the state's damage: while some records
   * cannot be read, a commit could assign their ordinals again.
   */
  private async settle(): Promise<void> {
    if (this.uncertain) {
      const newest = await readNewestManifest(this.directory, this.state.agent);
      if (newest !== undefined && newest.number !== this.state.manifest?.number)
        await this.state.replaceManifest(newest);
      this.uncertain = false;
      await this.removals.removeDoubtful();
    }
    if (this.state.damage !== undefined) throw this.state.damage;
  }

  /** Notes a file of a failed commit. `settle` removes it if the newest manifest does not name it. */
  private doubt(file: string): void {
    this.removals.doubt(file);
    this.uncertain = true;
  }

  /** The committed state, for readers in other processes. */
  heads(): Heads {
    const hot: Record<string, number> = {};
    for (const { entry, endBytes } of this.state.hot) hot[entry.file] = endBytes;
    return { manifest: this.state.manifest?.number ?? 0, hot };
  }

  /** Makes a schema the current one. Hot records of another schema are sealed first. After a failure the old schema stays current. */
  async takeSchema(schema: Schema = this.schema): Promise<void> {
    await this.commits.run(async () => {
      await this.settle();
      const before = this.schema;
      if (currentVersion(this.state.manifest, schema) === undefined) {
        await this.sealAll();
        await this.directory.makeDirectory(this.state.agent);
        const schemas = this.state.manifest?.schemas ?? [];
        const version = (schemas.at(-1)?.version ?? 0) + 1;
        await this.publishNext({ schemas: [...schemas, { version, schema }] });
      }
      if (schema !== before) this.state.show(schema);
    });
  }

  async begin(): Promise<string> {
    const id = randomBytes(6).toString('hex');
    const since = this.claims.count;
    await this.directory.makeDirectory(buildingFolder(this.state.agent, id));
    this.units.set(id, { since, release: undefined, timer: undefined, expired: false, published: false });
    return id;
  }

  async reserve(id: string, counts: readonly PartitionCount[]): Promise<readonly PartitionStart[]> {
    const unit = this.unit(id);
    const release = await this.commits.acquire();
    try {
      await this.settle();
      this.unit(id);
    } catch (error) {
      release();
      throw error;
    }
    unit.release = release;
    // The timer also keeps this process alive while it waits for a unit of another process, which sockets do not.
    unit.timer = setTimeout(() => {
      unit.expired = true;
      this.releaseUnit(unit);
    }, reservationMsMax);
    return counts.map(([partition, records]) => {
      const next = this.state.values.nextOrdinal(partition);
      assertOrdinalsLeft(partition, next, records);
      return [partition, next] as const;
    });
  }

  private releaseUnit(unit: WriterUnit): void {
    clearTimeout(unit.timer);
    unit.release?.();
    unit.release = undefined;
  }

  private unit(id: string): WriterUnit {
    const unit = this.units.get(id);
    if (unit === undefined) throw new LogstrataError('closed', `there is no unit of work "${id}"`);
    return unit;
  }

  async publish(id: string, publication: Publication): Promise<void> {
    const unit = this.unit(id);
    if (unit.expired) {
      throw new LogstrataError(
        'timeout',
        `the ordinals of this load were reserved for more than ${reservationMsMax / 1000} s`,
      );
    }
    unit.release ??= await this.commits.acquire();
    try {
      await this.settle();
      this.assertStillTrue(unit, publication);
      const values = this.state.values.copy();
      const { changes, leaving } = publishedRecords(this.state.manifest, publication, values);
      const removes = publication.detaches ?? [];
      if (removes.length === 0) await this.publishNext(changes, values);
      else await this.publishAttached({ adds: [], moves: [], removes }, values, changes);
      unit.published = true;
      this.claims.published(publication.checkpoints, this.state.manifest!.number);
      await this.removals.add(leaving);
    } finally {
      this.releaseUnit(unit);
    }
  }

  /** Throws `conflict` where the state that a unit was built on has changed since. */
  private assertStillTrue(unit: WriterUnit, publication: Publication): void {
    const live = new Map(this.state.manifest?.segments.map((entry) => [entry.file, entry.liveFrom ?? null]));
    publication.removes.forEach((file, i) => {
      const liveFrom = publication.removesLiveFrom?.[i] ?? null;
      // Records that retention has removed since must not come back.
      if (live.get(file) === liveFrom) return;
      const what = live.has(file) ? 'lost records to retention' : 'was replaced';
      throw new LogstrataError('conflict', `segment ${file} ${what} meanwhile`, { path: file });
    });
    const inForce = new Set(rulesInForce(this.state.manifest ?? { schemas: [] }).map(ruleMark));
    if (publication.rules?.some((mark) => !inForce.has(mark)) === true)
      throw new LogstrataError('conflict', 'a rule of retention is no longer in force');
    if (publication.restores === true) assertStillLost(this.state.manifest!, publication.segments);
    assertRejectedStill(this.state.settledRejected(), publication.takes);
    this.claims.checkUnit(unit.since, publication.checkpoints, this.state.values);
  }

  async end(id: string): Promise<void> {
    const unit = this.units.get(id);
    if (unit === undefined) return;
    this.units.delete(id);
    this.releaseUnit(unit);
    await this.directory.removeDirectory(buildingFolder(this.state.agent, id));
    // While it is uncertain whether a manifest names the files, they stay. The next opening of the archive removes unnamed files.
    if (unit.published || this.uncertain) return;
    await this.removals.removeUnit(id, this.state.namedFiles());
  }

  async append(batch: RecordBatch, extras: CommitExtras, placement: 'live' | 'load'): Promise<AppendResult> {
    return this.commits.run(async () => {
      await this.settle();
      this.assertVersion(extras.schemaVersion);
      this.claims.checkAppend(extras.asOf, extras.checkpoints, this.state.values);
      const nowMs = this.options.now();
      const parts = partsOf(batch, extras);
      const timesMs = placementTimes(this.schema, batch, nowMs, parts);
      const lastTimeMs = partTimes(timesMs, parts).at(-1)!;
      const { values } = this.state;
      const { graceMs } = this.options;
      const placed =
        placement === 'load'
          ? placeLoaded(values, batch, timesMs)
          : placeLive(values, batch, timesMs, parts, { nowMs, graceMs });
      if (batch.length + extras.rejected.length + extras.checkpoints.length === 0) {
        return { records: 0, rejected: 0, rejectedKept: 0, lastTimeMs };
      }
      if (batch.length > rowGroupRowsMax) {
        throw new LogstrataError(
          'limit',
          `a commit has ${batch.length} records, more than the maximum of ${rowGroupRowsMax}`,
        );
      }
      const full = (this.open?.hot.rows.rowCount ?? 0) + batch.length > rowGroupRowsMax;
      if (full || this.dayHasEnded(nowMs)) await this.sealAll();
      const open = this.open ?? (await this.openHot(nowMs));
      const linesBefore = open.hot.rejected?.lines ?? 0;
      await this.commitBatch(open, placed.batch, placed.runs, extras);
      const rejectedKept = (open.hot.rejected?.lines ?? 0) - linesBefore;
      this.claims.appended(extras.checkpoints);
      if (this.state.hotRowCount >= rowGroupRowsMax || open.bytes >= rowGroupBytesMax) await this.sealAll();
      return { records: batch.length, rejected: extras.rejected.length, rejectedKept, lastTimeMs };
    });
  }

  async attach(changes: AttachedChanges): Promise<AttachedResult> {
    return this.commits.run(async () => {
      await this.settle();
      return this.publishAttached(changes, this.state.values.copy());
    });
  }

  /** Publishes changes of attached files together with `others` in one manifest. */
  private async publishAttached(
    changes: AttachedChanges,
    values: CommittedValues,
    others: Partial<Manifest> = {},
  ): Promise<AttachedResult> {
    const { agent, attached, manifest } = this.state;
    const before = { lists: attached.lists, number: manifest?.number ?? 0 };
    const changed = await changeLists(this.directory, agent, before, changes, values);
    try {
      await this.publishNext({ ...others, attached: changed.lists }, values);
    } catch (error) {
      for (const file of changed.written) this.doubt(file);
      throw error;
    }
    await this.removals.add(changed.leaving);
    return { added: changed.added, refused: changed.refused };
  }

  async changeFar(changes: FarChanges): Promise<void> {
    await this.commits.run(async () => {
      await this.settle();
      const { changes: changed, leaving } = changeFar(this.state.manifest!, changes);
      await this.publishNext(changed);
      await this.removals.add(leaving);
    });
  }

  /** Throws `conflict` where `version` is not the current version of the schema. */
  assertVersion(version: number | undefined): void {
    if (version === undefined || version === this.schemaVersion) return;
    const message = `the fields of agent ${this.state.agent} have changed in the meantime: start again`;
    throw new LogstrataError('conflict', message);
  }

  /** Seals hot records whose day has ended, and removes files that are due for removal. A timer calls it. */
  async maintain(): Promise<void> {
    await this.commits.run(async () => {
      if (this.dayHasEnded(this.options.now())) await this.sealAll();
      await this.removals.run('due');
    });
  }

  /** Puts a retention policy in force while the agent has no records yet. Once it has some, only `retire` changes the policy. */
  async keepNew(policy: RetentionPolicy): Promise<void> {
    const wanted = policyOf(policy);
    await this.commits.run(async () => {
      const { manifest, values, damage } = this.state;
      if (manifest === undefined || values.highestPartition > 0 || damage !== undefined) return;
      if (!samePolicy(manifest.retention ?? keptForEver, wanted))
        await this.publishNext({ retention: wanted });
    });
  }

  /**
   * Removes the records that exceed the retention policy from the manifest, in one publication. Running queries keep them. A policy that
   * removes more than the one in force waits for `graceMs`, and so does every policy after time has leapt (`hasLeapt`), unless `applies`
   * is set or the disk is nearly full.
   */
  async retire(wanted: WantedPolicy, applies = false): Promise<RetentionLook | undefined> {
    return this.commits.run(async () => {
      await this.settle();
      const { manifest } = this.state;
      if (manifest === undefined) return undefined;
      const nowMs = this.options.now();
      const before = manifest.retention ?? keptForEver;
      const newest = () => retirable(this.state);
      const leaps = (policy: RetentionPolicy) => hasLeapt(newest(), policy, nowMs);
      const decision = await this.policy.decide(before, wanted, applies, nowMs, leaps);
      const { kept } = decision;
      const taking = takingPolicy(kept);
      const { byAge, bySize } = retentionBounds(newest(), taking, nowMs);
      const isOver = (run: OrdinalRun) => run.partition < Math.max(byAge, bySize);
      if (this.state.hot.some((hot) => hot.rows.runs().some(isOver))) await this.sealAll();
      const retirement = proposeRetirement(newest(), taking, nowMs);
      // Attached files belong to others, so their rows are only hidden.
      const hides = this.state.attached.lists.length > 0 && byAge > (manifest.attachedFrom ?? 0);
      const policy = { retention: kept, ...(hides ? { attachedFrom: byAge } : {}) };
      if (retirement === undefined) {
        if (hides || !isDeepStrictEqual(before, kept)) await this.publishNext(policy);
        return { ...decision, taken: null };
      }
      const { removes, taken, ...left } = retirement;
      await this.publishNext({ ...left, ...policy });
      await this.removals.add(removes);
      return { ...decision, taken: taken.records + taken.rejectedLines === 0 ? null : taken };
    });
  }

  private dayHasEnded(nowMs: number): boolean {
    const today = Math.floor(nowMs / dayMs);
    return this.state.hot.some((hot) => Math.floor(hot.entry.createdMs / dayMs) !== today);
  }

  /** Begins a hot file, and publishes a manifest that names it before anything is committed to it. */
  private async openHot(createdMs: number): Promise<OpenHotFile> {
    const { agent } = this.state;
    const { directory, schema, schemaVersion } = this;
    const begun = { schemaVersion, createdMs };
    const open = await this.tally.watch(OpenHotFile.create(directory, agent, schema, begun));
    try {
      await directory.syncDirectory(`${agent}/hot`);
      // The earlier hot files are closed, so the manifest records their final lengths.
      const closed = hotEntriesForManifest(this.state.hot, undefined);
      await this.publishNext({ hot: [...closed, open.entry] });
    } catch (error) {
      await open.abandon();
      this.doubt(open.entry.file);
      throw error;
    }
    open.hot = this.state.hot.at(-1)!;
    open.hot.endBytes = open.bytes;
    this.open = open;
    return open;
  }

  private async commitBatch(
    open: OpenHotFile,
    batch: RecordBatch,
    runs: readonly OrdinalRun[],
    extras: CommitExtras,
  ): Promise<void> {
    const { rejected, rejectedBytesMax = rejectedBytesMaxDefault } = extras;
    const roomBytes = rejected.length === 0 ? 0 : rejectedBytesMax - this.state.rejectedBytes;
    try {
      this.state.addBatch(open.hot, await open.append(batch, runs, extras, roomBytes), false);
      this.tally.succeed();
    } catch (error) {
      await this.leaveHot(open);
      this.tally.fail(error);
      throw error;
    }
  }

  /**
   * Abandons the hot file after a failed write or sync, because nothing may be appended to it any more. Publishes its length up to the last
   * good batch; the next commit begins a new file. Where that fails too, as on a full disk, the next commit settles the state first.
   */
  private async leaveHot(open: OpenHotFile): Promise<void> {
    this.open = undefined;
    await open.abandon();
    await this.publishNext({}).catch(() => {});
    this.doubt(open.rejectedName);
  }

  /** Closes the hot file that is appended to, so that the next manifest can record its length. */
  private async closeHot(): Promise<void> {
    const open = this.open;
    this.open = undefined;
    await open?.close();
  }

  async seal(): Promise<void> {
    await this.commits.run(() => this.sealAll());
  }

  private async sealAll(): Promise<void> {
    await this.settle();
    await this.closeHot();
    const files = this.state.hot.filter((hot) => hot.rows.rowCount > 0);
    if (files.length === 0) return this.dropRowless();
    const id = await this.begin();
    try {
      const { agent } = this.state;
      const { codec, workers } = this.options;
      const context = { directory: this.directory, agent, id, codec, workers };
      const segments = await this.tally.watch(sealHotFiles(context, files));
      const manifest = this.state.manifest!;
      await this.publishNext({ segments: [...manifest.segments, ...segments], hot: [] });
      this.unit(id).published = true;
    } finally {
      await this.end(id);
    }
  }

  /** Drops hot files that have rejected lines but no rows, so nothing to seal. The manifest takes over their entries of rejected lines. */
  private async dropRowless(): Promise<void> {
    if (this.state.hotRejected().length > 0) await this.publishNext({ hot: [] });
  }

  /** Publishes the current manifest with `changes`, and makes it the state once it is durable. */
  private async publishNext(changes: Partial<Manifest>, values = this.state.values): Promise<void> {
    const { manifest, agent } = this.state;
    const hot = changes.hot ?? hotEntriesForManifest(this.state.hot, this.open?.hot);
    const next = nextManifest(this.state, changes, hot, values, this.options.now());
    try {
      await this.tally.watch(publishManifest(this.directory, agent, next));
    } catch (error) {
      this.uncertain = true;
      throw error;
    }
    this.tally.succeed();
    await this.state.replaceManifest(next);
    const named = new Set(hot.map(({ file }) => file));
    await this.removals.add((manifest?.hot ?? []).flatMap(({ file }) => (named.has(file) ? [] : [file])));
  }

  /** Ends all units, and publishes the lengths of the hot files, so that damage in them can be told from a torn tail. */
  async close(): Promise<void> {
    await this.commits.run(async () => {
      await everyStep([...this.units.keys()].map((id) => () => this.end(id)));
      if (this.open === undefined) return;
      await this.closeHot();
      await this.publishNext({});
    });
  }

  /** Resolves when the commits that are under way have ended. */
  async idle(): Promise<void> {
    await this.commits.run(() => Promise.resolve());
  }
}

/** The manifest that follows the newest one, with `changes`, the given hot files and the values. */
function nextManifest(
  state: AgentState,
  changes: Partial<Manifest>,
  hot: readonly HotEntry[],
  values: CommittedValues,
  nowMs: number,
): Manifest {
  const { manifest, agent } = state;
  const rejected = mergeRejected(changes.rejected ?? manifest?.rejected ?? [], state.hotRejected());
  const segments = changes.segments ?? manifest?.segments ?? [];
  const farLeftovers = leftoversOf(manifest, segments, changes.farLeftovers, nowMs);
  return {
    agent,
    schemas: [],
    segments: [],
    attached: [],
    loads: [],
    ordinalsFrom: 1,
    retired: nothingRetired,
    ...manifest,
    ...changes,
    ...(farLeftovers.length === 0 ? { farLeftovers: undefined } : { farLeftovers }),
    rejected: datedRejected(rejected, values.highestPartition),
    hot,
    number: (manifest?.number ?? 0) + 1,
    nextOrdinals: values.nextOrdinals(),
    highestPartition: values.highestPartition,
    checkpoints: values.checkpoints(),
    counters: values.counters,
  };
}

/** Rows in the order of their positions. */
export interface PlacedRows {
  readonly batch: RecordBatch;
  readonly runs: OrdinalRun[];
}

/** Assigns positions as a load does: by placement time (ms) alone. */
function placeLoaded(values: CommittedValues, batch: RecordBatch, timesMs: Float64Array): PlacedRows {
  const sorted = sortPage({ batch, timesMs, bytes: batchBytes(batch) });
  return { batch: sorted.batch, runs: ordinalRuns(values, sorted.timesMs.map(partitionOfTime)) };
}

/** Assigns positions to rows of live sources (see `livePartition`). Within a partition rows stay in order of arrival. */
function placeLive(
  values: CommittedValues,
  batch: RecordBatch,
  timesMs: Float64Array,
  parts: readonly SourcePart[],
  { nowMs, graceMs }: { readonly nowMs: number; readonly graceMs: number },
): PlacedRows {
  const { highestPartition } = values;
  const partitions = new Float64Array(timesMs.length);
  let row = 0;
  for (const { rows, catchingUp } of parts) {
    const where = { nowMs, highestPartition, graceMs, catchingUp };
    for (const end = row + rows; row < end; row++) partitions[row] = livePartition(timesMs[row]!, where);
  }
  const sorted = sortPage({ batch, timesMs: partitions, bytes: batchBytes(batch) });
  return { batch: sorted.batch, runs: ordinalRuns(values, sorted.timesMs) };
}

/** The effect of a publication on the records that a manifest names. */
export interface PublishedRecords {
  readonly changes: Pick<Manifest, 'segments' | 'rejected' | 'loads' | 'retired'>;
  /** Files that the next manifest no longer names. */
  readonly leaving: readonly string[];
}

/** Computes what the next manifest says of records when it includes a unit. Adds the unit's counts and checkpoints to `values`. */
function publishedRecords(
  manifest: Manifest | undefined,
  publication: Publication,
  values: CommittedValues,
): PublishedRecords {
  const { takes, load, removal } = publication;
  values.applySegments(publication.segments);
  values.applyCheckpoints(publication.checkpoints);
  values.applyCounters(publication.counters);
  const removed = new Set(publication.removes);
  const kept = (manifest?.segments ?? []).filter(({ file }) => !removed.has(file));
  const ruled = new Map((publication.ruled ?? []).map((entry) => [entry.file, entry.ruled]));
  const marked = kept.map((entry) =>
    ruled.has(entry.file) ? { ...entry, ruled: ruled.get(entry.file) } : entry,
  );
  const segments = [...marked, ...publication.segments];
  const { retired = nothingRetired } = manifest ?? {};
  const records = retired.records + (publication.retires ?? 0);
  let loads = [...(manifest?.loads ?? []), ...(load === undefined ? [] : [load])];
  if (removal !== undefined) {
    const { left, gone } = loadsWithout(loads, removal.runs, segments);
    loads = [...left];
    values.forget(gone);
  }
  const highest = removal?.highestPartition ?? Infinity;
  values.lowerHighest(highest);
  const rejectedLeaving = new Set([
    ...(takes === undefined ? [] : [takes.file]),
    ...(removal?.rejected ?? []),
  ]);
  const rejected = (manifest?.rejected ?? [])
    .filter(({ file }) => !rejectedLeaving.has(file))
    .map((entry) => ((entry.partition ?? 0) <= highest ? entry : { ...entry, partition: highest }));
  return {
    changes: {
      segments,
      rejected: [...rejected, ...publication.rejected],
      loads: newestLoads(loads),
      retired: { ...retired, records },
    },
    leaving: [...publication.removes, ...rejectedLeaving],
  };
}

/** The writer's view of a unit of work: another part of the engine, or another process, builds it; the writer publishes it. */
interface WriterUnit {
  /** Number of commits with checkpoints before the unit began (`SourceClaims.count`). */
  readonly since: number;
  /** Releases the commit lock; undefined while the unit does not hold it. */
  release: (() => void) | undefined;
  /** Releases a reservation after `reservationMsMax`. */
  timer: NodeJS.Timeout | undefined;
  expired: boolean;
  published: boolean;
}

/** Counts a writer's durable commits and its storage failures. */
export class CommitTally {
  /** Number of durable commits: batches of rows, and manifests. */
  done = 0;
  /** Number of storage failures. */
  failed = 0;
  /** The storage error of the last commit; undefined once a commit has succeeded since. */
  failure: Error | undefined;

  succeed(): void {
    this.done++;
    this.failure = undefined;
  }

  /** Counts a failure of storage. Other errors, such as a conflict of two loads, are ignored. */
  fail(error: unknown): void {
    const isOfStorage = !isLogstrataError(error) || error.code === 'io' || error.code === 'disk_full';
    if (!isOfStorage || !(error instanceof Error)) return;
    this.failed++;
    this.failure = error;
  }

  /** Awaits a step of a commit, and counts its failure. */
  async watch<T>(step: Promise<T>): Promise<T> {
    try {
      return await step;
    } catch (error) {
      this.fail(error);
      throw error;
    }
  }
}

/** The version of `schema` if it is the manifest's current one, which is the last; else undefined. */
function currentVersion(manifest: Manifest | undefined, schema: Schema): number | undefined {
  const last = manifest?.schemas.at(-1);
  return last !== undefined && sameSchema(last.schema, schema) ? last.version : undefined;
}

/** The facts of an agent that retention decides by. */
export function retirable(state: AgentState): Retirable {
  const { segments = [], loads = [], retired = nothingRetired } = state.manifest ?? {};
  return {
    segments,
    loads,
    rejected: state.settledRejected(),
    retired,
    highestPartition: state.values.highestPartition,
    hotRuns: state.hot.flatMap((hot) => hot.rows.runs()),
    hotBytes: state.hotRejected().reduce((sum, { bytes }) => sum + bytes, state.hotBytes),
  };
}
