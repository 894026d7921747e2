import { compareRuns } from '../manifest/run-list.js';
import { type DamageError, assert } from '../../core/errors.js';
import type { Schema } from '../../core/schema.js';
import { mergeRuns } from '../manifest/run-columns.js';
import {
  manifestNumbers,
  remoteRowGroup,
  rowsOfCopy,
  type RowGroup,
  type Snapshot,
  type SnapshotRun,
  type SnapshotRuns,
} from './snapshot.js';
import { AttachedFiles } from './attached-files.js';
import type { BufferPool } from './buffer-pool.js';
import { CommittedValues } from '../manifest/commit.js';
import type { Directory } from '../disk/directory.js';
import type { HotBatch } from '../hot/hot-segment-file.js';
import { HotRows } from './hot-rows.js';
import {
  type HotEntry,
  isFarOnly,
  liveRows,
  liveRuns,
  type Manifest,
  mergeRejected,
  type RejectedEntry,
  type SegmentEntry,
} from '../manifest/manifest.js';
import { SealedSegment } from './sealed-segment.js';
import { StateChanges } from './state-changes.js';
import { namedFiles } from '../manifest/manifest-file.js';
import type { ForeignMeans } from '../attached/foreign-work.js';

/** A hot segment's file, and its rows in memory. */
export interface HotFile {
  entry: HotEntry;
  readonly schema: Schema;
  readonly rows: HotRows;
  /** File offset of the end of the last batch that is in `rows`. */
  endBytes: number;
  /** Rejected lines that were committed with its batches, as of the last batch; null where there are none. */
  rejected: RejectedEntry | null;
}

/** Sealed hot rows that are still being read and whose memory is to be reused. More would not help: the next hot files need no more. */
const retiredHotMax = 2;

/** Something that is closed once no snapshot needs it. */
interface Closable {
  close(): void;
}

interface OpenSegment {
  readonly entry: SegmentEntry;
  /** Null where the rows are only in the far tier, so that there is no file. Then there is one row group. */
  readonly segment: SealedSegment | null;
  readonly rowGroups: readonly RowGroup[];
}

/**
 * One agent's committed records as this process knows them: the newest manifest, the open segments it names, and the hot rows. Queries
 * take snapshots from here; a later commit does not change a snapshot.
 */
export class AgentState {
  /** The committed values: those of the manifest, plus the hot batches that it does not count yet. */
  values: CommittedValues;
  /** Set where damage keeps some of the agent's records from being read. Every query and commit then fails with it. */
  damage: DamageError | undefined;
  readonly attached: AttachedFiles;
  readonly changes = new StateChanges();
  private sealed = new Map<string, OpenSegment>();
  private hotFiles: HotFile[] = [];
  /** Runs of sealed segments and attached files, without the hot rows. */
  private sealedRuns: SnapshotRuns = [];
  /** `sealedRuns` merged with the hot rows; undefined until a snapshot needs them. */
  private currentRuns: SnapshotRuns | undefined;
  /** Number of unreleased snapshots, by the manifest number they were taken at. */
  private readonly pins = new Map<number, number>();
  /** What has left the manifest and is closed when no snapshot is left. */
  private retired: Closable[] = [];
  /** Hot rows that have been sealed and that snapshots of manifests below `since` may still read. */
  private retiredHot: { readonly rows: HotRows; readonly since: number }[] = [];
  private newest: Manifest | undefined;

  constructor(
    private readonly directory: Directory,
    readonly agent: string,
    /** The schema of snapshots: the agent's current one, whatever schema the files were written with. */
    private shown: Schema,
    private readonly pool: BufferPool,
    means: ForeignMeans,
  ) {
    this.values = new CommittedValues(undefined);
    this.attached = new AttachedFiles(directory, agent, pool, means);
  }

  get schema(): Schema {
    return this.shown;
  }

  /** Changes the schema of later snapshots. Snapshots that were taken before keep theirs. */
  show(schema: Schema): void {
    this.shown = schema;
    for (const [file, { entry, segment }] of this.sealed)
      if (segment !== null) this.sealed.set(file, { entry, segment, rowGroups: segment.rowGroups(schema) });
    this.attached.show(schema);
    this.mergeSealed();
    this.changes.tell();
  }

  get manifest(): Manifest | undefined {
    return this.newest;
  }

  get hot(): readonly HotFile[] {
    return this.hotFiles;
  }

