import { isDeepStrictEqual } from 'node:util';
import { diskFreeShareMin } from '../../terms/limits.js';
import type { DiskSpace } from '../disk/directory.js';
import type { KeptPolicy, PendingPolicy, RetentionPolicy } from './manifest.js';
import type { OverCount, Taken } from './retention-policy.js';

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

/** Whether two policies keep the same records. */
export function samePolicy(a: RetentionPolicy, b: RetentionPolicy): boolean {
  return a.periodMs === b.periodMs && a.bytesMax === b.bytesMax;
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
  { periodMs, bytesMax, graceMs }: WantedPolicy,
  nowMs: number,
  hasLeapt: (policy: RetentionPolicy) => boolean,
): KeptPolicy {
  const wanted = { periodMs, bytesMax };
  const inForce = {
    periodMs: longer(kept.periodMs, periodMs),
    bytesMax: longer(kept.bytesMax, bytesMax),
  };
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
    const { periodMs, bytesMax } = wanted;
    return { kept: { periodMs, bytesMax }, cause, graceLeftMs: null };
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
