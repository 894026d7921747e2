import type { BackupFolder } from './backup-folder.js';
import type { BackupOptions, BackupResult } from '../maintenance/backup.js';
import type { RecordBatch } from '../columns/column.js';
import type { CountQuery, Counts } from '../scan/plan/count.js';
import type { Query } from '../scan/plan/query.js';
import type { SelectedRows } from '../scan/selected-rows.js';
import type { Schema } from '../terms/schema.js';
import type { AttachOptions, AttachRequest, AttachResult } from '../store/attached/attach-files.js';
import type { ObjectStorage } from '../store/objects/object-storage.js';
import type { IndexOptions, IndexResult } from '../store/attached/index-files.js';
import type { AttachedFile } from '../store/attached/attached-file.js';
import type { HashOptions } from '../store/imported/hash-file.js';
import type { FileToImport, ImportedRows } from '../store/imported/read-rows.js';
import type { Border } from '../reader/border.js';
import type { RowsAnswer, RowsQuestion } from '../reader/rows-between.js';
import type { Snapshot } from '../store/reading/snapshot.js';
import type { SeenState } from './seen-state.js';
import type {
  AppendResult,
  CommitExtras,
  CursorSession,
  LoadOptions,
  LoadSession,
  RejectedLine,
} from '../store/manifest/commit.js';
import type { LostLoad } from '../store/manifest/lost-loads.js';
import type { RemovalOptions, RemovalOutlook, RemovalWish, StoredLoad } from '../maintenance/removal.js';
import type { RepairReport } from '../maintenance/repair.js';
import type { Retention, RetentionEvent } from '../store/manifest/retention-change.js';
import type { Checkpoint, RejectedEntry, RetentionPolicy } from '../store/manifest/manifest.js';
import type { Scan, ScanOptions } from '../scan/plan/scan.js';
import type { CompactOptions, CompactResult } from '../maintenance/compaction.js';
import type { FetchResult, FetchWish } from '../maintenance/far/fetch-units.js';
import type { FarReport } from '../maintenance/far/verify-far.js';
import type { ShipOptions, ShipResult } from '../maintenance/far/ship-agent.js';
import type { VerifyOptions, VerifyReport } from '../maintenance/verify.js';
import type { StoreStats } from '../maintenance/stats.js';
import type { RetentionOutlook } from '../maintenance/agent-retention.js';
import type { ArchiveFigures } from './archive-figures.js';
import type { Trouble } from './archive-troubles.js';
import type { RepairOptions } from '../maintenance/repair-context.js';

/**
 * An open data folder: the interface that commands and the server use. In write mode this process holds the folder's lock, or
 * commits through the process that holds it. In read mode it follows the states that the writer publishes.
 */
