import { DamageError, isLogstrataError } from '../core/errors.js';
import { backgroundRetryMs, backgroundShare } from '../core/limits.js';
import type { AgentState } from '../store/reading/agent-state.js';
import type { Committer } from '../store/manifest/commit.js';
import type { Directory } from '../store/disk/directory.js';
import { WorkerPool } from '../workers/worker-pool.js';
import {
  isOvertaken,
  publishRewrite,
  CompactionTally,
  type CompactionCounts,
  proposeRewrite,
} from './compaction.js';
import { rewriteSegments } from './rewrite.js';
import { rewriteTask } from './rewrite-task.js';
import { SharedWork } from '../core/waiting.js';

/** An agent that this process writes. */
export interface BackgroundAgent {
  readonly state: AgentState;
  readonly committer: Committer;
}

export interface BackgroundOptions {
  readonly directory: Directory;
  readonly now: () => number;
  readonly zstdAfterMs: number | null;
  /**
   * 1: rewrites run on a thread of their own; the directory must be on disk. 0: rewrites run on the calling thread, only when asked for, in
   * any directory.
   */
  readonly threads: 0 | 1;
  readonly onWarning: (message: string) => void;
}

interface RetryPause {
  /** The agent is skipped until this time (ms, monotonic clock). */
  untilMs: number;
  /** The last reported failure, so that it is not reported twice. */
  told: string;
}

/**
 * Compaction in the background of a server: one rewrite at a time for all agents, on a thread of its own, with pauses. Queries and commits
 * continue meanwhile; they see the result with the one manifest that ends a rewrite.
 */
export class BackgroundCompaction {
  private readonly workers: WorkerPool;
  /** Damaged files of each agent, which are not tried again. `verify` reports them. */
  private readonly damaged = new Map<string, Set<string>>();
  private readonly tallies = new Map<string, CompactionTally>();
  private readonly patience = new Map<string, RetryPause>();
  private readonly stopping = new AbortController();
  /** Index of the agent that is looked at first, so that a busy agent does not keep the others waiting. */
  private turn = 0;
  private nextMs = 0;
  private readonly work = new SharedWork((agents: readonly BackgroundAgent[]) => this.next(agents));

  constructor(private readonly options: BackgroundOptions) {
    this.workers = new WorkerPool(options.threads);
  }

  /** What has been done for an agent. */
  counts(agent: string): CompactionCounts {
    return this.tally(agent);
  }

  private tally(agent: string): CompactionTally {
    let tally = this.tallies.get(agent);
    if (tally === undefined) {
      tally = new CompactionTally();
      this.tallies.set(agent, tally);
    }
    return tally;
  }

  /** Number of threads that are rewriting. */
  get busy(): number {
    return this.workers.busy;
  }

  /** Whether rewrites run without being asked for. */
  get isAlone(): boolean {
    return this.options.threads > 0;
  }

  /** Starts a rewrite if one is due and none is running. Never throws, and returns at once. For a timer. */
  tick(agents: readonly BackgroundAgent[]): void {
    if (this.work.isRunning || performance.now() < this.nextMs) return;
    void this.runOnce(agents);
  }

  /** Does the next rewrite, if there is one, and returns whether there was. */
  runOnce(agents: readonly BackgroundAgent[]): Promise<boolean> {
    return this.work.run(agents);
  }

  private async next(agents: readonly BackgroundAgent[]): Promise<boolean> {
    const { now, zstdAfterMs } = this.options;
    for (let i = 0; i < agents.length && !this.stopping.signal.aborted; i++) {
      const agent = agents[(this.turn + i) % agents.length]!;
      const { agent: name, manifest, damage } = agent.state;
      if (manifest === undefined || damage !== undefined) continue;
      if ((this.patience.get(name)?.untilMs ?? 0) > performance.now()) continue;
      const policy = { nowMs: now(), zstdAfterMs, thorough: false };
      const rewrite = proposeRewrite(manifest, policy, this.damaged.get(name));
      if (rewrite === undefined) continue;
      this.turn = (this.turn + i + 1) % agents.length;
      const startMs = performance.now();
      try {
        const written = await publishRewrite(agent, rewrite, (job) => this.run(job), this.share);
        this.tally(name).rewritten(rewrite.segments, written);
        this.patience.delete(name);
      } catch (error) {
        this.failed(
          name,
          rewrite.segments.map(({ file }) => file),
          error,
        );
      }
      // Pause in addition to the pauses within the rewrite, which do not cover its end, or short rewrites at all.
      this.nextMs = performance.now() + (performance.now() - startMs) * (1 / backgroundShare - 1);
      return true;
    }
    return false;
  }

  private get share(): number {
    return this.options.threads === 0 ? 1 : backgroundShare;
  }

  private run(job: Parameters<typeof rewriteSegments>[1]): ReturnType<typeof rewriteSegments> {
    const { directory, threads } = this.options;
    const { workers } = this;
    if (threads === 1) return workers.run(rewriteTask, { location: directory.location, job });
    return rewriteSegments({ directory, workers, signal: this.stopping.signal }, job);
  }

  private failed(agent: string, files: readonly string[], error: unknown): void {
    if (this.stopping.signal.aborted) return;
    if (!isOvertaken(error)) this.tally(agent).failed++;
    const message = error instanceof Error ? error.message : String(error);
    if (error instanceof DamageError) {
      const known = this.damaged.get(agent) ?? new Set();
      const named = files.filter((file) => error.path?.endsWith(file));
      for (const file of named.length > 0 ? named : files) known.add(file);
      this.damaged.set(agent, known);
      this.options.onWarning(
        `agent ${agent}: ${error.path ?? named.join(', ')} is damaged and was left unchanged: ${message}; ` +
          `"logstrata verify ${agent}" shows what is lost`,
      );
      return;
    }
    const told = this.patience.get(agent)?.told;
    this.patience.set(agent, { untilMs: performance.now() + backgroundRetryMs, told: message });
    if (isOvertaken(error) || told === message) return;
    const what = isLogstrataError(error) ? message : `${message} (a bug)`;
    this.options.onWarning(`agent ${agent} could not be compacted: ${what}; will be tried again later`);
  }

  /** Stops the current rewrite and discards its files. */
  async stop(): Promise<void> {
    this.stopping.abort();
    await this.workers.close();
    await this.work.settled();
  }
}
