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
 * A data folder. Opened to write, this process holds the folder's lock, or, when another process does, commits
 * through that one. Opened to read, it follows whatever the writer publishes.
 */
export interface Archive {
  /** Absolute path of the data folder, for messages. */
  readonly location: string;
  /** Where `s3://` paths lead. */
  readonly objects: ObjectStorage | undefined;
  /** Agents that have a folder with anything of theirs in it, also where their manifest is lost. Sorted. */
  agents(): Promise<string[]>;
  /**
   * The store of one agent. With `schema` the store takes it as its current one (creating the store, or adding a schema
   * version, in write mode); without, the store must be there (`not_found`). Without `retention` its records are kept for
   * ever, or as long as an earlier call has said.
   */
  agent(name: string, schema?: Schema, retention?: Retention): Promise<AgentStore>;
  /**
   * Gives an agent other fields and another retention, or none, while it is open; records that are stored stay as they are. Nothing of
   * this process may be appending to it meanwhile. After a failure all is as before.
   */
  redefine(name: string, schema: Schema, retention: Retention | undefined): Promise<AgentStore>;
  /**
   * Puts a policy in force at once, in the process that writes, and has it take what is over; `retention` is what the agent's file says.
   * Tells what has happened. Throws `conflict` where that process has another policy of the agent, `not_found` for one without records.
   */
  applyRetention(name: string, policy: RetentionPolicy): Promise<readonly RetentionEvent[]>;
  /** What a policy means for an agent's records; without one, that which waits or is in force. Throws `not_found` for an agent without any. */
  retentionOutlook(name: string, policy?: RetentionPolicy): Promise<RetentionOutlook>;
  /** What this process answers others that ask for the writer's status, while it is the writer: plain data. */
  provideStatus(read: () => unknown): void;
  /** What the writer of the folder says of itself; undefined when there is none, or it says nothing. */
  writerStatus(): Promise<unknown>;
  /**
   * Mends an agent's folder (`repairAgent`), which must not have been opened, here or through this process: the archive is open
   * `alone`. Throws `locked` when another process writes here: what it knows would no longer be so.
   */
  repair(name: string, options: RepairOptions): Promise<RepairReport>;
  /** Verifies an agent (`AgentStore.verify`), also one whose newest manifest can't be read, and which therefore can't be opened. */
  verify(name: string, options?: VerifyOptions): Promise<VerifyReport>;
  /** What it holds and has done, and the disk. */
  figures(): Promise<ArchiveFigures>;
  /** What keeps this process from answering, or storing, all that it should; empty where nothing does. */
  troubles(): Promise<readonly Trouble[]>;
  /** Whether what this process commits still comes to an end, be it a failure. */
  isWell(): boolean;
  /** Finishes commits under way, records the committed length of hot files, releases the lock. */
  close(): Promise<void>;
}

/** What can be asked of an agent's records. */
export interface ReadableStore {
  readonly name: string;
  readonly schema: Schema;
  /** The newest committed state. In read mode this looks for a newer one first. */
  snapshot(): Promise<Snapshot>;
  /** Starts a query on the newest state. Its errors come from `lines`. No promise where the newest state is known: in the writer. */
  scan(query: Query, options?: ScanOptions): Scan | Promise<Scan>;
  /**
   * Calls `call` soon after records have become visible, or the fields have changed, until what is returned is called. Where another
   * process writes, its state is looked at now and then while somebody listens.
   */
  onChange(call: () => void): () => void;
  /** The newest state, to be compared with later ones. */
  seen(): Promise<SeenState>;
  /**
   * As `scan`, of the records that the newest state has and an earlier one, `seen`, has not; of all records where it is null. Also gives
   * the state that was read. Throws `conflict` where the fields have changed since.
   */
  scanAdded(query: Query, seen: SeenState | null, options?: ScanOptions): Promise<ScanOfState>;
  /** The same answer as columns, in pieces of at most a row group. */
  selectRows(
    query: Query,
    options?: { readonly signal?: AbortSignal | undefined },
  ): AsyncIterable<SelectedRows>;
  /** How many records match, by buckets of time, by the values of a field, or by both; exact. See `countRecords` for what it throws. */
  count(query: CountQuery, options?: { readonly signal?: AbortSignal | undefined }): Promise<Counts>;
}

