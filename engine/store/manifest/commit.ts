import type { RecordBatch } from '../../columns/column.js';
import type { MemoryLease } from '../../memory/memory-lease.js';
import type { LostLoad } from './lost-loads.js';
import type { Schema } from '../../terms/schema.js';
import type { Checkpoint, Counters, LoadedPart, RejectedEntry } from './manifest.js';
import type { Codec } from '../../parquet/compression.js';

/** A line that became no record. It is kept, counted, and part of the commit that it came with. */
export interface RejectedLine {
  readonly reason: string;
  /** Where it came from: the path as given, `-` for standard input. */
  readonly file: string;
  /** Byte offset of the line in the uncompressed source. */
  readonly offset: number;
  readonly line: Uint8Array;
  /** When it was written at the latest (ms), where its times need that: they name no year. */
  readonly writtenMs?: number | undefined;
}

/** Rows of a commit that come from one source. */
export interface SourcePart {
  readonly rows: number;
  /** Placement time of the record before the first of them in their source; null when there is none. */
  readonly previousTimeMs: number | null;
  /** They were read on from a checkpoint, after the service was down: then none is late. */
  readonly catchingUp: boolean;
}

/** What goes with records into one commit. */
export interface CommitExtras {
  /** Checkpoints of the sources, replacing those with the same head. */
  readonly checkpoints: readonly Checkpoint[];
  readonly rejected: readonly RejectedLine[];
  /** Placement time of the record before the first of these in their source; null or absent when there is none. */
  readonly previousTimeMs?: number | null;
  /** Where the rows come from several sources: their parts, in the order of the rows. `previousTimeMs` is not looked at then. */
  readonly parts?: readonly SourcePart[];
  /** Version of the fields that the rows have, where that may have changed meanwhile. */
  readonly schemaVersion?: number;
  /** What the agent's rejected lines may take; those beyond are counted only. `rejectedBytesMaxDefault` if absent. */
  readonly rejectedBytesMax?: number | undefined;
  /** The `asOf` of the sources that the checkpoints were made from; absent when nobody else reads the same files. */
  readonly asOf?: number;
  /** What this commit adds, apart from `records` and `rejected`, which the engine counts. */
  readonly counters: Pick<Counters, 'unreadableValues' | 'replacedBytes' | 'inputBytes'>;
}

/** What goes with the records of a load. */
export interface LoadExtras extends Pick<CommitExtras, 'checkpoints' | 'counters'> {
  /** What they were read from, in that order, where it can be read again. */
  readonly parts?: readonly LoadedPart[];
  /** Attached files, by their ids, whose rows these are: they leave with the same manifest. */
  readonly detaches?: readonly string[];
  /** Called when nobody else can commit any more before this commit: what it throws is thrown instead of committing. */
  readonly check?: () => Promise<void>;
}

export interface LoadOptions {
  readonly codec?: Codec;
  /** Store also records that are older than the agent's retention period, for that period from now on. Else they are refused. */
  readonly beyondRetention?: boolean;
  /** What is lost of an earlier load, to be brought back: nothing else is stored of the rows, and no rejected line. */
  readonly restores?: LostLoad;
  /**
   * A file of rejected lines that the load takes the place of: each of its lines is given to the session, as a record or again as a
   * rejected line. The file leaves the archive with the manifest that publishes them.
   */
  readonly takes?: RejectedEntry;
  /** What the agent's rejected lines may take; `rejectedBytesMaxDefault` if absent. With `takes` there is no bound. */
  readonly rejectedBytesMax?: number | undefined;
}

export interface LoadResult {
  /** What the load is named by, where it can be removed by itself; null where it can't. */
  readonly id: string | null;
  readonly records: number;
  readonly rejected: number;
  /** Bytes of the sealed segments. */
  readonly bytesOnDisk: number;
  readonly segments: number;
}

/**
 * Records of one unit (a file; with --merge all files of the command), built aside in bounded memory, sorted by
 * time, then published as a whole. Nothing is visible or kept before `commit` has returned, or after `abort`.
 */
/** Records to load. Where they lie in memory that is lent, the load frees it. */
export interface LoadBatch extends RecordBatch {
  /** Begins with the records as `packBatch` writes them, and holds nothing else. */
  readonly lease?: MemoryLease;
}

export interface LoadSession {
  readonly schema: Schema;
  /**
   * Takes rows in the order of their source; `source` tells sources apart when their times can't be read. Returns the
   * placement time of the source's last record, in milliseconds; null when it has none yet. The batch's memory is the
   * load's from then on, and may move to another thread.
   *
   * @param previousTimeMs for a source that goes on from a checkpoint: the placement time of its last stored record
   */
  append(batch: LoadBatch, source: number, previousTimeMs?: number | null): Promise<number | null>;
  /**
   * Counts a line that became no record, and keeps it where it takes no more than `roomBytes` and what the agent has left for rejected
   * lines. Returns the bytes that it takes, 0 for one that is not kept: none of the unit is kept behind one that the agent had no room for.
   */
  reject(line: RejectedLine, roomBytes?: number): Promise<number>;
  /** Records and rejected lines so far. */
  readonly records: number;
  readonly rejected: number;
  /** Publishes everything in one manifest. `onProgress` gets 0…1 while what was taken is merged and written. */
  commit(extras: LoadExtras, onProgress?: (fraction: number) => void): Promise<LoadResult>;
  /** Leaves nothing behind. Safe after a failure, and after `commit`. */
  abort(): Promise<void>;
}

/**
 * A load of records that bring their cursors with them: ordinals of the partition that is kept for such. Nothing is visible or kept before
 * `commit` has returned, or after `abort`.
 */
export interface CursorSession {
  readonly schema: Schema;
  /** The first ordinal that no record has had: those that were imported before are below it. */
  readonly nextOrdinal: number;
  /**
   * Takes rows with their ordinals, which ascend over all calls. The batch's memory is the load's from then on. Throws `conflict` where the
   * agent has records of an earlier time, `limit` where the ordinals have more gaps than a manifest can name.
   */
  append(batch: RecordBatch, ordinals: Float64Array): Promise<void>;
  /** Publishes everything in one manifest. */
  commit(extras: Pick<LoadExtras, 'checkpoints' | 'counters' | 'check'>): Promise<LoadResult>;
  /** Leaves nothing behind. Safe after a failure, and after `commit`. */
  abort(): Promise<void>;
}

export interface AppendResult {
  readonly records: number;
  readonly rejected: number;
  /** How many of those lines are kept: the first ones, as far as there is room. */
  readonly rejectedKept: number;
  /** Placement time of the last record, where the source's next one goes if its time can't be read; null without one. */
  readonly lastTimeMs: number | null;
}
