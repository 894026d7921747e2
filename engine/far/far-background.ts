import { DamageError, isLogstrataError } from '../core/errors.js';
import { backgroundRetryMs } from '../core/limits.js';
import { proposeRewrite, isOvertaken } from '../maintenance/compaction.js';
import { WorkerPool } from '../workers/worker-pool.js';
import { freeAndDrop, shipNext, type Ship, type ShippingMeans } from './ship-agent.js';
import type { BackgroundShipping, FarCounts, ShippedAgent, ShippingOptions } from '../archive/shipping.js';
import { shipTask } from './ship-task.js';
import { SharedWork } from '../core/waiting.js';

const nothing: FarCounts = { shipped: 0, rows: 0, bytes: 0, failed: 0 };

/**
 * Shipping in the background of a server: one segment at a time for all agents, on a thread of its own. A day that compaction still has to
 * rewrite is not shipped yet.
 */
export class FarBackground implements BackgroundShipping {
  readonly #workers = new WorkerPool(1);
  readonly #counts = new Map<string, FarCounts>();
  /** For each agent after a failure: the time (ms, monotonic clock) until which it is skipped, and the last reported failure. */
  readonly #patience = new Map<string, { readonly untilMs: number; readonly told: string }>();
  /** Files of each agent that cannot be read, which are not tried again. `verify` reports them. */
  readonly #damaged = new Map<string, ReadonlySet<string>>();
  readonly #work = new SharedWork((agents: readonly ShippedAgent[]) => this.#runAll(agents));
  #isStopping = false;

  constructor(
    private readonly tier: ShippingMeans,
    private readonly options: ShippingOptions,
  ) {}

  counts(agent: string): FarCounts {
    return this.#counts.get(agent) ?? nothing;
  }

  /** Starts shipping if it is not running. Never throws, and returns at once. For a timer. */
  tick(agents: readonly ShippedAgent[]): void {
    void this.#work.run(agents);
  }

  /** Stops shipping. The current attempt is abandoned, and its rows are dropped later. */
  async stop(): Promise<void> {
    this.#isStopping = true;
    await this.#workers.close();
    await this.#work.settled();
  }

  /** Repeats until no agent has anything to ship. */
  async #runAll(agents: readonly ShippedAgent[]): Promise<void> {
    let isBusy = true;
    while (isBusy && !this.#isStopping) {
      isBusy = false;
      for (const agent of agents) {
        if (this.#isStopping) return;
        const { agent: name, damage } = agent.state;
        if (damage !== undefined || (this.#patience.get(name)?.untilMs ?? 0) > performance.now()) continue;
        try {
          if (await this.#shipOne(agent)) isBusy = true;
          this.#patience.delete(name);
        } catch (error) {
          this.#failed(name, error);
        }
      }
    }
  }

  async #shipOne(agent: ShippedAgent): Promise<boolean> {
    const tier = this.tier;
    const { now, zstdAfterMs, directory } = this.options;
    const { state } = agent;
    const nowMs = now();
    await freeAndDrop(agent, tier, nowMs);
    if (state.manifest === undefined) return false;
    const damaged = this.#damaged.get(state.agent);
    const policy = { nowMs, zstdAfterMs, thorough: false };
    if (proposeRewrite(state.manifest, policy, damaged) !== undefined) return false;
    const { settings } = tier.cluster;
    const { bytesPerSecond } = tier;
    const { location } = directory;
    const { agent: name } = state;
    const ship: Ship = async (entry, schema, attempt) => {
      try {
        const job = { location, settings, agent: name, entry, schema, attempt, bytesPerSecond };
        return await this.#workers.run(shipTask, job);
      } catch (error) {
        if (error instanceof DamageError) this.#damaged.set(name, new Set([...(damaged ?? []), entry.file]));
        throw error;
      }
    };
    const copy = await shipNext(agent, tier, nowMs, ship, damaged);
    if (copy === null) return false;
    const before = this.counts(state.agent);
    this.#counts.set(state.agent, {
      ...before,
      shipped: before.shipped + 1,
      rows: before.rows + copy.rows,
      bytes: before.bytes + copy.bytes,
    });
    const { rows, bytes, shard, unit } = copy;
    this.options.onShipped({ agent: state.agent, rows, bytes, shard, unit });
    return true;
  }

  #failed(name: string, error: unknown): void {
    if (this.#isStopping) return;
    const message = error instanceof Error ? error.message : String(error);
    // The segment was replaced meanwhile. The next round looks again.
    if (isOvertaken(error)) return;
    const told = this.#patience.get(name)?.told;
    this.#patience.set(name, { untilMs: performance.now() + backgroundRetryMs, told: message });
    const before = this.counts(name);
    this.#counts.set(name, { ...before, failed: before.failed + 1 });
    if (told === message) return;
    const what = isLogstrataError(error) ? message : `${message} (a bug)`;
    this.options.onWarning(
      `agent ${name} could not be shipped to the far tier: ${what}; will be tried again later`,
    );
  }
}
