import { isDeepStrictEqual } from 'node:util';
import { diskFreeShareMin } from '../../terms/limits.js';
import type { DiskSpace } from '../disk/directory.js';
import type { KeptPolicy, PendingPolicy, RetentionPolicy } from './manifest.js';
import type { OverCount, Taken } from './retention-policy.js';

/** The policy of an agent of which none was ever told. */
export const keptForEver: KeptPolicy = { periodMs: null, bytesMax: null };

/** What became of an agent's retention at one look. */
export type RetentionEvent = { readonly agent: string; readonly policy: RetentionPolicy } & (
  | {
      /** It takes more than what is in force, or time has leapt; it takes nothing before `dueMs`. */
      readonly kind: 'pending';
      readonly leapt: boolean;
      readonly inForce: RetentionPolicy;
      readonly over: OverCount;
      /** All that there are. */
      readonly records: number;
      readonly dueMs: number;
    }
  | { readonly kind: 'in_force'; readonly cause: PolicyCause }
  | { readonly kind: 'taken'; readonly taken: Taken }
);

/**
 * Why a policy is in force from now on: it takes nothing more than before, time is back from where it had leapt to, it has waited, it was told
 * to, or the disk is nearly full.
 */
export type PolicyCause = 'looser' | 'back' | 'grace' | 'applied' | 'disk_low';

/** A policy that an agent's file asks for. */
export interface WantedPolicy extends RetentionPolicy {
  /** How long it waits where it takes more than the one in force, or time has leapt. */
  readonly graceMs: number;
}

/** Whether two policies keep the same records. */
export function samePolicy(a: RetentionPolicy, b: RetentionPolicy): boolean {
  return a.periodMs === b.periodMs && a.bytesMax === b.bytesMax;
}

/** The longer of two times, the larger of two sizes; null is without end. */
function longer(a: number | null, b: number | null): number | null {
  return a === null || b === null ? null : Math.max(a, b);
}

/** By what records go while a policy is kept: none for its age while one waits because time has leapt. */
export function takingPolicy({ periodMs, bytesMax, pending }: KeptPolicy): RetentionPolicy {
  return { periodMs: pending?.leapt === true ? null : periodMs, bytesMax };
}

/**
 * What is in force once `wanted` is asked for: at once as far as it takes nothing that was kept before; what it takes beyond that is
 * pending, and so is all of it where time has leapt. One that is asked for again has waited since the first time.
 *
 * @param hasLeapt whether time has leapt for a policy
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

/** When a pending policy takes what it takes, by the clock. */
export function dueOf({ sinceMs, graceMs }: PendingPolicy): number {
  return sinceMs + graceMs;
}

/** What records are kept by. */
export interface PolicyDecision {
  readonly kept: KeptPolicy;
  /** Why the policy that was asked for is in force now, where it was not before; else null. */
  readonly cause: PolicyCause | null;
  /** How long a pending policy still waits (ms); null where none does. */
  readonly graceLeftMs: number | null;
}

/** Decides when a policy that takes more than the one in force takes its place. */
export class PolicyInForce {
  /** The pending policy, and when it has waited long enough by the clock of the process. */
  private waiting: { readonly pending: PendingPolicy; readonly endsAtMs: number } | undefined;

  constructor(private readonly diskSpace: () => Promise<DiskSpace | null>) {}

  /**
   * @param applies whether `wanted` is not to wait
   * @param hasLeapt whether time has leapt for a policy
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

  /** By the clock of the process, from when it saw the policy first: a clock that is set ahead takes no records before their time. */
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

/** How long records are kept, and how often to look. An archive that is opened with `background` takes them away by itself. */
export interface Retention extends WantedPolicy {
  readonly intervalMs: number;
}
