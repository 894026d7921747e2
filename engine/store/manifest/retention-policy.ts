import { isDeepStrictEqual } from 'node:util';
import { hourMs, partitionOfTime } from '../../core/cursor.js';
import { LogstrataError } from '../../core/errors.js';
import { retentionLeapMsMax, diskFreeShareMin } from '../../core/limits.js';
import type { PartitionCount } from './commit.js';
import {
  ageingPartition,
  ageReferenceMs,
  isFarOnly,
  liveRuns,
  type LoadEntry,
  type Manifest,
  type RejectedEntry,
  type RetentionPolicy,
  type RetentionRule,
  type Retired,
  type Run,
  type SegmentEntry,
  type KeptPolicy,
  type PendingPolicy,
} from './manifest.js';
import { loadsLeft } from './coverage.js';
import { ruleLagMs, ruleMark } from './retention-rules.js';
import type { DiskSpace } from '../disk/directory.js';

/** The changes to a manifest when retention removes records. */
export interface Retirement {
  readonly segments: readonly SegmentEntry[];
  /** Files of rejected lines that stay. Files that still grow are not included. */
  readonly rejected: readonly RejectedEntry[];
  /** The loads, without those that retention has removed. */
  readonly loads: readonly LoadEntry[];
  /** Files of segments without live records, and files of rejected lines that are past retention. */
  readonly removes: readonly string[];
  readonly retired: Retired;
  /** What this check removes. */
  readonly taken: Taken;
}

/** The number of records that a policy removes, and the range of time of their positions (whole hours). */
export interface OverCount {
  readonly records: number;
  readonly fromMs: number | null;
  readonly toMs: number | null;
}

/** What one check removes from the archive. */
export interface Taken extends OverCount {
  /** Number of rejected lines. */
  readonly rejectedLines: number;
  /** Number of segments that are removed as a whole, and their bytes. */
  readonly segments: number;
  readonly bytes: number;
}

/** Sums up records, and finds their first and last partition. */
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

/** The facts that retention decides by. `rejected` holds the files that no longer grow. */
export interface Retirable extends Pick<
  Manifest,
  'segments' | 'rejected' | 'highestPartition' | 'retired' | 'loads'
> {
  /** Bytes of the hot files and of files of rejected lines that still grow. */
  readonly hotBytes: number;
  /** Positions of the hot records. */
  readonly hotRuns: readonly AgeingRun[];
}

/** A number of rows, and the partition that they age by. */
export type AgeingRun = Pick<Run, 'partition' | 'rows'> & {
  /** Number of these rows that rules have not removed before; absent if all. */
  readonly records?: number;
};

/**
 * The live rows of a segment, by the partitions that they age by. Rows in partitions ahead of the clock, where a clock that was once ahead
 * has put them, age by the newest time in their segment, and not before the segment's other rows. They are removed only with the whole
 * segment.
 */
function ageingRuns(segment: SegmentEntry, nowMs: number): readonly AgeingRun[] {
  const runs = liveRuns(segment);
  const now = partitionOfTime(nowMs);
  const others = runs.findLast(({ partition }) => partition <= now)?.partition ?? 0;
  const byTime = Math.max(others, partitionOfTime(segment.timeMaxMs ?? Infinity));
  const removed = new Map(segment.removed);
  return runs.map(({ partition, rows }) => {
    const gone = Math.min(rows, removed.get(partition) ?? 0);
    removed.set(partition, (removed.get(partition) ?? 0) - gone);
    const aged = partition > now ? Math.min(partition, byTime) : ageingPartition(segment, partition);
    return { partition: aged, rows, records: rows - gone };
  });
}

/** Partitions below these bounds are removed: `byAge` for their age, `bySize` because the newer ones use up the bytes. 0 for none. */
export interface RetentionBounds {
  readonly byAge: number;
  readonly bySize: number;
}

/**
 * The first partitions that stay. An hour's age counts from its end to the lower of the clock and the end of the newest partition, so a
 * clock that jumps ahead does not empty the archive.
 */
