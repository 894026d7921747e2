import type { RecordBatch } from '../../columns/column.js';
import type { MemoryLease } from '../../memory/memory-lease.js';
import type { LostLoad } from './lost-loads.js';
import type { Schema } from '../../terms/schema.js';
import type { Checkpoint, Counters, LoadedPart, RejectedEntry } from './manifest.js';
import type { Codec } from '../../parquet/compression.js';

/** A line that could not be decoded into a record. It is counted, and stored if there is room, in the same commit as the records around it. */
export interface RejectedLine {
  readonly reason: string;
  /** Source of the line: the path as given, `-` for standard input. */
  readonly file: string;
  /** Byte offset of the line in the uncompressed source. */
  readonly offset: number;
  readonly line: Uint8Array;
  /** Latest time (ms) at which the line can have been written. Set where its times name no year, to complete them. */
  readonly writtenMs?: number | undefined;
}

/** The rows of a commit that come from one source. */
export interface SourcePart {
  readonly rows: number;
  /** Placement time of the source's record before the first of these rows; null when there is none. */
  readonly previousTimeMs: number | null;
  /** Whether the rows were read on from a checkpoint after the service was down. Then none of them counts as late. */
  readonly catchingUp: boolean;
}

/** What is committed together with records. */
export interface CommitExtras {
  /** Checkpoints of the sources. Each replaces the one that it continues. */
  readonly checkpoints: readonly Checkpoint[];
  readonly rejected: readonly RejectedLine[];
  /** Placement time of the source's record before the first of these; null or absent when there is none. */
  readonly previousTimeMs?: number | null;
  /** The parts of a commit from several sources, in the order of the rows. `previousTimeMs` is then ignored. */
  readonly parts?: readonly SourcePart[];
  /** Schema version of the rows, given where the agent's fields may have changed since the rows were decoded. */
  readonly schemaVersion?: number;
  /** Limit on the bytes of the agent's rejected lines; `rejectedBytesMaxDefault` if absent. Lines beyond it are counted but not kept. */
  readonly rejectedBytesMax?: number | undefined;
  /** The number of the manifest from which the reader of the sources took their checkpoints. Absent when nobody else reads the same files. */
  readonly asOf?: number;
  /** What this commit adds to the counters. The engine counts `records` and `rejected` itself. */
  readonly counters: Pick<Counters, 'unreadableValues' | 'replacedBytes' | 'inputBytes'>;
}

/** What is committed together with the records of a load. */
export interface LoadExtras extends Pick<CommitExtras, 'checkpoints' | 'counters'> {
  /** The sources in the order in which they were read. Only for sources that can be read again. */
  readonly parts?: readonly LoadedPart[];
  /** Ids of attached files whose rows this load stores. They are detached in the same manifest. */
  readonly detaches?: readonly string[];
  /** Called under the commit lock, before publishing. If it throws, nothing is committed and the error is passed on. */
  readonly check?: () => Promise<void>;
}

export interface LoadOptions {
  readonly codec?: Codec;
  /** Store records that are older than the agent's retention period too, and keep them for that period from now on. By default they are refused. */
  readonly beyondRetention?: boolean;
  /** Records of an earlier load that were lost and are to be restored. Only those rows are stored, and no rejected lines. */
  readonly restores?: LostLoad;
  /**
   * A file of rejected lines that this load decodes again. The session is given each of its lines, as a record or as a rejected line. The
   * manifest that publishes the load removes the file.
   */
  readonly takes?: RejectedEntry;
  /** Limit on the bytes of the agent's rejected lines; `rejectedBytesMaxDefault` if absent. No limit applies with `takes`. */
  readonly rejectedBytesMax?: number | undefined;
}

export interface LoadResult {
  /** Id by which the load can be removed later; null where it cannot be removed by itself. */
  readonly id: string | null;
  readonly records: number;
  readonly rejected: number;
  /** Bytes of the sealed segments. */
  readonly bytesOnDisk: number;
  readonly segments: number;
}

/** Records to load. If they are in lent memory, the load frees it. */
export interface LoadBatch extends RecordBatch {
  /** The lent memory. It holds only these records, from its start, as `packBatch` writes them. */
  readonly lease?: MemoryLease;
}

/**
 * Loads one unit: a file, or with --merge all files of a command. Its records are sorted by time and built aside in bounded memory, and
 * then published as a whole. Nothing is visible or kept before `commit` has returned, or after `abort`.
 */
export interface LoadSession {
  readonly schema: Schema;
  /**
   * Adds rows in the order of their source. The batch's memory belongs to the load from then on, and may move to another thread.
   *
   * @param source identifies the source, because a row without a readable time is placed by the row before it in its source
   * @param previousTimeMs for a source that continues from a checkpoint: the placement time of its last stored record
   * @returns the placement time (ms) of the source's last record; null when it has none yet
   */
  append(batch: LoadBatch, source: number, previousTimeMs?: number | null): Promise<number | null>;
  /**
   * Counts a rejected line. Keeps it if it takes at most `roomBytes` and at most what is left of the agent's limit on rejected lines. Once
   * a line has exceeded that limit, no later line of the unit is kept.
   *
   * @returns the bytes that the line takes; 0 for a line that is not kept
   */
  reject(line: RejectedLine, roomBytes?: number): Promise<number>;
  /** Records so far, and rejected lines so far. */
  readonly records: number;
  readonly rejected: number;
  /** Publishes everything in one manifest. `onProgress` gets 0…1 while the rows are merged and written. */
  commit(extras: LoadExtras, onProgress?: (fraction: number) => void): Promise<LoadResult>;
  /** Discards everything. Safe after a failure, and after `commit`. */
  abort(): Promise<void>;
}

/**
 * Loads records that bring their cursors with them, as ordinals of the partition that is reserved for imports. Nothing is visible or kept
 * before `commit` has returned, or after `abort`.
 */
export interface CursorSession {
  readonly schema: Schema;
  /** The first ordinal that no imported record has had. All earlier imports are below it. */
  readonly nextOrdinal: number;
  /**
   * Adds rows with their ordinals, which ascend over all calls. The batch's memory belongs to the load from then on. Throws `conflict` if
   * the agent has records of an earlier time, `limit` if the ordinals have more gaps than a manifest can name.
   */
  append(batch: RecordBatch, ordinals: Float64Array): Promise<void>;
  /** Publishes everything in one manifest. */
  commit(extras: Pick<LoadExtras, 'checkpoints' | 'counters' | 'check'>): Promise<LoadResult>;
  /** Discards everything. Safe after a failure, and after `commit`. */
  abort(): Promise<void>;
}

export interface AppendResult {
  readonly records: number;
  readonly rejected: number;
  /** How many of the rejected lines are kept: the first ones, as far as there is room. */
  readonly rejectedKept: number;
  /** Placement time of the last record; null without one. The source's next record gets it if its own time cannot be read. */
  readonly lastTimeMs: number | null;
}