export interface AgentStore extends ReadableStore {
  /** Where each record is, for readers on other machines. */
  border(): Promise<Border>;
  /** Records between two positions, for them. Throws as `scan` does. */
  rowsBetween(question: RowsQuestion, options?: Pick<ScanOptions, 'signal'>): Promise<RowsAnswer>;
  /** Every source's last checkpoint, that of hot batches included. */
  checkpoints(): Promise<readonly Checkpoint[]>;
  /** The same, with the state that they are of: for `CommitExtras.asOf`. */
  sources(): Promise<KnownSources>;
  /** Commits rows to the hot segment, durably, in one batch. `live` and `load` differ in where a record is placed. */
  append(batch: RecordBatch, extras: CommitExtras, placement: 'live' | 'load'): Promise<AppendResult>;
  /** Opens a unit of loading. */
  beginLoad(options?: LoadOptions): Promise<LoadSession>;
  /**
   * Gives all rows of a file of another program to `take`, as values of the fields, to be loaded: see `readRows` in
   * `store/imported/read-rows.ts`.
   */
  readRows(
    file: FileToImport,
    take: (rows: ImportedRows) => Promise<void>,
    signal?: AbortSignal,
  ): Promise<string>;
  /** The hash of a file's bytes, as checkpoints have that of a content. */
  hashFile(file: FileToImport, options?: HashOptions): Promise<string>;
  /** Opens a load of records that bring their cursors with them. */
  beginCursorLoad(options?: Pick<LoadOptions, 'codec'>): Promise<CursorSession>;
  /** What is lost of the records that loads gave: `LoadOptions.restores` brings it back. */
  lostLoads(): Promise<readonly LostLoad[]>;
  /**
   * The files of rejected lines that a load can take over (`LoadOptions.takes`). What is hot is sealed for that where it names one, so
   * that no such file still grows.
   */
  rejectedFiles(): Promise<readonly RejectedEntry[]>;
  /** The lines of one of them, in groups, in its order. Throws `damaged`, and `not_found` for one that has gone. */
  rejectedLines(entry: RejectedEntry): AsyncIterable<readonly RejectedLine[]>;
  /** The files of other programs that it answers from where they lie. */
  attachedFiles(): Promise<readonly AttachedFile[]>;
  /**
   * Attaches files, moves and removes attached ones, in one commit. Of each new file the footer and the column that places its rows are read;
   * one that can't be is a problem in the result, and stays out. Nothing in the files is changed.
   */
  attach(request: AttachRequest, options?: AttachOptions): Promise<AttachResult>;
  /** Indexes attached files that have no index yet, or one of other fields. */
  indexAttached(options?: IndexOptions): Promise<IndexResult>;
  /** Seals what is hot and merges small segments. Cursors and answers stay the same. */
  compact(options?: CompactOptions): Promise<CompactResult>;
  /**
   * Ships what is old enough to the far tier, and lets go of what was shipped long enough ago. Throws `invalid` where none is configured, and
   * `unavailable` with the server that refused.
   */
  shipFar(options?: ShipOptions): Promise<ShipResult>;
  /** Brings units of the far tier back, which then stay here: see `fetchUnits`. Throws as `shipFar` does. */
  fetchFar(wish: FetchWish, options?: ShipOptions): Promise<FetchResult>;
  /** Counts the units of the far tier on each of its replicas. Throws `invalid` where none is configured. */
  verifyFar(options?: ShipOptions): Promise<FarReport>;
  /** Reads every byte that the manifest names and compares it with its checksums. */
  verify(options?: VerifyOptions): Promise<VerifyReport>;
  /** Brings a copy in another folder up to date: see `backupAgent` in `maintenance/backup.ts`. */
  backup(target: BackupFolder, options?: BackupOptions): Promise<BackupResult>;
  /** The loads of which records are there, the newest last, as far back as they are known. */
  loads(): Promise<readonly StoredLoad[]>;
  /** What a wish to remove records comes to. What is hot is sealed for it. Throws `not_found` for a load that is not there. */
  removalOutlook(wish: RemovalWish): Promise<RemovalOutlook>;
  /** Removes records, in one publication. No other records ever get their positions. */
  remove(wish: RemovalWish, options?: RemovalOptions): Promise<RemovalOutlook>;
  stats(): Promise<StoreStats>;
}

/** A scan, and the state that it reads. */
export interface ScanOfState {
  readonly scan: Scan;
  readonly state: SeenState;
}

export interface KnownSources {
  readonly checkpoints: readonly Checkpoint[];
  /** The state that they are of. */
  readonly asOf: number;
}
