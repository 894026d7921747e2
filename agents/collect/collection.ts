import { type AgentStore, LogstrataError, type WorkerPool } from '../../engine/index.js';
import type { AgentDefinition } from '../definition/definition.js';
import { AgentCollector } from './agent-collector.js';
import { AgentFollowing } from './agent-following.js';
import type { CollectStatus } from './logs/collect-counts.js';
import type { CollectLog } from './logs/collect-log.js';
import { FramePool } from './frame-pool.js';
import type { LogFiles } from './logs/log-files.js';
import { OpenFiles } from './logs/open-files.js';
import { SystemCollector } from './system-collector.js';
import { WakeUp } from './logs/wake-up.js';

/** An agent that is collected, and where its records go. */
export interface CollectedAgent {
  readonly definition: AgentDefinition;
  readonly store: AgentStore;
}

export interface CollectionOptions {
  readonly files: LogFiles;
  /** Of the archive: nothing in it is followed. */
  readonly dataFolder?: string | undefined;
  readonly workers: WorkerPool;
  readonly log: CollectLog;
  readonly now: () => number;
  readonly timezone: string;
  readonly limitLines: number;
  /** Longest time from a line to its answer. */
  readonly flushMs: number;
  readonly tailTimeoutMs: number;
  /** See `FollowingOptions`. */
  readonly backlogEveryMs?: number | undefined;
}

/** Handles of logs that stay open in one process. Systems give from 1024 on, and queries need some too. */
const handlesMax = 4096;

/** One agent that is collected. */
interface Collecting {
  readonly run: (signal: AbortSignal, wakeUp: WakeUp) => Promise<void>;
  readonly status: () => CollectStatus;
  readonly stopping: AbortController;
  readonly wakeUp: WakeUp;
  running: Promise<void> | undefined;
}

/** Collects what the agents have: follows their logs, takes their figures. Agents may come and go meanwhile. */
export class Collection {
  private readonly agents = new Map<string, Collecting>();
  private readonly frames: FramePool;
  private readonly handles: OpenFiles;
  private isStarted = false;

  constructor(private readonly options: CollectionOptions) {
    this.handles = new OpenFiles(options.files, handlesMax);
    const { threads } = options.workers;
    this.frames = new FramePool(Math.max(1, threads), threads > 0);
  }

  /**
   * Takes in an agent, which is collected from `start` on. To be awaited before anybody is told that it is: since when an agent
   * is followed is noted here. What fails is told, and tried again.
   */
  async add({ definition, store }: CollectedAgent): Promise<void> {
    const { name, file, system } = definition;
    if (this.agents.has(name)) throw new LogstrataError('invalid', `agent ${name} is collected already`);
    const parts =
      file !== undefined
        ? await this.follow(definition, store)
        : system !== undefined
          ? this.takeFigures(new SystemCollector({ ...this.options, definition, store, system }))
          : undefined;
    if (parts === undefined) return;
    const added = { ...parts, stopping: new AbortController(), wakeUp: new WakeUp(), running: undefined };
    this.agents.set(name, added);
    if (this.isStarted) begin(added);
  }

  private async follow(
    definition: AgentDefinition,
    store: AgentStore,
  ): Promise<Pick<Collecting, 'run' | 'status'>> {
    const { options, handles, frames } = this;
    const collector = new AgentCollector({ ...options, definition, store, handles });
    try {
      await collector.prepare();
    } catch (error) {
      collector.pause(error);
    }
    const following = { ...options, frames, fields: definition.fields.length };
    return {
      run: (signal, wakeUp) => new AgentFollowing(collector, following, signal, wakeUp).run(),
      status: () => collector.status(),
    };
  }

  private takeFigures(collector: SystemCollector): Pick<Collecting, 'run' | 'status'> {
    return {
      run: (signal, wakeUp) => collector.run(signal, wakeUp),
      status: () => collector.status(),
    };
  }

  /** Begins. Nothing is thrown: what fails is told, and tried again. */
  start(): void {
    this.isStarted = true;
    for (const agent of this.agents.values()) begin(agent);
  }

  /** How the collection of each agent stands. */
  status(): Record<string, CollectStatus> {
    return Object.fromEntries([...this.agents].map(([name, { status }]) => [name, status()]));
  }

  /** Collects an agent no longer. Ends when what is under way is stored. */
  async remove(name: string): Promise<void> {
    const agent = this.agents.get(name);
    if (agent === undefined) return;
    agent.stopping.abort();
    agent.wakeUp.call();
    await agent.running;
    this.agents.delete(name);
  }

  /** Ends when what is under way is stored. */
  async stop(): Promise<void> {
    this.isStarted = false;
    await Promise.all([...this.agents.keys()].map((name) => this.remove(name)));
    this.frames.close();
  }
}

function begin(agent: Collecting): void {
  agent.running ??= agent.run(agent.stopping.signal, agent.wakeUp);
}
