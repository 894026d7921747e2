import { type AgentStore, LogstrataError, type ObjectStorage, type WorkerPool } from '../../engine/index.js';
import { ArchiveAttaching } from '../archive/archive-attaching.js';
import { ArchiveImport } from '../archive/archive-import.js';
import type { AttachStatus } from '../archive/attach-status.js';
import type { ImportStatus } from '../archive/import-status.js';
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
  /** Where `s3://` paths lead. */
  readonly objects?: ObjectStorage | undefined;
  readonly workers: WorkerPool;
  readonly log: CollectLog;
  readonly now: () => number;
  readonly timezone: string;
  readonly limitLines: number;
  /** Longest time from a line to its answer. */
  readonly flushMs: number;
  readonly tailTimeoutMs: number;
  /** Gives an agent more fields, those of columns that files of its archive have which came. */
  readonly redefine: (definition: AgentDefinition) => Promise<void>;
  /** See `FollowingOptions`. */
  readonly backlogEveryMs?: number | undefined;
}

/** Handles of logs that stay open in one process. Systems give from 1024 on, and queries need some too. */
const handlesMax = 4096;

/** What is done for an agent until it is told to stop. */
interface Work {
  readonly run: (signal: AbortSignal, wakeUp: WakeUp) => Promise<void>;
  /** How its collection stands, where that is the work. */
  readonly status?: () => CollectStatus;
  /** How far its archive is, where that is the work. */
  readonly importing?: () => ImportStatus;
  /** The same where its files are answered from where they lie. */
  readonly attaching?: () => AttachStatus;
}

interface Collecting extends Work {
  readonly stopping: AbortController;
  readonly wakeUp: WakeUp;
  running: Promise<void> | undefined;
}

/** Collects what the agents have: follows their logs, takes their figures. Agents may come and go meanwhile. */
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
   * Takes in an agent, which is collected from `start` on. To be awaited before anybody is told that it is: since when an agent
   * is followed is noted here. What fails is told, and tried again.
   */
  async add({ definition, store }: CollectedAgent): Promise<void> {
    const { name, file, archive, system } = definition;
    if (this.agents.has(name)) throw new LogstrataError('invalid', `agent ${name} is collected already`);
    const works: Work[] = [];
    if (file !== undefined) works.push(await this.follow(definition, store));
    if (system !== undefined)
      works.push(this.takeFigures(new SystemCollector({ ...this.options, definition, store, system })));
    if (archive !== undefined) {
      const { dataFolder } = this.options;
      const redefine = (grown: AgentDefinition): Promise<void> => this.options.redefine(grown);
      const options = { ...this.options, definition, archive, store, dataFolder, redefine };
      works.push(
        archive.mode === 'import'
          ? importing(new ArchiveImport(options))
          : attaching(new ArchiveAttaching(options)),
      );
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

  private takeFigures(collector: SystemCollector): Work {
    return {
      run: (signal, wakeUp) => collector.run(signal, wakeUp),
      status: () => collector.status(),
    };
  }

  /** Begins. Nothing is thrown: what fails is told, and tried again. */
  start(): void {
    this.isStarted = true;
    for (const works of this.agents.values()) works.forEach(begin);
  }

  /** The threads that decode what is collected. */
  get workers(): WorkerPool {
    return this.options.workers;
  }

  /** How the collection of each agent stands. */
  status(): Record<string, CollectStatus> {
    return this.each(({ status }) => status?.());
  }

  /** How far the archive of each agent is that is imported. */
  importing(): Record<string, ImportStatus> {
    return this.each((work) => work.importing?.());
  }

  /** How far the archive of each agent is whose files are answered from where they lie. */
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

  /** Collects an agent no longer. Ends when what is under way is stored. */
  async remove(name: string): Promise<void> {
    const works = this.agents.get(name) ?? [];
    for (const work of works) {
      work.stopping.abort();
      work.wakeUp.call();
    }
    for (const { running } of works) await running;
    this.agents.delete(name);
  }

  /** Ends when what is under way is stored. */
  async stop(): Promise<void> {
    this.isStarted = false;
    await Promise.all([...this.agents.keys()].map((name) => this.remove(name)));
    this.frames.close();
  }
}

function begin(work: Collecting): void {
  work.running ??= work.run(work.stopping.signal, work.wakeUp);
}

function attaching(archive: ArchiveAttaching): Work {
  return {
    run: (signal, wakeUp) => archive.run(signal, wakeUp),
    attaching: () => archive.status(),
  };
}

function importing(archive: ArchiveImport): Work {
  return {
    run: (signal, wakeUp) => archive.run(signal, wakeUp),
    importing: () => archive.status(),
  };
}
