import type { Schema } from '../../terms/schema.js';
import type { RecordBatch } from '../../columns/column.js';
import type { AppendResult, CommitExtras } from './commit.js';
import type { Checkpoint, Counters, LoadEntry, RejectedEntry, SegmentEntry } from './manifest.js';
import type { FarChanges } from './far-changes.js';
import type { Removal } from './removal.js';

/** Records of one partition that wait for their ordinals: `[partition, records]`. */
export type PartitionCount = readonly [partition: number, records: number];

/** The first ordinal that a partition's records get: `[partition, ordinal]`. */
export type PartitionStart = readonly [partition: number, firstOrdinal: number];

/** What one manifest changes, beside the hot data. */
export interface Publication {
  /** Files in their final place. */
  readonly segments: readonly SegmentEntry[];
  /** Segments that are no longer live: their records are in `segments`. */
  readonly removes: readonly string[];
  /** For each of these, the first partition that was live in it when it was read; null for all. */
  readonly removesLiveFrom?: readonly (number | null)[] | undefined;
  readonly checkpoints: readonly Checkpoint[];
  /** The positions of `segments` are those of records that loads gave and that are lost: they must still be. */
  readonly restores?: boolean | undefined;
  /** What a load has given. */
  readonly load?: LoadEntry | undefined;
  /** Records of `removes` that are not in `segments`, because they are to be gone. */
  readonly removal?: Removal | undefined;
  readonly rejected: readonly RejectedEntry[];
  /** A file of rejected lines whose lines are in `segments` or `rejected` now. It must still be what it says. */
  readonly takes?: RejectedEntry | undefined;
  /** Attached files, by their ids, whose rows are in `segments` now: they are attached no more. */
  readonly detaches?: readonly string[] | undefined;
  readonly counters: Counters;
}

/**
 * The side of the writer that other parts of the engine commit through: the writer of this process, or the channel to
 * that of another. A unit of work has an id; what it builds lies in `building/<id>/` until it is published, and is removed
 * when the unit ends without it, however it ends.
 */
export interface Committer {
  readonly schema: Schema;
  readonly schemaVersion: number;
  /** A new id, and the folder to build in. */
  begin(): Promise<string>;
  /** Takes the ordinals of a unit's records. Other commits wait until `publish` or `end`. */
  reserve(id: string, counts: readonly PartitionCount[]): Promise<readonly PartitionStart[]>;
  /** Makes the unit's files part of the archive, in one manifest. */
  publish(id: string, publication: Publication): Promise<void>;
  /** Ends a unit, published or not, and removes what it left. */
  end(id: string): Promise<void>;
  append(batch: RecordBatch, extras: CommitExtras, placement: 'live' | 'load'): Promise<AppendResult>;
  /** Changes what is known of the far tier, in one manifest. Throws `conflict` where a segment is not what it was. */
  changeFar(changes: FarChanges): Promise<void>;
  /** Seals what is hot. */
  seal(): Promise<void>;
}

/** Folder, under the agent's, of a unit's unfinished files. */
export function buildingFolder(agent: string, id: string): string {
  return `${agent}/building/${id}`;
}
