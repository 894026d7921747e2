import { DamageError, isLogstrataError } from '../terms/errors.js';
import { backgroundRetryMs, backgroundShare } from '../terms/limits.js';
import type { AgentState } from '../store/reading/agent-state.js';
import type { Committer } from '../store/manifest/committer.js';
import type { Directory } from '../store/disk/directory.js';
import { WorkerPool } from '../workers/worker-pool.js';
import { isOvertaken, publishRewrite } from './compaction.js';
import { CompactionTally, type CompactionCounts } from './compaction-tally.js';
import { proposeRewrite } from './compaction-policy.js';
import { rewriteSegments } from './rewrite.js';
import { rewriteTask } from './rewrite-task.js';

/** An agent of this process, which is the writer. */
export interface BackgroundAgent {
  readonly state: AgentState;
  readonly committer: Committer;
}

export interface BackgroundOptions {
  readonly directory: Directory;
  readonly now: () => number;
  readonly zstdAfterMs: number | null;
  /** 1: rewrites run on a thread of their own, in a folder on the disk. 0: on the thread that asks, and only then, in any folder. */
  readonly threads: 0 | 1;
  readonly onWarning: (message: string) => void;
}

interface RetryPause {
  /** Not before this time of the process is the agent looked at again. */
  untilMs: number;
  /** The failure that was told last, so that it is told once. */
  told: string;
}

/**
 * Compaction beside everything else that a server does: one rewrite at a time for all agents, on a thread of its own, with
 * pauses. Queries and commits go on meanwhile; what they see changes with the one manifest that ends a rewrite.
 */
export class BackgroundCompaction {
  private readonly workers: WorkerPool;
  /** Files, with their agent's folder, that turned out damaged: `verify` tells about them, and nothing is to be gained by trying. */
  private readonly damaged = new Map<string, Set<string>>();
  private readonly tallies = new Map<string, CompactionTally>();
  private readonly patience = new Map<string, RetryPause>();
  private readonly stopping = new AbortController();
  /** Where the next look begins, so that a busy agent does not keep the others waiting. */
  private turn = 0;
  private nextMs = 0;
  private running: Promise<boolean> | undefined;

  constructor(private readonly options: BackgroundOptions) {
    this.workers = new WorkerPool(options.threads);
  }

  /** What it has done of an agent. */
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

  /** Threads that rewrite at present. */
  get busy(): number {
    return this.workers.busy;
  }

  /** Whether it does its work by itself. */
  get isAlone(): boolean {
    return this.options.threads > 0;
  }

  /** Begins a rewrite if one is due and none is under way. Never fails, and returns at once: for a timer. */
  tick(agents: readonly BackgroundAgent[]): void {
    if (this.running !== undefined || performance.now() < this.nextMs) return;
    void this.runOnce(agents);
  }

  /** Does the next rewrite, if there is one to do, and says whether there was. */
  runOnce(agents: readonly BackgroundAgent[]): Promise<boolean> {
    this.running ??= this.next(agents).finally(() => {
      this.running = undefined;
    });
    return this.running;
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
      // The end of a rewrite, and short ones altogether, have had no pauses.
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
        `agent ${agent}: ${error.path ?? named.join(', ')} is damaged and stays as it is: ${message}; ` +
          `"logstrata verify ${agent}" says what is lost`,
      );
      return;
    }
    const told = this.patience.get(agent)?.told;
    this.patience.set(agent, { untilMs: performance.now() + backgroundRetryMs, told: message });
    if (isOvertaken(error) || told === message) return;
    const what = isLogstrataError(error) ? message : `${message} (a bug)`;
    this.options.onWarning(`agent ${agent} could not be compacted: ${what}; tried again later`);
  }

  /** Stops the rewrite under way, which leaves nothing behind. */
  async stop(): Promise<void> {
    this.stopping.abort();
    await this.workers.close();
    await this.running;
  }
}