export interface Archive {
  /** Absolute path of the data folder, for messages. */
  readonly location: string;
  /** The object storage that `s3://` paths refer to; undefined when none is configured. */
  readonly objects: ObjectStorage | undefined;
  /** Names of all agents whose folder holds any of their files, even if the manifest is lost. Sorted. */
  agents(): Promise<string[]>;
  /**
   * Opens the store of one agent. With `schema`, it becomes the store's current schema; in write mode this creates the store or
   * adds a schema version. Without `schema`, throws `not_found` when the store does not exist. Without `retention`, the
   * retention of an earlier call stays; if there was none, records are kept for ever.
   */
  agent(name: string, schema?: Schema, retention?: Retention): Promise<AgentStore>;
  /**
   * Replaces the fields and the retention (`undefined`: none) of an open agent. Stored records stay as they are.
   * Nothing in this process may append to the agent meanwhile. After a failure the agent is as before.
   */
  redefine(name: string, schema: Schema, retention: Retention | undefined): Promise<AgentStore>;
  /**
   * Puts a retention policy in force at once, in the process that writes, and removes the records that exceed it. Returns
   * what happened. Throws `conflict` when that process has another policy for the agent, and `not_found` when the agent has no records.
   */
  applyRetention(name: string, policy: RetentionPolicy): Promise<readonly RetentionEvent[]>;
  /**
   * What a policy would remove of an agent's records. Without `policy`, this is about the policy that waits or is in force. Throws
   * `not_found` when the agent has no records.
   */
  retentionOutlook(name: string, policy?: RetentionPolicy): Promise<RetentionOutlook>;
  /** Sets the function that reads this process's status (plain data). While it is the writer, it sends it to processes that ask. */
  provideStatus(read: () => unknown): void;
  /** The status of the folder's writer; undefined when there is no writer, or it provides none. */
  writerStatus(): Promise<unknown>;
  /**
   * Repairs an agent's folder (`repairAgent`). The archive must be open `alone`, and the agent must not have been opened, neither here
   * nor by another process through this one. Throws `locked` when another process writes: its state would no longer match the folder.
   */
  repair(name: string, options: RepairOptions): Promise<RepairReport>;
  /** Verifies an agent as `AgentStore.verify` does, but also when its newest manifest can't be read and it can't be opened. */
  verify(name: string, options?: VerifyOptions): Promise<VerifyReport>;
  /** Figures for monitoring: what the archive holds, what it has done, and the free space of its disk. */
  figures(): Promise<ArchiveFigures>;
  /** The problems that keep this process from answering or storing all that it should; empty when there are none. */
  troubles(): Promise<readonly Trouble[]>;
  /** Whether upkeep rounds still end. A round waits for commits, so false means that this process's commits hang. */
  isWell(): boolean;
  /** Finishes pending commits, records the committed length of hot files, and releases the lock. */
  close(): Promise<void>;
}

/** The queries on one agent's records: those that also a reader on another machine can answer. */
export interface ReadableStore {
  readonly name: string;
  readonly schema: Schema;
  /** A snapshot of the newest committed state. In a process that does not write, it looks for a newer state first. */
  snapshot(): Promise<Snapshot>;
  /** Starts a query on the newest state. Its errors come from `lines`. The writer knows the newest state, and returns no promise. */
  scan(query: Query, options?: ScanOptions): Promise<Scan>;
  /**
   * Calls `call` soon after records become visible or the fields change. Returns a function that ends this. When another process
   * writes, its state is polled while there are listeners.
   */
  onChange(call: () => void): () => void;
  /** The newest state, to be compared with later ones. */
  seen(): Promise<SeenState>;
  /**
   * Scans the records that the newest state has and the earlier state `seen` does not have; all records when `seen` is null. Also
   * returns the state that it reads. Throws `conflict` when the fields have changed since `seen`.
   */
  scanAdded(query: Query, seen: SeenState | null, options?: ScanOptions): Promise<ScanOfState>;
  /**
   * Scans the records of an earlier state, as far as they are still stored. Throws `conflict` when the fields have changed since `seen`.
   */
  scanSeen(query: Query, seen: SeenState, options?: ScanOptions): Promise<Scan>;
  /** Answers the same queries as `scan`, as columns instead of lines, in pieces of at most one row group. */
  selectRows(
    query: Query,
    options?: { readonly signal?: AbortSignal | undefined },
  ): AsyncIterable<SelectedRows>;
  /** Counts the matching records exactly, by time bucket, by the values of a field, or by both. Throws as `countRecords` does. */
  count(query: CountQuery, options?: { readonly signal?: AbortSignal | undefined }): Promise<Counts>;
}

