import type {
  AgentToShip,
  FarReport,
  FetchResult,
  FetchWish,
  ShipOptions,
  ShipResult,
  Tier,
} from './shipping.js';
import type { BackupFolder } from './backup-folder.js';
import { backupAgent, type BackupOptions, type BackupResult } from '../maintenance/backup.js';
import type { RecordBatch } from '../columns/column.js';
import { LogstrataError } from '../core/errors.js';
import { compactAgent, type CompactOptions, type CompactResult } from '../maintenance/compaction.js';
import { lostLoads, type LostLoad } from '../store/manifest/coverage.js';
import {
  previewRemoval,
  removeRecords,
  storedLoads,
  type RemovalContext,
  type RemovalOptions,
  type RemovalPreview,
  type RemovalRequest,
  type StoredLoad,
} from '../maintenance/removal.js';
import { agentStats, type StoreStats } from '../maintenance/stats.js';
import { verifyAgent, type VerifyOptions, type VerifyReport } from '../maintenance/verify.js';
import {
  attachFiles,
  type AttachOptions,
  type AttachRequest,
  type AttachResult,
} from '../store/attached/attach-files.js';
import type { AttachedFile, AttachingCommitter } from '../store/attached/attached-list.js';
import type { WorkerPool } from '../workers/worker-pool.js';
import type { AgentState } from '../store/reading/agent-state.js';
import type {
  AppendResult,
  CommitExtras,
  CursorSession,
  LoadOptions,
  LoadSession,
  RejectedLine,
} from '../store/manifest/commit.js';
import type { Directory } from '../store/disk/directory.js';
import { CursorLoad } from '../store/load/cursor-load.js';
import { LoadUnit } from '../store/load/load-session.js';
import { indexFiles, type IndexOptions, type IndexResult } from '../store/attached/index-files.js';
import { ForeignWork, type ForeignMeans } from '../store/attached/foreign-work.js';
import { hashFile, type HashOptions } from '../store/attached/hash-file.js';
import { readRows, type FileToImport, type ImportedRows } from '../store/attached/read-rows.js';
import { placementTimes } from '../store/manifest/placement.js';
import { partitionOfTime } from '../core/cursor.js';
import { extendRetention, type Retention } from '../store/manifest/retention-policy.js';
import type { Checkpoint, RejectedEntry } from '../store/manifest/manifest.js';
import { RestoreUnit } from '../store/load/restore-session.js';
import { readRejectedLines } from '../store/manifest/rejected-file.js';
import type { Codec } from '../parquet/compression.js';
import { ReadingStore, type ReadingAccess } from './reading-store.js';

/** How a store comes by its agent's newest state, and by commits: as the writer, through it, or not at all. */
export interface StoreAccess extends ReadingAccess {
  /** Throws when the archive was opened to read. */
  committer(): Promise<AttachingCommitter>;
}

export interface StoreContext {
  readonly directory: Directory;
  readonly state: AgentState;
  /** Replaced when this process becomes the writer. */
  access: StoreAccess;
  readonly now: () => number;
  readonly codec: Codec;
  /** How long records are kept; undefined for ever. */
  retention: Retention | undefined;
  /** Age of a day at which its segments get ZSTD; null for never. */
  readonly zstdAfterMs: number | null;
  readonly workers: WorkerPool;
  /** For files of other programs. */
  readonly foreign: ForeignMeans;
  /** Undefined where none is configured. */
  readonly far: Tier | undefined;
}

/** The last checkpoint of each source in one state. */
export interface KnownSources {
  readonly checkpoints: readonly Checkpoint[];
  /** Number of the state that the checkpoints come from. */
  readonly asOf: number;
}

/** One agent of an open data folder: queries, loads, upkeep and checks of its records. It ties state, commits, scans and maintenance together. */
export class AgentStore extends ReadingStore<StoreContext> {
  /** The last checkpoint of each source, including those in hot batches. */
  async checkpoints(): Promise<readonly Checkpoint[]> {
    return (await this.sources()).checkpoints;
  }

  /** The same checkpoints, with the number of the state that they come from, for `CommitExtras.asOf`. */
  async sources(): Promise<KnownSources> {
    const state = await this.undamaged();
    return { checkpoints: state.values.checkpoints(), asOf: state.manifest?.number ?? 0 };
  }

  /** Commits rows to the hot segment, durably, in one batch. `live` and `load` differ in where a record is placed. */
  async append(batch: RecordBatch, extras: CommitExtras, placement: 'live' | 'load'): Promise<AppendResult> {
    const committer = await this.context.access.committer();
    const periodMs = this.context.retention?.periodMs ?? null;
    if (placement === 'load' && periodMs !== null) this.refuseOver(batch, extras, periodMs);
    return committer.append(batch, extras, placement);
  }