  /** Replaces the state by a newer manifest. Hot files that it still names keep their rows; `values` are rebuilt from the manifest. */
  async replaceManifest(manifest: Manifest): Promise<void> {
    const detached = await this.attached.take(manifest, this.schema);
    const sealed = new Map<string, OpenSegment>();
    for (const entry of manifest.segments) {
      const before = this.sealed.get(entry.file);
      // Its live rows may have changed. It is opened anew only where its rows have moved to the far tier or back.
      const isSame = before !== undefined && isFarOnly(before.entry) === isFarOnly(entry);
      sealed.set(entry.file, isSame ? { ...before, entry } : this.openSegment(manifest, entry));
    }
    const previousHot = new Map(this.hotFiles.map((hot) => [hot.entry.file, hot]));
    this.hotFiles = manifest.hot.map((entry) => {
      const before = previousHot.get(entry.file);
      if (before !== undefined) {
        before.entry = entry;
        return before;
      }
      const schema = schemaOf(manifest, entry.schemaVersion);
      return { entry, schema, rows: new HotRows(schema, entry.file), endBytes: 0, rejected: null };
    });
    for (const { entry } of this.hotFiles) previousHot.delete(entry.file);
    const gone: Closable[] = [...this.sealed].flatMap(([file, { segment }]) =>
      segment === null || sealed.get(file)?.segment === segment ? [] : [segment],
    );
    this.sealed = sealed;
    this.newest = manifest;
    this.values = new CommittedValues(manifest);
    this.mergeSealed();
    for (const closable of [...gone, ...detached]) this.closeWhenUnpinned(closable);
    for (const { rows } of previousHot.values()) this.retiredHot.push({ rows, since: manifest.number });
    this.giveBackHot();
    this.changes.tell();
  }

  /** Reuses the memory of sealed hot rows that no snapshot reads. Keeps a few that are still read, and leaves the others to the GC. */
  private giveBackHot(): void {
    this.retiredHot = this.retiredHot.filter(({ rows, since }) => {
      if (this.pinnedBefore(since)) return true;
      rows.giveBack();
      return false;
    });
    this.retiredHot.splice(0, Math.max(0, this.retiredHot.length - retiredHotMax));
  }

  private mergeSealed(): void {
    const sealed = [...this.sealed.values()]
      .flatMap(({ entry, segment, rowGroups }) =>
        segment === null
          ? liveRuns(entry).map((run) => ({ ...run, rowGroup: rowGroups[0]! }))
          : runsOfSegment(entry, rowGroups),
      )
      .sort(compareRuns);
    this.sealedRuns = mergeRuns(this.attached.runs(), sealed);
    this.currentRuns = undefined;
  }

  private openSegment(manifest: Manifest, entry: SegmentEntry): OpenSegment {
    const schema = schemaOf(manifest, entry.schemaVersion);
    if (isFarOnly(entry)) {
      const rows = rowsOfCopy(this.agent, entry.far!, entry.schemaVersion, schema);
      return { entry, segment: null, rowGroups: [remoteRowGroup(entry, rows)] };
    }
    const path = `${this.agent}/${entry.file}`;
    const segment = new SealedSegment(this.directory, path, entry, schema, this.pool);
    return { entry, segment, rowGroups: segment.rowGroups(this.schema) };
  }

  private closeWhenUnpinned(closable: Closable): void {
    if (this.pins.size === 0) closable.close();
    else this.retired.push(closable);
  }

  /** Adds a durable hot batch. `folded` is true where the manifest's values include the batch already. */
  addBatch(hot: HotFile, batch: HotBatch, folded: boolean): void {
    hot.rows.append(batch.batch, batch.runs);
    hot.endBytes = batch.offset + batch.bytes;
    hot.rejected = batch.meta.rejected ?? hot.rejected;
    this.currentRuns = undefined;
    if (!folded) {
      this.values.applyRuns(batch.runs);
      this.values.applyCheckpoints(batch.meta.checkpoints);
      this.values.applyCounters(batch.meta.counters);
    }
    this.changes.tell();
  }

  /** Number of rows that are not sealed yet. */
  get hotRowCount(): number {
    return this.hotFiles.reduce((sum, hot) => sum + hot.rows.rowCount, 0);
  }

  /** Number of live records, hot and sealed. Excludes rows of attached files. */
  get rowCount(): number {
    const sealed = this.newest?.segments ?? [];
    return sealed.reduce((sum, entry) => sum + liveRows(entry), this.hotRowCount);
  }

