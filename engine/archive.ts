import type { RecordBatch } from './columns/column.js';
import type { Query, ScanStats } from './scan/query.js';
import type { SelectedRows } from './scan/selected-rows.js';
import type { Schema } from './schema.js';
import type { Snapshot } from './scan/snapshot.js';
import type { CommitExtras, LoadOptions, LoadSession, RejectedLine } from './storage/commit.js';
import type { RepairOptions, RepairReport } from './maintenance/repair.js';
import type { RetentionEvent, WantedPolicy } from './maintenance/retention-change.js';
import type { OverCount } from './maintenance/retention-policy.js';
import type {
  Checkpoint,
  Codec,
  Counters,
  KeptPolicy,
  RejectedEntry,
  RetentionPolicy,
  Retired,
} from './storage/manifest.js';

/**
 * A data folder. Opened to write, this process holds the folder's lock, or, when another process does, commits
 * through that one. Opened to read, it follows whatever the writer publishes.
 */
export interface Archive {
  /** Absolute path of the data folder, for messages. */
  readonly location: string;
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
  /** Finishes commits under way, records the committed length of hot files, releases the lock. */
  close(): Promise<void>;
}

/** How long records are kept, and how often to look. An archive that is opened with `background` takes them away by itself. */
export interface Retention extends WantedPolicy {
  readonly intervalMs: number;
}

/** What a policy means for the records that are there. */
export interface RetentionOutlook {
  /** The policy in force, and the one that waits. */
  readonly kept: KeptPolicy;
  /** What the policy that was asked about takes of the records. */
  readonly over: OverCount;
  readonly records: number;
}

export interface AgentStore {
  readonly name: string;
  readonly schema: Schema;
  /** The newest committed state. In read mode this looks for a newer one first. */
  snapshot(): Promise<Snapshot>;
  /** Starts a query on the newest state. Its errors come from `lines`. No promise where the newest state is known: in the writer. */
  scan(query: Query, options?: ScanOptions): Scan | Promise<Scan>;
  /** The same answer as columns, in pieces of at most a row group. */
  selectRows(
    query: Query,
    options?: { readonly signal?: AbortSignal | undefined },
  ): AsyncIterable<SelectedRows>;
  /** Every source's last checkpoint, that of hot batches included. */
  checkpoints(): Promise<readonly Checkpoint[]>;
  /** The same, with the state that they are of: for `CommitExtras.asOf`. */
  sources(): Promise<KnownSources>;
  /** Commits rows to the hot segment, durably, in one batch. `live` and `load` differ in where a record is placed. */
  append(batch: RecordBatch, extras: CommitExtras, placement: 'live' | 'load'): Promise<AppendResult>;
  /** Opens a unit of loading. */
  beginLoad(options?: LoadOptions): Promise<LoadSession>;
  /**
   * The files of rejected lines that a load can take over (`LoadOptions.takes`). What is hot is sealed for that where it names one, so
   * that no such file still grows.
   */
  rejectedFiles(): Promise<readonly RejectedEntry[]>;
  /** The lines of one of them, in groups, in its order. Throws `damaged`, and `not_found` for one that has gone. */
  rejectedLines(entry: RejectedEntry): AsyncIterable<readonly RejectedLine[]>;
  /** Seals what is hot and merges small segments. Cursors and answers stay the same. */
  compact(options?: CompactOptions): Promise<CompactResult>;
  /** Reads every byte that the manifest names and compares it with its checksums. */
  verify(options?: VerifyOptions): Promise<VerifyReport>;
  stats(): Promise<StoreStats>;
}

export interface KnownSources {
  readonly checkpoints: readonly Checkpoint[];
  /** The state that they are of. */
  readonly asOf: number;
}

