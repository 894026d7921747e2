import { type AgentStore, LogstrataError, type ObjectStorage, type WorkerPool } from '../../engine/index.js';
import { ArchiveAttaching, type AttachStatus } from '../archive/archive-attaching.js';
import { ArchiveImport, type ImportStatus } from '../archive/archive-import.js';
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

/** A collected agent, and the store of its records. */
export interface CollectedAgent {
  readonly definition: AgentDefinition;
  readonly store: AgentStore;
}

/** Options of the collection of all agents. */
export interface CollectionOptions {
  readonly files: LogFiles;
  /** Data folder of the archive; files in it are not followed. */
  readonly dataFolder?: string | undefined;
  /** Object storage for `s3://` paths. */
  readonly objects?: ObjectStorage | undefined;
  readonly workers: WorkerPool;
  readonly log: CollectLog;
  readonly now: () => number;
  readonly timezone: string;
  readonly limitLines: number;
  /** Longest time, in milliseconds, from the writing of a line until queries see it. */
  readonly flushMs: number;
  readonly tailTimeoutMs: number;
  /** Adds fields to an agent: those of columns that new files of its archive have. */
  readonly redefine: (definition: AgentDefinition) => Promise<void>;
  /** Receives why an agent's archive, which is all that it has, can't be used. It is tried again. */
  readonly onRefused?: (agent: string, reason: string) => void;
  /** See `FollowingOptions`. */
  readonly backlogEveryMs?: number | undefined;
}

/** File handles of logs that one process keeps open. The usual limit is 1024 or more, and queries need handles too. */
const handlesMax = 4096;

/** A task that runs for an agent until its signal aborts. */
interface Work {
  readonly run: (signal: AbortSignal, wakeUp: WakeUp) => Promise<void>;
  /** State of the collection, for tasks that collect. */
  readonly status?: () => CollectStatus;
  /** Progress of the import, for archives that are imported. */
  readonly importing?: () => ImportStatus;
  /** Progress of attaching, for archives whose files stay in place and are queried there. */
  readonly attaching?: () => AttachStatus;
}

interface Collecting extends Work {
  readonly stopping: AbortController;
  readonly wakeUp: WakeUp;
  running: Promise<void> | undefined;
}

/**
 * Collects the data of all agents: follows their logs, imports or attaches their archives, takes system figures. Agents can
 * be added and removed at any time.
 */
export class Collection {
  private readonly agents = new Map<string, readonly Collecting[]>();
  private readonly frames: FramePool;
  private readonly handles: OpenFiles;
  private isStarted = false;

  constructor(private readonly options: CollectionOptions) {
    this.handles = new OpenFiles(options.files, handlesMax);
    const { threads } = options.workers;
    this.frames = new FramePool(Math.max(1, threads), threads > 0);
  }

  /**
   * Adds an agent; its collection runs once `start` has been called. Await this before reporting that the agent is followed:
   * the time from which it is followed is recorded here. Failures of that are logged and tried again. Throws `invalid` for
   * an agent that is there already.
   */
  async add({ definition, store }: CollectedAgent): Promise<void> {
    const { name, file, archive, system } = definition;
    if (this.agents.has(name)) throw new LogstrataError('invalid', `agent ${name} is already collected`);
    const works: Work[] = [];
    if (file !== undefined) works.push(await this.follow(definition, store));
    if (system !== undefined) {
      const task = new SystemCollector({ ...this.options, definition, store, system });
      works.push({ run: (...args) => task.run(...args), status: () => task.status() });
    }
    if (archive !== undefined) {
      const { dataFolder } = this.options;
      const redefine = (grown: AgentDefinition): Promise<void> => this.options.redefine(grown);
      const onRefused = (reason: string): void => {
        if (file === undefined) this.options.onRefused?.(name, reason);
      };
      const options = { ...this.options, definition, archive, store, dataFolder, redefine, onRefused };
      if (archive.mode === 'import') {
        const task = new ArchiveImport(options);
        works.push({ run: (...args) => task.run(...args), importing: () => task.status() });
      } else {
        const task = new ArchiveAttaching(options);
        works.push({ run: (...args) => task.run(...args), attaching: () => task.status() });
      }
    }
    if (works.length === 0) return;
    const added = works.map((work) => ({
      ...work,
      stopping: new AbortController(),
      wakeUp: new WakeUp(),
      running: undefined,
    }));
    this.agents.set(name, added);
    if (this.isStarted) added.forEach(begin);
  }

  private async follow(definition: AgentDefinition, store: AgentStore): Promise<Work> {
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

  /** Starts the collection of all agents. Never throws: failures are logged and tried again. */
  start(): void {
    this.isStarted = true;
    for (const works of this.agents.values()) works.forEach(begin);
  }

  /** The worker threads that decode lines. */
  get workers(): WorkerPool {
    return this.options.workers;
  }

  /** State of the collection, by agent. */
  status(): Record<string, CollectStatus> {
    return this.each(({ status }) => status?.());
  }

  /** Progress of imported archives, by agent. */
  importing(): Record<string, ImportStatus> {
    return this.each((work) => work.importing?.());
  }

  /** Progress of attached archives, whose files are queried in place, by agent. */
  attaching(): Record<string, AttachStatus> {
    return this.each((work) => work.attaching?.());
  }

  private each<T>(ask: (work: Work) => T | undefined): Record<string, T> {
    const answers = [...this.agents].flatMap(([name, works]) =>
      works.flatMap((work): [string, T][] => {
        const answer = ask(work);
        return answer === undefined ? [] : [[name, answer]];
      }),
    );
    return Object.fromEntries(answers);
  }

  /** Stops collecting an agent and removes it. Resolves once what is under way is stored. */
  async remove(name: string): Promise<void> {
    const works = this.agents.get(name) ?? [];
    for (const work of works) {
      work.stopping.abort();
      work.wakeUp.call();
    }
    for (const { running } of works) await running;
    this.agents.delete(name);
  }

  /** Stops collecting all agents. Resolves once what is under way is stored. */
  async stop(): Promise<void> {
    this.isStarted = false;
    await Promise.all([...this.agents.keys()].map((name) => this.remove(name)));
    this.frames.close();
  }
}

function begin(work: Collecting): void {
  work.running ??= work.run(work.stopping.signal, work.wakeUp);
}
