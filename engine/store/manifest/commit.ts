import type { RecordBatch } from '../../columns/column.js';
import type { MemoryLease } from '../../core/memory-lease.js';
import type { LostLoad } from './coverage.js';
import type { Schema } from '../../core/schema.js';
import {
  type Checkpoint,
  type Counters,
  type LoadedPart,
  type RejectedEntry,
  addCounters,
  noCounters,
  type LoadEntry,
  type Manifest,
  type OrdinalRun,
  type SegmentEntry,
} from './manifest.js';
import type { Codec } from '../../parquet/compression.js';
import type { FarChanges } from './far-changes.js';
import type { Removal } from './removal.js';
import { dayOfPartition } from '../../core/cursor.js';
import type { Directory } from '../disk/directory.js';

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
  readonly codec?: Codec | undefined;
  /** Store records that are older than the agent's retention period too, and keep them for that period from now on. By default they are refused. */
  readonly beyondRetention?: boolean | undefined;
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

/** The result of a load that has no id and no rejected lines. */
export function resultOf(records: number, segments: readonly SegmentEntry[]): LoadResult {
  const bytesOnDisk = segments.reduce((sum, { bytes }) => sum + bytes, 0);
  return { id: null, records, rejected: 0, bytesOnDisk, segments: segments.length };
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

/**
 * The values of a manifest plus those of the hot batches committed since: what the next manifest will say. A batch or a publication is
 * applied only once it is durable.
 */
export class CommittedValues {
  private readonly next: Map<number, number>;
  private readonly sources: Map<string, Checkpoint>;
  private readonly ordinalsFrom: number;
  private highest: number;
  private totals: Counters;

  constructor(manifest: Manifest | undefined, ordinalsFrom = manifest?.ordinalsFrom ?? 1) {
    this.next = new Map(manifest?.nextOrdinals ?? []);
    this.sources = new Map(
      (manifest?.checkpoints ?? []).map((checkpoint) => [checkpointKey(checkpoint), checkpoint]),
    );
    this.ordinalsFrom = ordinalsFrom;
    this.highest = manifest?.highestPartition ?? 0;
    this.totals = manifest?.counters ?? noCounters;
  }

  /** An independent copy, to which a publication can be applied before it is durable. */
  copy(): CommittedValues {
    const copy = new CommittedValues(undefined, this.ordinalsFrom);
    for (const [partition, ordinal] of this.next) copy.next.set(partition, ordinal);
    for (const [key, checkpoint] of this.sources) copy.sources.set(key, checkpoint);
    copy.highest = this.highest;
    copy.totals = this.totals;
    return copy;
  }

  /** The ordinal that the next record of the partition gets. */
  nextOrdinal(partition: number): number {
    return Math.max(this.next.get(partition) ?? 1, this.ordinalsFrom);
  }

  /** Highest partition that ever held a committed record, unless it was lowered; 0 for none. */
  get highestPartition(): number {
    return this.highest;
  }

  /** Counts over the agent's lifetime. */
  get counters(): Counters {
    return this.totals;
  }

  /** The checkpoints of all sources. */
  checkpoints(): Checkpoint[] {
    return [...this.sources.values()];
  }

  /** The checkpoint with this `checkpointKey`; undefined if there is none. */
  checkpoint(key: string): Checkpoint | undefined {
    return this.sources.get(key);
  }

  /** For the manifest: `[partition, next ordinal]` of every partition that ever held a record, ascending. */
  nextOrdinals(): [number, number][] {
    return [...this.next].sort((a, b) => a[0] - b[0]);
  }

  /** Marks the positions of runs as assigned. */
  applyRuns(runs: readonly OrdinalRun[]): void {
    for (const { partition, firstOrdinal, rows } of runs) {
      const next = this.next.get(partition) ?? 1;
      // Rows that are only rewritten have their positions already. They raise nothing.
      if (firstOrdinal + rows <= next) continue;
      this.next.set(partition, firstOrdinal + rows);
      this.highest = Math.max(this.highest, partition);
    }
  }

  /** Lowers the highest partition to at most `partition`, as somebody asked for. Positions that were assigned stay assigned. */
  lowerHighest(partition: number): void {
    this.highest = Math.min(this.highest, partition);
  }

  /** Marks the positions of segments as assigned. */
  applySegments(segments: readonly SegmentEntry[]): void {
    for (const segment of segments) this.applyRuns(segment.runs);
  }

  /** Replaces the checkpoints of sources. `packedInode` is not stored. */
  applyCheckpoints(checkpoints: readonly Checkpoint[]): void {
    for (const { continues, packedInode: _, ...checkpoint } of checkpoints) {
      if (continues !== undefined) this.sources.delete(continues);
      this.sources.set(checkpointKey(checkpoint), checkpoint);
    }
  }

  /**
   * Undoes the checkpoints of removed loads: their sources become unknown, or stored up to where they were before. A source that a later
   * load has continued keeps its checkpoint.
   */
  forget(gone: readonly LoadEntry[]): void {
    // Newest first: a load may have continued where another removed load had ended.
    for (const { parts } of gone.toReversed()) {
      for (const { from, until } of parts.toReversed()) {
        if (this.sources.delete(checkpointKey(until)) && from !== null)
          this.sources.set(checkpointKey(from), from);
      }
    }
  }

  applyCounters(counters: Counters): void {
    const totals = addCounters(this.totals, counters);
    // The rejected lines that a load takes over may outnumber those counted here, because a manifest that was rebuilt may count fewer.
    this.totals = { ...totals, rejected: Math.max(0, totals.rejected) };
  }
}

/**
 * The key of a source's checkpoint. A source is identified by the hash of its beginning and, where its stored content was hashed, by that
 * hash too, since different files may begin alike (a banner, a licence, column headings). A file that is followed is not hashed as a whole:
 * it is identified by its beginning, its inode, and the offset and hash of the last bytes stored. Equal files that are sources of their own
 * are numbered.
 */
export function checkpointKey(
  checkpoint: Pick<
    Checkpoint,
    'headHash' | 'headBytes' | 'contentHash' | 'offset' | 'inode' | 'tailHash' | 'copy'
  >,
): string {
  const { headBytes, headHash, contentHash, inode, copy } = checkpoint;
  if (contentHash !== null || inode === undefined)
    return `${headBytes}:${headHash}:${contentHash ?? ''}${copy === undefined ? '' : `:${copy}`}`;
  return `${headBytes}:${headHash}::${inode}:${checkpoint.offset}:${checkpoint.tailHash ?? ''}`;
}

/** Number of records of one partition that need ordinals: `[partition, records]`. */
export type PartitionCount = readonly [partition: number, records: number];

/** The first ordinal that a unit's records of a partition get: `[partition, ordinal]`. */
export type PartitionStart = readonly [partition: number, firstOrdinal: number];

/** What one manifest changes, except for the hot files. */
export interface Publication {
  /** New segments. Their files are in their final place already. */
  readonly segments: readonly SegmentEntry[];
  /** Files of segments that leave the manifest. Their records are in `segments`, except those in `removal`. */
  readonly removes: readonly string[];
  /** For each of `removes`, the first partition that was live in it when it was read; null where all were. */
  readonly removesLiveFrom?: readonly (number | null)[] | undefined;
  readonly checkpoints: readonly Checkpoint[];
  /** Whether `segments` restore records that loads have lost, at their old positions. Publishing requires that they are still lost. */
  readonly restores?: boolean | undefined;
  /** The entry of the load that is published. */
  readonly load?: LoadEntry | undefined;
  /** Records of `removes` that are not in `segments`, because they are to be removed. */
  readonly removal?: Removal | undefined;
  readonly rejected: readonly RejectedEntry[];
  /** A file of rejected lines whose lines are now in `segments` or `rejected`. Publishing requires that the file is unchanged. */
  readonly takes?: RejectedEntry | undefined;
  /** Marks of rules of retention that were applied. Publishing requires that they are in force. */
  readonly rules?: readonly string[] | undefined;
  /** Number of records that they have removed. */
  readonly retires?: number | undefined;
  /** Segments that stay as they are, with the rules that have been applied: no record matches these. */
  readonly ruled?: readonly Pick<SegmentEntry, 'file' | 'ruled'>[] | undefined;
  /** Ids of attached files whose rows are now in `segments`. They are detached. */
  readonly detaches?: readonly string[] | undefined;
  readonly counters: Counters;
}

/**
 * The interface through which other parts of the engine commit: the writer of this process, or the channel to another process's. A unit of
 * work has an id. It builds its files in `building/<id>/` until it is published, and that folder is removed when the unit ends, however it
 * ends.
 */
export interface Committer {
  readonly schema: Schema;
  readonly schemaVersion: number;
  /** Returns a new id, and creates the folder to build in. */
  begin(): Promise<string>;
  /** Reserves ordinals for a unit's records. Other commits wait until `publish` or `end`. */
  reserve(id: string, counts: readonly PartitionCount[]): Promise<readonly PartitionStart[]>;
  /** Publishes the unit's files in one manifest. */
  publish(id: string, publication: Publication): Promise<void>;
  /** Ends a unit, published or not, and removes the files that it left. */
  end(id: string): Promise<void>;
  /**
   * Commits a batch to the hot segment. `placement` says how its positions are chosen: as of a live source (`livePartition`), or by
   * placement time alone, as in a load.
   */
  append(batch: RecordBatch, extras: CommitExtras, placement: 'live' | 'load'): Promise<AppendResult>;
  /** Changes what the manifest says of the far tier, in one publication. Throws `conflict` if a segment has changed since. */
  changeFar(changes: FarChanges): Promise<void>;
  /** Seals the hot rows. */
  seal(): Promise<void>;
}

/** Folder of a unit's unfinished files. */
export function buildingFolder(agent: string, id: string): string {
  return `${agent}/building/${id}`;
}

/** Path where segment `index` of a unit is built. */
export function buildingPath(agent: string, id: string, index: number): string {
  return `${buildingFolder(agent, id)}/${segmentNumber(index)}.parquet`;
}

/** Name of the published segment, relative to the agent's folder, in the folder of its day. */
export function segmentFile(id: string, index: number, partition: number): string {
  return `dt=${dayOfPartition(partition)}/${id}-${segmentNumber(index)}.parquet`;
}

function segmentNumber(index: number): string {
  return String(index).padStart(5, '0');
}

/** Moves a finished file to its final place under the agent's folder, durably. It becomes part of the archive once a manifest names it. */
export async function moveIntoPlace(
  directory: Directory,
  agent: string,
  from: string,
  file: string,
): Promise<void> {
  const folder = `${agent}/${file.slice(0, file.lastIndexOf('/'))}`;
  await directory.makeDirectory(folder);
  await directory.rename(from, `${agent}/${file}`);
  await directory.syncDirectory(folder);
}
