import { type AgentStore, LogstrataError, type ObjectStorage, type WorkerPool } from '../../engine/index.js';
import { ArchiveAttaching, type AttachStatus } from '../archive/archive-attaching.js';
import { ArchiveImport, type ImportStatus } from '../archive/archive-import.js';
import type { AgentDefinition, ArchiveInput } from '../definition/definition.js';
import { AgentCollector, type CollectSettings } from './agent-collector.js';
import { AgentFollowing, type FollowingOptions } from './agent-following.js';
import type { CollectStatus } from './logs/collect-counts.js';
import { FramePool } from './line-frame.js';
import { OpenFiles } from './logs/open-files.js';
import { SystemCollector } from './system-collector.js';
import { WakeUp } from './logs/wake-up.js';

/** A collected agent, and the store of its records. */
export interface CollectedAgent {
  readonly definition: AgentDefinition;
  readonly store: AgentStore;
}

/** Options of the collection of all agents. */
export interface CollectionOptions
  extends CollectSettings, Pick<FollowingOptions, 'flushMs' | 'backlogEveryMs'> {
  /** Object storage for `s3://` paths. */
  readonly objects?: ObjectStorage | undefined;
  /** Adds fields to an agent: those of columns that new files of its archive have. */
  readonly redefine: (definition: AgentDefinition) => Promise<void>;
  /** Receives why an agent's archive, which is all that it has, can't be used. It is tried again. */
  readonly onRefused?: (agent: string, reason: string) => void;
}

/** File handles of logs that one process keeps open. The usual limit is 1024 or more, and queries need handles too. */
const handlesMax = 4096;

/** Agents that the log introduces one by one at the start: of more, nobody reads each. */
const introducedMax = 20;

/** A task that runs for an agent until its signal aborts. */
interface Task<Status> {
  run(signal: AbortSignal, wakeUp: WakeUp): Promise<void>;
  /** State of the collection, or progress of the archive. */
  status(): Status;
}

/** The tasks of an agent, by kind. */
interface Tasks {
  readonly following: Task<CollectStatus>;
  readonly measuring: Task<CollectStatus>;
  readonly importing: Task<ImportStatus>;
  readonly attaching: Task<AttachStatus>;
}

type Kind = keyof Tasks;
type StatusOf<K extends Kind> = ReturnType<Tasks[K]['status']>;

interface RunningTask {
  readonly kind: Kind;
  readonly task: Tasks[Kind];
  readonly stopping: AbortController;
  readonly wakeUp: WakeUp;
  running: Promise<void> | undefined;
}

/**
 * Collects the data of all agents: follows their logs, imports or attaches their archives, takes system figures. Agents can
 * be added and removed at any time.
 */
export class Collection {
  private readonly agents = new Map<string, readonly RunningTask[]>();
  private readonly frames: FramePool;
  private readonly handles: OpenFiles;
  /** The agents that follow trees of folders. */
  private readonly trees = new Set<string>();
  private isStarted = false;
  /** Whether the log introduces each agent whose collection begins. */
  private introduces = true;

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
    const tasks: Partial<Tasks> = {
      ...(file === undefined ? {} : { following: await this.follow(definition, store) }),
      ...(system === undefined
        ? {}
        : { measuring: new SystemCollector({ ...this.options, definition, store, system }) }),
      ...(archive === undefined ? {} : this.archiveTask({ definition, store }, archive)),
    };
    const added = (Object.entries(tasks) as [Kind, Tasks[Kind]][]).map(([kind, task]) => ({
      kind,
      task,
      stopping: new AbortController(),
      wakeUp: new WakeUp(),
      running: undefined,
    }));
    if (added.length === 0) return;
    this.agents.set(name, added);
    if (this.isStarted) added.forEach(begin);
  }

  private archiveTask({ definition, store }: CollectedAgent, archive: ArchiveInput): Partial<Tasks> {
    const { dataFolder } = this.options;
    const redefine = (grown: AgentDefinition): Promise<void> => this.options.redefine(grown);
    const onRefused = (reason: string): void => {
      if (definition.file === undefined) this.options.onRefused?.(definition.name, reason);
    };
    const options = { ...this.options, definition, archive, store, dataFolder, redefine, onRefused };
    return archive.mode === 'import'
      ? { importing: new ArchiveImport(options) }
      : { attaching: new ArchiveAttaching(options) };
  }

  private async follow(definition: AgentDefinition, store: AgentStore): Promise<Task<CollectStatus>> {
    const { options, handles, frames } = this;
    const collector = new AgentCollector({ ...options, definition, store, handles });
    try {
      await collector.prepare();
    } catch (error) {
      collector.pause(error);
    }
    const isTree = definition.file?.folderPatterns !== undefined;
    if (isTree) this.trees.add(definition.name);
    const sharedBy = isTree ? (): number => this.trees.size : undefined;
    const following = { ...options, frames, sharedBy, fields: definition.fields.length };
    return {
      run: (signal, wakeUp) =>
        new AgentFollowing(collector, { ...following, introduces: this.introduces }, signal, wakeUp).run(),
      status: () => collector.status(),
    };
  }

  /** Starts the collection of all agents. Never throws: failures are logged and tried again. */
  start(): void {
    this.isStarted = true;
    const { size } = this.agents;
    this.introduces = size <= introducedMax;
    for (const works of this.agents.values()) works.forEach(begin);
    if (!this.introduces) this.options.log.info({ agents: size }, 'collecting the logs of these agents');
    this.introduces = true;
  }

  /** The worker threads that decode lines. */
  get workers(): WorkerPool {
    return this.options.workers;
  }

  /** State of the collection, by agent. */
  status(): Record<string, CollectStatus> {
    return { ...this.each('following'), ...this.each('measuring') };
  }

  /** Progress of imported archives, by agent. */
  importing(): Record<string, ImportStatus> {
    return this.each('importing');
  }

  /** Progress of attached archives, whose files are queried in place, by agent. */
  attaching(): Record<string, AttachStatus> {
    return this.each('attaching');
  }

  private each<K extends Kind>(kind: K): Record<string, StatusOf<K>> {
    const statuses: Record<string, StatusOf<K>> = {};
    for (const [name, tasks] of this.agents)
      for (const running of tasks)
        if (running.kind === kind) statuses[name] = running.task.status() as StatusOf<K>;
    return statuses;
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
    this.trees.delete(name);
  }

  /** Stops collecting all agents. Resolves once what is under way is stored. */
  async stop(): Promise<void> {
    this.isStarted = false;
    await Promise.all([...this.agents.keys()].map((name) => this.remove(name)));
    this.frames.close();
  }
}

function begin(running: RunningTask): void {
  running.running ??= running.task.run(running.stopping.signal, running.wakeUp);
}