  /** Rows of a stream have no segment of their own that could be kept longer than others. */
  private refuseOver(batch: RecordBatch, extras: CommitExtras, periodMs: number): void {
    const { state, now } = this.context;
    const nowMs = now();
    const part = { rows: batch.length, previousTimeMs: extras.previousTimeMs ?? null };
    const timesMs = placementTimes(this.schema, batch, nowMs, [part]);
    const counts = [...timesMs].map((timeMs) => [partitionOfTime(timeMs), 1] as const);
    const { highestPartition } = state.values;
    extendRetention({ agent: this.name, counts, highestPartition, nowMs, beyondRetention: false }, periodMs);
  }

  /** Begins a load. */
  async beginLoad(options: LoadOptions = {}): Promise<LoadSession> {
    const { directory, now, codec, workers } = this.context;
    const committer = await this.context.access.committer();
    const periodMs = this.context.retention?.periodMs ?? null;
    const highestPartition = () => this.context.state.values.highestPartition;
    const rejectedBytes = () => this.context.state.rejectedBytes;
    const context = {
      directory,
      agent: this.name,
      committer,
      now,
      codec: options.codec ?? codec,
      workers,
      periodMs,
      highestPartition,
      rejectedBytes,
    };
    const { restores } = options;
    return restores === undefined ? LoadUnit.begin(context, options) : RestoreUnit.begin(context, restores);
  }

  /** Begins a load of records that already have cursors. */
  async beginCursorLoad(options: Pick<LoadOptions, 'codec'> = {}): Promise<CursorSession> {
    const { directory, state, now, codec, workers, access } = this.context;
    const committer = await access.committer();
    const means = { directory, state, now, workers, refresh: this.refresh, codec: options.codec ?? codec };
    return CursorLoad.begin({ ...means, committer });
  }

  /**
   * Reads all rows of another program's file and passes them to `take` as values of the agent's fields, to be loaded: see
   * `readRows` in `store/imported/read-rows.ts`.
   */
  readRows(
    file: FileToImport,
    take: (rows: ImportedRows) => Promise<void>,
    signal?: AbortSignal,
  ): Promise<string> {
    const { schema } = this;
    const columnsAtOnce = this.context.workers.threads;
    return this.withForeignWork(signal, (work) =>
      readRows(file, { work, schema, columnsAtOnce, signal }, take),
    );
  }

  /** The hash of a file's bytes, in the form in which checkpoints keep the hash of a source's content. */
  hashFile(file: FileToImport, options: HashOptions = {}): Promise<string> {
    return this.withForeignWork(options.signal, (work) => hashFile(file, work, options));
  }

  /** The loads that have lost records. A load with `LoadOptions.restores` brings them back. */
  async lostLoads(): Promise<readonly LostLoad[]> {
    const state = await this.undamaged();
    return state.manifest === undefined ? [] : lostLoads(state.manifest);
  }

  /**
   * The files of rejected lines that a load can take over (`LoadOptions.takes`). When the hot segment names such a file, it is sealed
   * first, so that the file no longer grows.
   */
  async rejectedFiles(): Promise<readonly RejectedEntry[]> {
    const { state, access } = this.context;
    await access.refresh();
    if (state.hotRejected().length > 0) await (await access.committer()).seal();
    return (await this.undamaged()).settledRejected();
  }

  /** The lines of a file of rejected lines, in groups, in the file's order. Throws `damaged`, and `not_found` when the file is gone. */
  rejectedLines(entry: RejectedEntry): AsyncIterable<readonly RejectedLine[]> {
    return readRejectedLines(this.context.directory, `${this.name}/${entry.file}`, entry);
  }

  /** The attached files: other programs' files that the agent answers from in place. */
  async attachedFiles(): Promise<readonly AttachedFile[]> {
    return (await this.undamaged()).attached.files();
  }

  /**
   * Attaches files, and moves and detaches attached ones, in one commit. Reads the footer of each new file and the column that places
   * its rows. A file that can't be read is not attached, and the result reports the problem. The files themselves do not change.
   */
  async attach(request: AttachRequest, options: AttachOptions = {}): Promise<AttachResult> {
    const { access, now, workers } = this.context;
    const committer = await access.committer();
    return this.withForeignWork(options.signal, (work) =>
      attachFiles({ committer, now, work, filesAtOnce: workers.threads }, request, options),
    );
  }

