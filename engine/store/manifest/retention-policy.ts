import { hourMs } from '../../terms/cursor.js';
import { LogstrataError } from '../../terms/errors.js';
import { retentionLeapMsMax } from '../../terms/limits.js';
import type { PartitionCount } from './committer.js';
import {
  ageingPartition,
  ageReferenceMs,
  isFarOnly,
  liveRows,
  liveRuns,
  type LoadEntry,
  type Manifest,
  type RejectedEntry,
  type RetentionPolicy,
  type Retired,
  type Run,
  type SegmentEntry,
} from './manifest.js';
import { loadsLeft } from './lost-loads.js';

/** What a manifest says once records have gone. */
export interface Retirement {
  readonly segments: readonly SegmentEntry[];
  /** Files of rejected lines that stay, of those that do not grow any more. */
  readonly rejected: readonly RejectedEntry[];
  /** What loads gave that stays. */
  readonly loads: readonly LoadEntry[];
  /** Files that hold no live record any more, and files of rejected lines that are over. */
  readonly removes: readonly string[];
  readonly retired: Retired;
  /** What goes at this look. */
  readonly taken: Taken;
}

/** Records that a policy takes, and when they are from: the hours of their positions. */
export interface OverCount {
  readonly records: number;
  readonly fromMs: number | null;
  readonly toMs: number | null;
}

/** What has left the archive at one look. */
export interface Taken extends OverCount {
  /** Lines that had become no record. */
  readonly rejectedLines: number;
  /** Files of records that went as a whole, and their bytes. */
  readonly segments: number;
  readonly bytes: number;
}

/** Adds up records by their partitions. */
class OverRecords {
  private records = 0;
  private first = Infinity;
  private last = -Infinity;

  add(partition: number, rows: number): void {
    this.records += rows;
    this.first = Math.min(this.first, partition);
    this.last = Math.max(this.last, partition);
  }

  sum(): OverCount {
    const { records, first, last } = this;
    if (records === 0) return { records, fromMs: null, toMs: null };
    return { records, fromMs: first * hourMs, toMs: (last + 1) * hourMs };
  }
}

/** What retention decides on: files that nothing is written to any more, beside the bytes of those that still grow. */
export interface Retirable extends Pick<
  Manifest,
  'segments' | 'rejected' | 'highestPartition' | 'retired' | 'loads'
> {
  readonly hotBytes: number;
  /** Positions of the hot records. */
  readonly hotRuns: readonly AgeingRun[];
}

/** Rows, and the partition that they age by. */
type AgeingRun = Pick<Run, 'partition' | 'rows'>;

/** The live rows of a segment. */
function ageingRuns(segment: SegmentEntry): readonly AgeingRun[] {
  return liveRuns(segment).map(({ partition, rows }) => ({
    partition: ageingPartition(segment, partition),
    rows,
  }));
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
    // What is in the far tier alone takes nothing of the disk.
    if (isFarOnly(segment)) continue;
    for (const { partition, rows } of segment.runs) {
      if (partition < (segment.liveFrom ?? 0)) continue;
      const ageing = ageingPartition(segment, partition);
      bytes.set(ageing, (bytes.get(ageing) ?? 0) + (segment.bytes * rows) / segment.rows);
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
  const over = new OverRecords();
  let { below } = manifest.retired;
  let bytes = 0;
  let count = 0;
  for (const segment of manifest.segments) {
    const first = firstKept(segment, bounds, referenceMs);
    const left: SegmentEntry = { ...segment, liveFrom: Math.max(segment.liveFrom ?? 0, first) };
    const gone = ageingRuns(segment).filter(({ partition }) => partition < first);
    if (gone.length === 0) {
      segments.push(segment);
      continue;
    }
    for (const { partition, rows } of gone) over.add(partition, rows);
    below = Math.max(below, first);
    if (liveRows(left) > 0) {
      segments.push(left);
      continue;
    }
    removes.push(segment.file);
    bytes += segment.bytes;
    count++;
  }
  const firstLeft = Math.max(bounds.byAge, bounds.bySize);
  const rejected: RejectedEntry[] = [];
  let rejectedLines = 0;
  for (const entry of manifest.rejected) {
    if ((entry.partition ?? firstLeft) >= firstLeft) {
      rejected.push(entry);
      continue;
    }
    removes.push(entry.file);
    rejectedLines += entry.lines;
  }
  const taken = { ...over.sum(), rejectedLines, segments: count, bytes };
  const loads = loadsLeft(manifest.loads, segments, firstLeft);
  const isSame = taken.records === 0 && rejected.length === manifest.rejected.length;
  if (isSame && loads === manifest.loads) return undefined;
  const before = manifest.retired;
  const retired = {
    records: before.records + taken.records,
    bytes: before.bytes + bytes,
    segments: before.segments + count,
    below,
  };
  return { segments, rejected, loads, removes, retired, taken };
}

/** The first partition of a segment that stays. */
function firstKept(
  { keepUntilMs }: SegmentEntry,
  { byAge, bySize }: RetentionBounds,
  referenceMs: number,
): number {
  const isKept = keepUntilMs !== undefined && referenceMs < keepUntilMs;
  return isKept ? bySize : Math.max(byAge, bySize);
}

/**
 * Whether the time that a policy goes by has leapt since records went for their age last: some that are over should have gone long
 * ago. The clock was set ahead and a record of that time has come, nothing came for a long time, or what came is old.
 */
export function hasLeapt(
  { segments, retired, highestPartition, hotRuns }: Retirable,
  { periodMs }: RetentionPolicy,
  nowMs: number,
): boolean {
  if (periodMs === null) return false;
  const referenceMs = ageReferenceMs({ highestPartition }, nowMs);
  const endMs = (runs: readonly AgeingRun[]): number =>
    ((runs[0]?.partition ?? highestPartition) + 1) * hourMs;
  const dueMs = [
    ...segments.map((segment) => Math.max(segment.keepUntilMs ?? 0, endMs(ageingRuns(segment)) + periodMs)),
    ...hotRuns.map((run) => endMs([run]) + periodMs),
  ].reduce((first, ms) => Math.min(first, ms), Infinity);
  // What came later than its time has no part in it once records go regularly.
  const sinceMs = Math.max(dueMs, retired.below * hourMs + periodMs);
  return referenceMs - sinceMs > retentionLeapMsMax;
}

/** Counts what a policy takes of an agent's records, hot ones included. */
export function overCount(target: Retirable, policy: RetentionPolicy, nowMs: number): OverCount {
  const bounds = retentionBounds(target, policy, nowMs);
  const referenceMs = ageReferenceMs(target, nowMs);
  const over = new OverRecords();
  const add = (runs: readonly AgeingRun[], first: number): void => {
    for (const { partition, rows } of runs) if (partition < first) over.add(partition, rows);
  };
  for (const segment of target.segments) add(ageingRuns(segment), firstKept(segment, bounds, referenceMs));
  add(target.hotRuns, Math.max(bounds.byAge, bounds.bySize));
  return over.sum();
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