  /** Bytes of the hot files. */
  get hotBytes(): number {
    return this.hotFiles.reduce((sum, hot) => sum + hot.endBytes, 0);
  }

  hotRejected(): RejectedEntry[] {
    return this.hotFiles.flatMap((hot) => hot.rejected ?? []);
  }

  /** Bytes of the files of rejected lines. */
  get rejectedBytes(): number {
    return this.rejected().reduce((sum, { bytes }) => sum + bytes, 0);
  }

  /** The files of rejected lines with their current lengths. */
  rejected(): RejectedEntry[] {
    return mergeRejected(this.newest?.rejected ?? [], this.hotRejected());
  }

  /** The files of rejected lines that are no longer appended to. */
  settledRejected(): RejectedEntry[] {
    const growing = new Set(this.hotRejected().map(({ file }) => file));
    return this.rejected().filter(({ file }) => !growing.has(file));
  }

  /** Paths, relative to the agent's folder, of all files that the newest state names. */
  namedFiles(): Set<string> {
    return this.newest === undefined ? new Set() : namedFiles(this.newest, this.hotRejected());
  }

  /**
   * Takes a snapshot of the newest state. Files that leave the manifest stay readable until every snapshot that saw them is released.
   * Throws the state's damage.
   */
  snapshot(): Snapshot {
    if (this.damage !== undefined) throw this.damage;
    this.currentRuns ??= this.runsWithHot();
    const generation = this.newest?.number ?? 0;
    manifestNumbers.set(this.currentRuns, generation);
    this.pins.set(generation, (this.pins.get(generation) ?? 0) + 1);
    let released = false;
    return {
      schema: this.schema,
      runs: this.currentRuns,
      release: () => {
        if (released) return;
        released = true;
        this.unpin(generation);
      },
    };
  }

  private unpin(generation: number): void {
    const count = this.pins.get(generation)! - 1;
    assert(count >= 0, 'a snapshot was released more often than it was taken');
    if (count > 0) this.pins.set(generation, count);
    else this.pins.delete(generation);
    if (this.pins.size === 0) {
      for (const closable of this.retired) closable.close();
      this.retired = [];
    }
    if (this.retiredHot.length > 0) this.giveBackHot();
  }

  /** Whether a snapshot of a manifest below `number` is still in use. */
  pinnedBefore(number: number): boolean {
    for (const generation of this.pins.keys()) if (generation < number) return true;
    return false;
  }

  private runsWithHot(): SnapshotRuns {
    const hotRuns: SnapshotRun[] = [];
    for (const hot of this.hotFiles) {
      if (hot.rows.rowCount === 0) continue;
      const rowGroup = hot.rows.rowGroup(this.schema, hot.rows.rowCount);
      for (const run of hot.rows.runs()) hotRuns.push({ ...run, rowGroup });
    }
    if (hotRuns.length === 0) return this.sealedRuns;
    hotRuns.sort(compareRuns);
    return mergeRuns(this.sealedRuns, hotRuns);
  }

  close(): void {
    for (const { segment } of this.sealed.values()) segment?.close();
    for (const closable of this.retired) closable.close();
    this.attached.close();
    this.sealed.clear();
    this.retired = [];
  }
}

/** The schema that has number `version` in the manifest. */
export function schemaOf(manifest: Manifest, version: number): Schema {
  const found = manifest.schemas.find((known) => known.version === version);
  assert(found !== undefined, `schema version ${version} of agent ${manifest.agent} is unknown`);
  return found.schema;
}

/** A segment's live runs, split at the boundaries of its row groups. */
export function runsOfSegment(entry: SegmentEntry, rowGroups: readonly RowGroup[]): SnapshotRun[] {
  const result: SnapshotRun[] = [];
  let group = 0;
  let groupStart = 0;
  for (const run of liveRuns(entry)) {
    let done = 0;
    while (done < run.rows) {
      const row = run.firstRow + done;
      while (row >= groupStart + entry.rowGroupRows[group]!) groupStart += entry.rowGroupRows[group++]!;
      const rows = Math.min(run.rows - done, groupStart + entry.rowGroupRows[group]! - row);
      result.push({
        rowGroup: rowGroups[group]!,
        firstRow: row - groupStart,
        rows,
        partition: run.partition,
        firstOrdinal: run.firstOrdinal + done,
      });
      done += rows;
    }
  }
  return result;
}
