import { hourMs } from '../cursor.js';
import { LogstrataError } from '../errors.js';
import type { PartitionCount } from '../storage/committer.js';
import type { AgentState } from '../storage/agent-state.js';
import {
  liveRows,
  nothingRetired,
  type Manifest,
  type RejectedEntry,
  type Retired,
  type SegmentEntry,
} from '../storage/manifest.js';
import { ageReferenceMs } from './compaction-policy.js';

/** How long, and how much, an agent's records are kept. Null: without end. */
export interface RetentionPolicy {
  /** Age at which records go, in milliseconds. */
  readonly periodMs: number | null;
  /** Bytes on the disk; the oldest records go first. The newest partition stays, however large it is. */
  readonly bytesMax: number | null;
}

/** What a manifest says once records have gone. */
export interface Retirement {
  readonly segments: readonly SegmentEntry[];
  /** Files of rejected lines that stay, of those that do not grow any more. */
  readonly rejected: readonly RejectedEntry[];
  /** Files that hold no live record any more, and files of rejected lines that are over. */
  readonly removes: readonly string[];
  readonly retired: Retired;
}

/** What retention decides on: files that nothing is written to any more, beside the bytes of those that still grow. */
export interface Retirable extends Pick<Manifest, 'segments' | 'rejected' | 'highestPartition' | 'retired'> {
  readonly hotBytes: number;
}

/** What is retirable of an agent. */
export function retirable(state: AgentState): Retirable {
  const { segments = [], retired = nothingRetired } = state.manifest ?? {};
  return {
    segments,
    rejected: state.settledRejected(),
    retired,
    highestPartition: state.values.highestPartition,
    hotBytes: state.hotRejected().reduce((sum, { bytes }) => sum + bytes, state.hotBytes),
  };
}

/** Partitions below these are over: by age, and by the bytes of what is younger. 0 for none. */
export interface RetentionBounds {
  readonly byAge: number;
  readonly bySize: number;
}

/**
 * The first partitions that stay. Ages count from the end of an hour to the lower of the clock and the newest position, so that
 * a clock that jumps ahead empties nothing.
 */
export function retentionBounds(
  manifest: Pick<Retirable, 'segments' | 'rejected' | 'highestPartition' | 'hotBytes'>,
  policy: RetentionPolicy,
  nowMs: number,
): RetentionBounds {
  const { periodMs, bytesMax } = policy;
  return {
    byAge: periodMs === null ? 0 : firstOfPeriod(ageReferenceMs(manifest, nowMs), periodMs),
    bySize: bytesMax === null ? 0 : firstWithin(manifest, bytesMax - manifest.hotBytes),
  };
}

function firstOfPeriod(referenceMs: number, periodMs: number): number {
  return Math.max(0, Math.floor((referenceMs - periodMs) / hourMs));
}

/** The lowest partition so that what lies from it on takes no more than `bytesMax`; the newest one at most. */
function firstWithin(
  { segments, rejected }: Pick<Retirable, 'segments' | 'rejected'>,
  bytesMax: number,
): number {
  const bytes = new Map<number, number>();
  for (const segment of segments) {
    for (const { partition, rows } of segment.runs) {
      if (partition < (segment.liveFrom ?? 0)) continue;
      bytes.set(partition, (bytes.get(partition) ?? 0) + (segment.bytes * rows) / segment.rows);
    }
  }
  for (const { partition = 0, bytes: size } of rejected)
    bytes.set(partition, (bytes.get(partition) ?? 0) + size);
  const descending = [...bytes].sort((a, b) => b[0] - a[0]);
  let left = bytesMax;
  let first = descending[0]?.[0] ?? 0;
  for (const [partition, size] of descending) {
    left -= size;
    if (left < 0) return first;
    first = partition;
  }
  return 0;
}

/**
 * What retention does to a manifest; undefined when there is nothing to do. Segments that hold no live record any more leave
 * it. One that still holds some says from which partition on; what lies before is not answered any more, and goes when the
 * segment is rewritten or is all over. A file of rejected lines is as old as the newest record was when it was written. Pure.
 */
export function proposeRetirement(
  manifest: Retirable,
  policy: RetentionPolicy,
  nowMs: number,
): Retirement | undefined {
  const bounds = retentionBounds(manifest, policy, nowMs);
  const referenceMs = ageReferenceMs(manifest, nowMs);
  const segments: SegmentEntry[] = [];
  const removes: string[] = [];
  let { records, bytes, segments: count, below } = manifest.retired;
  let changed = false;
  for (const segment of manifest.segments) {
    const isKept = segment.keepUntilMs !== undefined && referenceMs < segment.keepUntilMs;
    const first = Math.max(isKept ? 0 : bounds.byAge, bounds.bySize);
    const left: SegmentEntry = { ...segment, liveFrom: Math.max(segment.liveFrom ?? 0, first) };
    const gone = liveRows(segment) - liveRows(left);
    if (gone === 0) {
      segments.push(segment);
      continue;
    }
    changed = true;
    records += gone;
    below = Math.max(below, first);
    if (liveRows(left) > 0) {
      segments.push(left);
      continue;
    }
    removes.push(segment.file);
    bytes += segment.bytes;
    count++;
  }
  const firstRejected = Math.max(bounds.byAge, bounds.bySize);
  const rejected: RejectedEntry[] = [];
  for (const entry of manifest.rejected) {
    if ((entry.partition ?? firstRejected) >= firstRejected) rejected.push(entry);
    else removes.push(entry.file);
  }
  if (!changed && rejected.length === manifest.rejected.length) return undefined;
  return { segments, rejected, removes, retired: { records, bytes, segments: count, below } };
}

/** What a unit of loading is about to store, and whether it wants to keep what is over already. */
export interface LoadedRecords {
  readonly agent: string;
  readonly counts: readonly PartitionCount[];
  /** Highest partition that holds a record of the agent; 0 for none. */
  readonly highestPartition: number;
  readonly nowMs: number;
  readonly beyondRetention: boolean;
}

/** Partitions below `below` are over; their records, if they are stored all the same, are kept until `keepUntilMs`. */
export interface Extension {
  readonly below: number;
  readonly keepUntilMs: number;
}

/**
 * Throws `invalid` when retention would remove at once some of the records of a load that does not want them beyond it. For
 * one that does, says how long they are kept: the period, from now on. Undefined when none is that old.
 */
export function extendRetention(loaded: LoadedRecords, periodMs: number | null): Extension | undefined {
  if (periodMs === null) return undefined;
  const { agent, counts, nowMs, beyondRetention } = loaded;
  let { highestPartition } = loaded;
  for (const [partition] of counts) highestPartition = Math.max(highestPartition, partition);
  const referenceMs = ageReferenceMs({ highestPartition }, nowMs);
  const below = firstOfPeriod(referenceMs, periodMs);
  let records = 0;
  let over = 0;
  for (const [partition, count] of counts) {
    records += count;
    if (partition < below) over += count;
  }
  if (over === 0) return undefined;
  if (!beyondRetention) {
    throw new LogstrataError(
      'invalid',
      `${over} of ${records} records are older than the retention.period of agent ${agent}, and would be removed at once: ` +
        `nothing was stored (--beyond-retention stores them, for that period from now on)`,
    );
  }
  // Up to the next whole hour, as the ages of all records are: none of them goes before its own time.
  return { below, keepUntilMs: (Math.floor(referenceMs / hourMs) + 1) * hourMs + periodMs };
}
