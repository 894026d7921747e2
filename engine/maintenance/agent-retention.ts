import { isDeepStrictEqual } from 'node:util';
import { LogstrataError } from '../core/errors.js';
import type { AgentState } from '../store/reading/agent-state.js';
import { retirable, type AgentWriter, type RetentionLook } from '../store/writer/agent-writer.js';
import type { KeptPolicy, PendingPolicy, RetentionPolicy } from '../store/manifest/manifest.js';
import {
  dueOf,
  keptForEver,
  policyOf,
  type Retention,
  type RetentionEvent,
  samePolicy,
  overCount,
  type OverCount,
} from '../store/manifest/retention-policy.js';
import { aheadWarning, isAhead } from '../store/manifest/placement.js';

/** Schedules the retention checks of one agent, and reports what they do. */
export class AgentRetention {
  private nextMs = 0;
  private told: PendingPolicy | undefined;
  private toldAhead = false;

  constructor(
    private readonly state: AgentState,
    private readonly now: () => number,
    private readonly tell: (event: RetentionEvent) => void,
  ) {}

  /** Whether a check is due, by the monotonic clock. */
  get isDue(): boolean {
    return performance.now() >= this.nextMs;
  }

  /** The warning that records are placed ahead of the clock, once until they no longer are; else null. */
  aheadWarning(): string | null {
    const { agent, values } = this.state;
    const told = this.toldAhead;
    this.toldAhead = isAhead(values.highestPartition, this.now());
    return this.toldAhead && !told ? aheadWarning(agent, values.highestPartition) : null;
  }

  /** Makes the next check due at once, after a change. */
  makeDue(): void {
    this.nextMs = 0;
  }

  /** Removes the records that exceed the policy, and schedules the next check. Does nothing for an agent without a configured retention. */
  async check(writer: AgentWriter | undefined, retention: Retention | undefined): Promise<void> {
    if (retention === undefined || writer === undefined || this.state.damage !== undefined) return;
    this.nextMs = performance.now() + retention.intervalMs;
    const look = await writer.retire(retention);
    if (look === undefined) return;
    const { graceLeftMs } = look;
    if (graceLeftMs !== null) this.nextMs = Math.min(this.nextMs, performance.now() + graceLeftMs);
    this.tellOf(retention, look);
  }

  /** Puts a policy in force at once. Throws `conflict` if this process knows another policy for the agent. */
  async apply(
    writer: AgentWriter,
    policy: RetentionPolicy,
    known: RetentionPolicy | undefined,
  ): Promise<readonly RetentionEvent[]> {
    const { agent, damage } = this.state;
    if (damage !== undefined) throw damage;
    if (known !== undefined && !samePolicy(known, policy)) {
      throw new LogstrataError(
        'conflict',
        `the process that writes to this folder uses another retention for agent "${agent}" than the agent file: ` +
          'make it reload the changed file (SIGHUP or a restart)',
      );
    }
    const look = await writer.retire({ ...policy, graceMs: 0 }, true);
    return look === undefined ? [] : this.tellOf(policy, look);
  }

  /** What a policy would remove from the current records. Without `policy`, uses the pending policy, or else the one in force. */
  outlook(policy?: RetentionPolicy): RetentionOutlook {
    const { state } = this;
    if (state.damage !== undefined) throw state.damage;
    const kept = state.manifest?.retention ?? keptForEver;
    const over = overCount(retirable(state), policy ?? kept.pending ?? kept, this.now());
    return { kept, over, records: state.rowCount };
  }

  /** Reports a check. A pending policy is reported only once. */
  private tellOf(policy: RetentionPolicy, { kept, cause, taken }: RetentionLook): RetentionEvent[] {
    const about = { agent: this.state.agent, policy: policyOf(policy) };
    const events: RetentionEvent[] = [];
    const { pending } = kept;
    if (pending !== undefined && !isDeepStrictEqual(this.told, pending)) {
      const { over, records } = this.outlook(pending);
      const leapt = pending.leapt === true;
      events.push({ ...about, kind: 'pending', leapt, inForce: kept, over, records, dueMs: dueOf(pending) });
    }
    this.told = pending;
    if (cause !== null) events.push({ ...about, kind: 'in_force', cause });
    if (taken !== null) events.push({ ...about, policy: kept, kind: 'taken', taken });
    for (const event of events) this.tell(event);
    return events;
  }
}

/** What a policy would do to the current records. */
export interface RetentionOutlook {
  /** The policy in force, and the pending one. */
  readonly kept: KeptPolicy;
  /** The records that the policy in question would remove. */
  readonly over: OverCount;
  readonly records: number;
}