export function retentionBounds(
  manifest: Pick<Retirable, 'segments' | 'rejected' | 'highestPartition' | 'hotBytes'>,
  policy: RetentionPolicy,
  nowMs: number,
): RetentionBounds {
  const { periodMs, bytesMax } = policy;
  return {
    byAge: periodMs === null ? 0 : firstOfPeriod(ageReferenceMs(manifest, nowMs), periodMs),
    bySize: bytesMax === null ? 0 : firstWithin(manifest, bytesMax - manifest.hotBytes, nowMs),
  };
}

function firstOfPeriod(referenceMs: number, periodMs: number): number {
  return Math.max(0, Math.floor((referenceMs - periodMs) / hourMs));
}

/** The lowest partition such that all partitions from it on take at most `bytesMax`, and at most the newest partition, which always stays. */
function firstWithin(
  { segments, rejected }: Pick<Retirable, 'segments' | 'rejected'>,
  bytesMax: number,
  nowMs: number,
): number {
  const bytes = new Map<number, number>();
  for (const segment of segments) {
    // A segment that is only in the far tier takes no space on the disk.
    if (isFarOnly(segment)) continue;
    for (const { partition, rows } of ageingRuns(segment, nowMs))
      bytes.set(partition, (bytes.get(partition) ?? 0) + (segment.bytes * rows) / segment.rows);
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
 * Applies a policy to a manifest; returns undefined when nothing changes. Segments without live records leave the manifest. A segment that
 * is partly past retention gets a new `liveFrom`: earlier rows are no longer answered, and their space is freed when the segment is
 * rewritten or leaves. A file of rejected lines is as old as the newest record was when it was closed. Pure function.
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
  let isOver = false;
  let bytes = 0;
  let count = 0;
  for (const segment of manifest.segments) {
    const first = firstKept(segment, bounds, referenceMs);
    const left: SegmentEntry = { ...segment, liveFrom: Math.max(segment.liveFrom ?? 0, first) };
    const gone = ageingRuns(segment, nowMs).filter(({ partition }) => partition < first);
    if (gone.length === 0) {
      segments.push(segment);
      continue;
    }
    isOver = true;
    for (const { partition, records = 0 } of gone) over.add(partition, records);
    below = Math.max(below, first);
    if (gone.length < liveRuns(segment).length) {
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
  const isSame = !isOver && rejected.length === manifest.rejected.length;
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
 * Whether the reference time of ages has leapt ahead since retention last removed records: some records are more than `retentionLeapMsMax`
 * overdue. Causes: the clock was set ahead and a record with such a time arrived, no record arrived for a long time, or old records
 * arrived.
 */
export function hasLeapt(
  { segments, retired, highestPartition, hotRuns }: Retirable,
  { periodMs, rules = [] }: RetentionPolicy,
  nowMs: number,
): boolean {
  const referenceMs = ageReferenceMs({ highestPartition }, nowMs);
  if (rules.some((rule) => ruleLagMs(segments, rule, referenceMs) > retentionLeapMsMax)) return true;
  if (periodMs === null) return false;
  const endMs = (runs: readonly AgeingRun[]): number =>
    ((runs[0]?.partition ?? highestPartition) + 1) * hourMs;
  const dueMs = [
    ...segments.map((segment) =>
      Math.max(segment.keepUntilMs ?? 0, endMs(ageingRuns(segment, nowMs)) + periodMs),
    ),
    ...hotRuns.map((run) => endMs([run]) + periodMs),
  ].reduce((first, ms) => Math.min(first, ms), Infinity);
  // Once retention removes records regularly, records that arrived late do not count as overdue.
  const sinceMs = Math.max(dueMs, retired.below * hourMs + periodMs);
  return referenceMs - sinceMs > retentionLeapMsMax;
}

/** Counts the records that a policy would remove, hot ones included. */
export function overCount(target: Retirable, policy: RetentionPolicy, nowMs: number): OverCount {
  const bounds = retentionBounds(target, policy, nowMs);
  const referenceMs = ageReferenceMs(target, nowMs);
  const over = new OverRecords();
  const add = (runs: readonly AgeingRun[], first: number): void => {
    for (const { partition, rows, records = rows } of runs)
      if (partition < first) over.add(partition, records);
  };
  for (const segment of target.segments)
    add(ageingRuns(segment, nowMs), firstKept(segment, bounds, referenceMs));
  add(target.hotRuns, Math.max(bounds.byAge, bounds.bySize));
  return over.sum();
}

/** What a load is about to store, and whether it wants to keep records past the retention period. */
export interface LoadedRecords {
  readonly agent: string;
  readonly counts: readonly PartitionCount[];
  /** Highest partition that holds a record of the agent; 0 for none. */
  readonly highestPartition: number;
  readonly nowMs: number;
  readonly beyondRetention: boolean;
}

/** Records in partitions below `below` are past the retention period; if they are stored all the same, they are kept until `keepUntilMs`. */
export interface Extension {
  readonly below: number;
  readonly keepUntilMs: number;
}

/**
 * How long records of a load that are past the retention period are kept: for that period from now on. Returns undefined if no record is
 * that old. Throws `invalid` if some are and the load was not asked to keep them, because retention would remove them at once.
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
      `${over} of ${records} records are older than the retention.period of agent ${agent} and would be removed at once: ` +
        `nothing was stored (--beyond-retention stores them and keeps them for that period from now on)`,
    );
  }
  // Rounded up to the next whole hour, because all ages count in hours: no record is removed too early.
  return { below, keepUntilMs: (Math.floor(referenceMs / hourMs) + 1) * hourMs + periodMs };
}

/** The policy of an agent for which none was ever set. */
export const keptForEver: KeptPolicy = { periodMs: null, bytesMax: null };

/** What one check of an agent's retention has led to. */
export type RetentionEvent = { readonly agent: string; readonly policy: RetentionPolicy } & (
  | {
      /** The policy removes more than the one in force, or time has leapt. It removes nothing before `dueMs`. */
      readonly kind: 'pending';
      readonly leapt: boolean;
      readonly inForce: RetentionPolicy;
      readonly over: OverCount;
      /** Number of all records of the agent. */
      readonly records: number;
      readonly dueMs: number;
    }
  | { readonly kind: 'in_force'; readonly cause: PolicyCause }
  | { readonly kind: 'taken'; readonly taken: Taken }
);

/**
 * Why a policy is in force from now on: it removes no more than before (`looser`), the time is no longer ahead (`back`), its grace period
 * has passed (`grace`), it was applied on request (`applied`), or the disk is nearly full (`disk_low`).
 */
export type PolicyCause = 'looser' | 'back' | 'grace' | 'applied' | 'disk_low';

/** The policy that an agent's file asks for. */
export interface WantedPolicy extends RetentionPolicy {
  /** How long the policy waits if it removes more than the one in force, or if time has leapt. */
  readonly graceMs: number;
}

/** The policy alone, of something that has more. */
export function policyOf({ periodMs, bytesMax, rules = [] }: RetentionPolicy): RetentionPolicy {
  return { periodMs, bytesMax, ...(rules.length === 0 ? {} : { rules }) };
}

/** Whether two policies keep the same records. */
export function samePolicy(a: RetentionPolicy, b: RetentionPolicy): boolean {
  return isDeepStrictEqual(policyOf(a), policyOf(b));
}

/** The rules that remove no more than each of two lists does. */
function looserRules(old: readonly RetentionRule[], wanted: readonly RetentionRule[]): RetentionRule[] {
  const periods = new Map(old.map((rule) => [ruleMark(rule), rule.periodMs]));
  return wanted.flatMap((rule) => {
    const periodMs = periods.get(ruleMark(rule));
    return periodMs === undefined ? [] : [{ ...rule, periodMs: Math.max(periodMs, rule.periodMs) }];
  });
}

/** The larger of two limits. Null means no limit. */
function longer(a: number | null, b: number | null): number | null {
  return a === null || b === null ? null : Math.max(a, b);
}

/** The limits by which records are removed now. While a policy waits because time has leapt, no record is removed for its age. */
export function takingPolicy({ periodMs, bytesMax, pending }: KeptPolicy): RetentionPolicy {
  return { periodMs: pending?.leapt === true ? null : periodMs, bytesMax };
}

/**
 * The policy in force once `wanted` is asked for, and the pending one. The looser of the old and the wanted limits is in force at once. If
 * `wanted` is stricter than that, or if time has leapt, it is pending. If the same policy is pending already, it keeps its start time.
 *
 * @param hasLeapt whether time has leapt, judged by a policy
 */
function nextPolicy(
  kept: KeptPolicy,
  { graceMs, ...asked }: WantedPolicy,
  nowMs: number,
  hasLeapt: (policy: RetentionPolicy) => boolean,
): KeptPolicy {
  const wanted = policyOf(asked);
  const inForce = policyOf({
    periodMs: longer(kept.periodMs, wanted.periodMs),
    bytesMax: longer(kept.bytesMax, wanted.bytesMax),
    rules: looserRules(kept.rules ?? [], wanted.rules ?? []),
  });
  const leapt = hasLeapt(inForce) ? ({ leapt: true } as const) : {};
  if (samePolicy(inForce, wanted) && leapt.leapt === undefined) return inForce;
  const { pending } = kept;
  const waits = pending !== undefined && samePolicy(pending, wanted) && pending.leapt === leapt.leapt;
  return { ...inForce, pending: { ...wanted, ...leapt, sinceMs: waits ? pending.sinceMs : nowMs, graceMs } };
}

/** Time at which a pending policy is to come into force, by the clock (ms). */
export function dueOf({ sinceMs, graceMs }: PendingPolicy): number {
  return sinceMs + graceMs;
}

/** The result of one decision on retention. */
export interface PolicyDecision {
  readonly kept: KeptPolicy;
  /** Why the wanted policy has come into force now; null if it has not, or was in force before. */
  readonly cause: PolicyCause | null;
  /** How long a pending policy still waits (ms); null if none is pending. */
  readonly graceLeftMs: number | null;
}

/** Decides when a stricter policy replaces the one in force. */
export class PolicyInForce {
  /** The pending policy, and the end of its wait by the process's monotonic clock. */
  private waiting: { readonly pending: PendingPolicy; readonly endsAtMs: number } | undefined;

  constructor(private readonly diskSpace: () => Promise<DiskSpace | null>) {}

  /**
   * Decides which policy is in force now.
   *
   * @param applies whether `wanted` is to come into force without waiting
   * @param hasLeapt whether time has leapt, judged by a policy
   */
  async decide(
    before: KeptPolicy,
    wanted: WantedPolicy,
    applies: boolean,
    nowMs: number,
    hasLeapt: (policy: RetentionPolicy) => boolean,
  ): Promise<PolicyDecision> {
    const kept = nextPolicy(before, wanted, nowMs, hasLeapt);
    const { pending } = kept;
    if (pending === undefined) {
      const isBack = before.pending?.leapt === true && samePolicy(before, kept);
      const isNew = !samePolicy(before, kept) || before.pending !== undefined;
      return { kept, cause: isBack ? 'back' : isNew ? 'looser' : null, graceLeftMs: null };
    }
    const graceLeftMs = this.graceLeft(pending, nowMs);
    const cause = applies ? 'applied' : graceLeftMs === 0 ? 'grace' : await this.diskCause();
    if (cause === null) return { kept, cause, graceLeftMs };
    return { kept: policyOf(wanted), cause, graceLeftMs: null };
  }

  /**
   * The rest of the wait, measured by the monotonic clock since this process first saw the policy. So a system clock that is set ahead does
   * not remove records early.
   */
  private graceLeft(pending: PendingPolicy, nowMs: number): number {
    let { waiting } = this;
    if (waiting === undefined || !isDeepStrictEqual(waiting.pending, pending)) {
      const leftMs = Math.min(pending.graceMs, Math.max(0, dueOf(pending) - nowMs));
      waiting = { pending, endsAtMs: performance.now() + leftMs };
      this.waiting = waiting;
    }
    return Math.max(0, waiting.endsAtMs - performance.now());
  }

  private async diskCause(): Promise<PolicyCause | null> {
    const space = await this.diskSpace();
    return space !== null && space.freeBytes < space.sizeBytes * diskFreeShareMin ? 'disk_low' : null;
  }
}

/** How long records are kept, and how often that is checked. An archive opened with `background` removes records by itself. */
export interface Retention extends WantedPolicy {
  readonly intervalMs: number;
}
