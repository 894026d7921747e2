import { setTimeout as delay } from 'node:timers/promises';
import type { AgentStore } from '../../engine/archive.js';
import type { WorkerPool } from '../../engine/workers/worker-pool.js';
import type { AgentDefinition } from '../definition.js';
import { AgentCollector } from './agent-collector.js';
import type { CollectStatus } from './collect-counts.js';
import type { CollectLog } from './collect-log.js';
import { FolderChanges } from './folder-changes.js';
import { FramePool } from './frame-pool.js';
import type { LogFiles } from './log-files.js';
import { OpenFiles } from './open-files.js';
import { WakeUp } from './wake-up.js';

export interface CollectionOptions {
  /** Agents with `file`, and their stores. */
  readonly agents: readonly { readonly definition: AgentDefinition; readonly store: AgentStore }[];
  readonly files: LogFiles;
  readonly workers: WorkerPool;
  readonly log: CollectLog;
  readonly now: () => number;
  readonly timezone: string;
  readonly limitLines: number;
  /** Longest time from a line to its answer. */
  readonly flushMs: number;
  readonly tailTimeoutMs: number;
}

/** Handles of logs that stay open in one process. Systems give from 1024 on, and queries need some too. */
const handlesMax = 4096;

/** Lines wait this part of the time that they may take; the rest is for reading, decoding and committing them. */
const paceFraction = 0.6;

/** How often the folder is looked at although no change was announced, and where a change can't be announced. */
const surveyMs = 2000;
const waitingMs = 1000;

/** Looking at the folder takes at most this part of the time, so that very many files are looked at less often. */
const surveyFraction = 0.1;

/** After a failure of the storage it is tried again after this time. */
const retryMs = 1000;

/** Follows the logs of all agents until it is told to stop. */
export class Collection {
  private readonly collectors: readonly AgentCollector[];
  private readonly frames: FramePool;
  private readonly stopping = new AbortController();
  private readonly wakeUps: WakeUp[] = [];
  private running: Promise<unknown> | undefined;

  constructor(private readonly options: CollectionOptions) {
    const { agents, files, workers } = options;
    const handles = new OpenFiles(files, handlesMax);
    this.frames = new FramePool(Math.max(1, workers.threads));
    this.collectors = agents.map(
      ({ definition, store }, key) => new AgentCollector({ ...options, definition, store, handles, key }),
    );
  }

  /** Notes since when each agent is followed: to be awaited before anybody is told that they are. */
  async prepare(): Promise<void> {
    for (const collector of this.collectors) {
      try {
        await collector.prepare();
      } catch (error) {
        collector.pause(error);
      }
    }
  }

  /** Begins. Nothing is thrown: what fails is told, and tried again. */
  start(): void {
    this.running = Promise.all(this.collectors.map((collector) => this.follow(collector)));
  }

  /** How the collection of each agent stands. */
  status(): Record<string, CollectStatus> {
    return Object.fromEntries(this.collectors.map((collector) => [collector.name, collector.status()]));
  }

  /** Ends when what is under way is stored. */
  async stop(): Promise<void> {
    this.stopping.abort();
    for (const wakeUp of this.wakeUps) wakeUp.call();
    await this.running;
  }

  private async follow(collector: AgentCollector): Promise<void> {
    const wakeUp = new WakeUp();
    this.wakeUps.push(wakeUp);
    const { signal } = this.stopping;
    const following = new AgentFollowing(collector, this.options, this.frames, wakeUp, signal);
    await following.run();
    await collector.close();
  }
}

/** The loop of one agent. */
class AgentFollowing {
  private readonly changes: FolderChanges;
  private surveyedMs = -Infinity;
  private surveyTookMs = 0;
  private isFirst = true;

  constructor(
    private readonly collector: AgentCollector,
    private readonly options: CollectionOptions,
    private readonly frames: FramePool,
    private readonly wakeUp: WakeUp,
    private readonly signal: AbortSignal,
  ) {
    this.changes = new FolderChanges(options.files, collector.directory, wakeUp);
  }

  async run(): Promise<void> {
    while (!this.signal.aborted) {
      const isWell = await this.step();
      if (this.signal.aborted) break;
      if (isWell) await this.rest();
      else await this.pause(retryMs);
    }
    this.changes.end(performance.now());
  }

  /** Takes all that there is. Returns false after a failure of the storage. */
  private async step(): Promise<boolean> {
    const { collector, frames } = this;
    try {
      for (let more = true; more && !this.signal.aborted;) {
        await this.look();
        const round = await frames.use((frame) => collector.round(frame));
        collector.resume();
        more = round === 'more';
      }
      if (this.isFirst) this.introduce();
      return true;
    } catch (error) {
      collector.pause(error);
      this.surveyedMs = -Infinity;
      return false;
    }
  }

  private async look(): Promise<void> {
    const startedMs = performance.now();
    const isNew = this.changes.begin(startedMs);
    const names = this.changes.take(startedMs);
    const isDue = isNew || names === null || startedMs - this.surveyedMs >= this.surveyEveryMs();
    if (!isDue && (await this.collector.touch(names))) return;
    await this.collector.survey();
    this.surveyedMs = performance.now();
    this.surveyTookMs = this.surveyedMs - startedMs;
  }

  private surveyEveryMs(): number {
    const { changes, collector } = this;
    const wantedMs = changes.watching && !collector.hasLinks ? (collector.waits ? waitingMs : surveyMs) : 0;
    return Math.max(wantedMs, this.paceMs, this.surveyTookMs / surveyFraction);
  }

  private get paceMs(): number {
    return this.options.flushMs * paceFraction;
  }

  /** Lets lines gather for one commit, then waits for a change, or for the next look at the folder. */
  private async rest(): Promise<void> {
    await this.pause(this.paceMs);
    if (this.signal.aborted) return;
    const leftMs = this.surveyedMs + this.surveyEveryMs() - performance.now();
    if (leftMs > 0) await this.wakeUp.sleep(leftMs);
  }

  /** Sleeps, whatever changes meanwhile, unless it is to stop. */
  private async pause(ms: number): Promise<void> {
    await delay(ms, undefined, { signal: this.signal }).catch(() => {});
  }

  /** Says on start what is followed. */
  private introduce(): void {
    this.isFirst = false;
    const { collector, options } = this;
    const { files, lagBytes } = collector.status();
    const definition = options.agents.find(
      ({ definition: each }) => each.name === collector.name,
    )!.definition;
    const followed = files.filter(({ role }) => role === 'follow').length;
    options.log.info(
      {
        agent: collector.name,
        folder: collector.directory,
        files: followed,
        lag: lagBytes,
        fields: definition.fields.length,
      },
      followed === 0 ? 'no log is there yet' : 'following',
    );
  }
}