  /** Indexes the attached files that have no index yet, or an index of other fields. */
  async indexAttached(options: IndexOptions = {}): Promise<IndexResult> {
    const { directory, access, workers } = this.context;
    const committer = await access.committer();
    const attached = await this.attachedFiles();
    return this.withForeignWork(options.signal, (work) => {
      const context = { directory, agent: this.name, committer, work, columnsAtOnce: workers.threads };
      return indexFiles(context, attached, options);
    });
  }

  /** Work on attached files, with a queue of its own that leaves the signal alone once it is done. */
  private async withForeignWork<T>(
    signal: AbortSignal | undefined,
    run: (work: ForeignWork) => Promise<T>,
  ): Promise<T> {
    const { foreign, workers } = this.context;
    const queue = workers.queue(signal);
    try {
      return await run(new ForeignWork(foreign, (task, job) => queue.run(task, job)));
    } finally {
      queue.end();
    }
  }

  /** Seals the hot segment and merges small segments. Cursors and answers stay the same. */
  async compact(options: CompactOptions = {}): Promise<CompactResult> {
    const committer = await this.context.access.committer();
    return compactAgent({ ...this.context, committer, refresh: this.refresh }, options);
  }

  /**
   * Ships segments that are old enough to the far tier, and drops the local copy of those that were shipped long enough ago. Throws
   * `invalid` when no far tier is configured, and `unavailable` with the server that refused.
   */
  async shipFar(options: ShipOptions = {}): Promise<ShipResult> {
    return this.farTier().ship(await this.toShip(), options);
  }

  /** Copies records of the far tier back to this folder, where they then stay. Throws as `shipFar` does. */
  async fetchFar(request: FetchWish, options: ShipOptions = {}): Promise<FetchResult> {
    return this.farTier().fetch(await this.toShip(), request, options);
  }

  /** Checks the records in the far tier on each of its replicas. Throws `invalid` when no far tier is configured. */
  async verifyFar(options: ShipOptions = {}): Promise<FarReport> {
    await this.refresh();
    return this.farTier().verify(this.context.state, options);
  }

  private async toShip(): Promise<AgentToShip> {
    return { ...this.context, committer: await this.context.access.committer(), refresh: this.refresh };
  }

  private readonly refresh = (): Promise<void> => this.context.access.refresh();

  /** The newest state. Throws why it can't be read, if its manifest is damaged. */
  private async undamaged(): Promise<AgentState> {
    await this.refresh();
    const { state } = this.context;
    if (state.damage !== undefined) throw state.damage;
    return state;
  }

  private farTier(): Tier {
    const { far } = this.context;
    if (far !== undefined) return far;
    throw new LogstrataError('invalid', 'no far tier is configured: set storage.far in config.yaml');
  }

  /** Reads every byte that the manifest names and compares it with its checksums. */
  async verify(options: VerifyOptions = {}): Promise<VerifyReport> {
    await this.refresh();
    const { directory, state, foreign } = this.context;
    return verifyAgent(directory, state, foreign.objects, options);
  }

  /** Updates the agent's copy in a backup folder: see `backupAgent` in `maintenance/backup.ts`. */
  async backup(target: BackupFolder, options: BackupOptions = {}): Promise<BackupResult> {
    const { directory, state } = this.context;
    return backupAgent({ directory, state, refresh: this.refresh }, target.directory, options);
  }

  /** The loads that still have records here, the newest last, as far back as loads are known. */
  async loads(): Promise<readonly StoredLoad[]> {
    const { manifest } = await this.undamaged();
    return manifest === undefined ? [] : storedLoads(manifest);
  }

  /** What a removal would remove. Seals the hot segment first. Throws `not_found` when the request names a load that does not exist. */
  async previewRemoval(request: RemovalRequest): Promise<RemovalPreview> {
    return previewRemoval(await this.removalContext(), request);
  }

  /** Removes records, in one publication. Their positions are never given to other records. */
  async remove(request: RemovalRequest, options: RemovalOptions = {}): Promise<RemovalPreview> {
    return removeRecords(await this.removalContext(), request, options);
  }

  private async removalContext(): Promise<RemovalContext> {
    const { directory, state, workers, now } = this.context;
    const committer = await this.context.access.committer();
    return {
      directory,
      state,
      workers,
      committer,
      refresh: this.refresh,
      partitionNow: partitionOfTime(now()),
    };
  }

  async stats(): Promise<StoreStats> {
    await this.refresh();
    return agentStats(this.context.state);
  }
}
