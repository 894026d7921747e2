import type { Schema } from '../../terms/schema.js';
import type { RecordBatch } from '../../columns/column.js';
import type { AppendResult, CommitExtras } from './commit.js';
import type { Checkpoint, Counters, LoadEntry, RejectedEntry, SegmentEntry } from './manifest.js';
import type { FarChanges } from './far-changes.js';
import type { Removal } from './removal.js';

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