export interface ScanOptions {
  /** Stops the scan. A function is asked for it, always for the same one, where the scan lasts long enough to be stopped. */
  readonly signal?: AbortSignal | (() => AbortSignal) | undefined;
  /** Memory of one piece of the answer; the default is `answerBytesMax`. */
  readonly pieceBytes?: number | undefined;
  /**
   * Pieces are lent: each may be read until the next one is asked for or the scan is ended, and lies in memory that is written to
   * again then. That saves a copy of the whole answer. Their reader goes on to the end or calls `return`, also after an abort. By
   * default a piece is its reader's own.
   */
  readonly lends?: boolean | undefined;
  /**
   * Lent pieces may be those that another scan was given in the same turn of the event loop, for the same query to the same state: the same
   * object then, which never stands for other bytes, so that what is made of it can be used again. What such a scan cost stands in the
   * statistics of the first one alone.
   */
  readonly joins?: boolean | undefined;
  /**
   * Called with true when the scan begins to wait until other long answers let it have memory, and with false when that is over: it does
   * nothing meanwhile.
   */
  readonly onTurn?: ((waits: boolean) => void) | undefined;
}

/** What can be asked for without waiting, too. */
export interface ReadyIterable<T> extends AsyncIterableIterator<T, void> {
  /**
   * The next one, if it can be had without waiting for anything; null where it can't, and while a call of `next` is under way. Then
   * `next` gives it.
   */
  now(): IteratorResult<T, void> | null;
  /** What was given last is all there is: nothing but the end follows. */
  readonly isAtEnd: boolean;
  return(): Promise<IteratorResult<T, void>>;
}

export interface Scan {
  /** The answer as JSON Lines, in pieces of whole lines. Read once. Ending early (return, or the signal) stops the work. */
  readonly lines: AsyncIterable<Uint8Array> | ReadyIterable<Uint8Array>;
  readonly stats: ScanStats;
}

export interface AppendResult {
  readonly records: number;
  readonly rejected: number;
  /** Placement time of the last record, where the source's next one goes if its time can't be read; null without one. */
  readonly lastTimeMs: number | null;
}

export interface CompactOptions {
  /** For every segment; by default LZ4, and ZSTD for days that are old enough. */
  readonly codec?: Codec | undefined;
  readonly signal?: AbortSignal | undefined;
  readonly onProgress?: ((fraction: number) => void) | undefined;
}

export interface CompactResult {
  readonly segmentsBefore: number;
  readonly segmentsAfter: number;
  readonly bytesBefore: number;
  readonly bytesAfter: number;
}

export interface VerifyOptions {
  readonly signal?: AbortSignal | undefined;
  readonly onProgress?: ((fraction: number) => void) | undefined;
}

export interface Damage {
  readonly file: string;
  /** Byte offset of what is damaged, where it can be told. */
  readonly offset: number | null;
  readonly rowGroup: number | null;
  readonly column: string | null;
  readonly reason: string;
  /** Records that can't be answered; null where nothing tells how many. */
  readonly records: number | null;
  /** First and last position of those, as cursors, as far as they are known. */
  readonly positions: readonly { readonly first: string; readonly last: string; readonly records: number }[];
}

export interface VerifyReport {
  readonly files: number;
  readonly bytes: number;
  readonly records: number;
  readonly damages: readonly Damage[];
  /** Files in the agent's folder that the manifest does not name. */
  readonly unnamedFiles: readonly string[];
}

export interface StoreStats {
  readonly agent: string;
  readonly manifest: number;
  readonly records: number;
  readonly segments: number;
  readonly rowGroups: number;
  readonly hotRecords: number;
  readonly hotFiles: number;
  readonly bytesSealed: number;
  /** Bytes of the segments whose codec is ZSTD. */
  readonly bytesZstd: number;
  readonly bytesHot: number;
  readonly bytesGramFilters: number;
  readonly bytesRejected: number;
  /** Lines that are kept because they became no record. */
  readonly linesRejected: number;
  readonly timeMinMs: number | null;
  readonly timeMaxMs: number | null;
  readonly firstCursor: string | null;
  readonly lastCursor: string | null;
  readonly sources: number;
  readonly counters: Counters;
  /** What retention has taken, over the agent's life. */
  readonly retired: Retired;
  readonly schema: Schema;
}