/** One agent of an open data folder: queries, loads, upkeep and checks of its records. */
export interface AgentStore extends ReadableStore {
  /** Where each record of the newest state is. Readers on other machines ask for it. */
  border(): Promise<Border>;
  /** Records between two positions, for readers on other machines. Throws as `scan` does. */
  rowsBetween(question: RowsQuestion, options?: Pick<ScanOptions, 'signal'>): Promise<RowsAnswer>;
  /** The last checkpoint of each source, including those in hot batches. */
  checkpoints(): Promise<readonly Checkpoint[]>;
  /** The same checkpoints, with the number of the state that they come from, for `CommitExtras.asOf`. */
  sources(): Promise<KnownSources>;
  /** Commits rows to the hot segment, durably, in one batch. `live` and `load` differ in where a record is placed. */
  append(batch: RecordBatch, extras: CommitExtras, placement: 'live' | 'load'): Promise<AppendResult>;
  /** Begins a load. */
  beginLoad(options?: LoadOptions): Promise<LoadSession>;
  /**
   * Reads all rows of another program's file and passes them to `take` as values of the agent's fields, to be loaded: see
   * `readRows` in `store/imported/read-rows.ts`.
   */
  readRows(
    file: FileToImport,
    take: (rows: ImportedRows) => Promise<void>,
    signal?: AbortSignal,
  ): Promise<string>;
  /** The hash of a file's bytes, in the form in which checkpoints keep the hash of a source's content. */
  hashFile(file: FileToImport, options?: HashOptions): Promise<string>;
  /** Begins a load of records that already have cursors. */
  beginCursorLoad(options?: Pick<LoadOptions, 'codec'>): Promise<CursorSession>;
  /** The loads that have lost records. A load with `LoadOptions.restores` brings them back. */
  lostLoads(): Promise<readonly LostLoad[]>;
  /**
   * The files of rejected lines that a load can take over (`LoadOptions.takes`). When the hot segment names such a file, it is sealed
   * first, so that the file no longer grows.
   */
  rejectedFiles(): Promise<readonly RejectedEntry[]>;
  /** The lines of a file of rejected lines, in groups, in the file's order. Throws `damaged`, and `not_found` when the file is gone. */
  rejectedLines(entry: RejectedEntry): AsyncIterable<readonly RejectedLine[]>;
  /** The attached files: other programs' files that the agent answers from in place. */
  attachedFiles(): Promise<readonly AttachedFile[]>;
  /**
   * Attaches files, and moves and detaches attached ones, in one commit. Reads the footer of each new file and the column that places
   * its rows. A file that can't be read is not attached, and the result reports the problem. The files themselves do not change.
   */
  attach(request: AttachRequest, options?: AttachOptions): Promise<AttachResult>;
  /** Indexes the attached files that have no index yet, or an index of other fields. */
  indexAttached(options?: IndexOptions): Promise<IndexResult>;
  /** Seals the hot segment and merges small segments. Cursors and answers stay the same. */
  compact(options?: CompactOptions): Promise<CompactResult>;
  /**
   * Ships segments that are old enough to the far tier, and drops the local copy of those that were shipped long enough ago. Throws
   * `invalid` when no far tier is configured, and `unavailable` with the server that refused.
   */
  shipFar(options?: ShipOptions): Promise<ShipResult>;
  /** Copies units of the far tier back to this folder, where they then stay: see `fetchUnits`. Throws as `shipFar` does. */
  fetchFar(wish: FetchWish, options?: ShipOptions): Promise<FetchResult>;
  /** Counts the units of the far tier on each of its replicas. Throws `invalid` when no far tier is configured. */
  verifyFar(options?: ShipOptions): Promise<FarReport>;
  /** Reads every byte that the manifest names and compares it with its checksums. */
  verify(options?: VerifyOptions): Promise<VerifyReport>;
  /** Updates the agent's copy in a backup folder: see `backupAgent` in `maintenance/backup.ts`. */
  backup(target: BackupFolder, options?: BackupOptions): Promise<BackupResult>;
  /** The loads that still have records here, the newest last, as far back as loads are known. */
  loads(): Promise<readonly StoredLoad[]>;
  /** What a removal would remove. Seals the hot segment first. Throws `not_found` when the wish names a load that does not exist. */
  removalOutlook(wish: RemovalWish): Promise<RemovalOutlook>;
  /** Removes records, in one publication. Their positions are never given to other records. */
  remove(wish: RemovalWish, options?: RemovalOptions): Promise<RemovalOutlook>;
  stats(): Promise<StoreStats>;
}

/** A scan with the state that it reads. */
export interface ScanOfState {
  readonly scan: Scan;
  readonly state: SeenState;
}

/** The last checkpoint of each source in one state. */
export interface KnownSources {
  readonly checkpoints: readonly Checkpoint[];
  /** Number of the state that the checkpoints come from. */
  readonly asOf: number;
}
