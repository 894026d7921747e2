import type { BackgroundShipping, Tier } from './shipping.js';
import { randomBytes } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { assert, isLogstrataError, LogstrataError } from '../core/errors.js';
import {
  agentFigures,
  poolFigures,
  type ArchiveFigures,
  agentTroubles,
  diskTroubles,
  lockTroubles,
  type Trouble,
} from './archive-figures.js';
import { everyStep, SharedWork } from '../core/waiting.js';
import { maintenanceIntervalMs, upkeepMsMax } from '../core/limits.js';
import { AgentRetention, type RetentionOutlook } from '../maintenance/agent-retention.js';
import { policyOf, type Retention, type RetentionEvent } from '../store/manifest/retention-policy.js';
import { repairAgent, type RepairReport } from '../maintenance/repair.js';
import { verifyOpening, type VerifyOptions, type VerifyReport } from '../maintenance/verify.js';
import { BackgroundCompaction, type BackgroundAgent } from '../maintenance/background.js';
import { isAgentName, sameSchema, type Schema } from '../core/schema.js';
import { GuardedThread } from '../workers/guarded-thread.js';
import { WorkerPool, workersDefault } from '../workers/worker-pool.js';
import { AgentFolders } from '../store/manifest/manifest-file.js';
import { AgentState } from '../store/reading/agent-state.js';
import { AgentWriter } from '../store/writer/agent-writer.js';
import { arrowModules } from '../store/hot/arrow-modules.js';
import { BufferPool } from '../store/reading/buffer-pool.js';
import type { ForeignMeans } from '../store/attached/foreign-work.js';
import type { AttachingCommitter } from '../store/attached/attached-list.js';
import type { Directory } from '../store/disk/directory.js';
import { Follower } from '../store/reading/follower.js';
import type { RetentionPolicy } from '../store/manifest/manifest.js';
import { poolBytesDefault, settingsOf, type OpenOptions, type Settings } from './open-options.js';
import { cleanUp, readCommitted, readStoredSchema, type Heads } from '../store/reading/recovery.js';
import {
  RemoteCommitter,
  type Neighbours,
  type WriterLink,
  type WriterLock,
} from '../store/writer/writer-link.js';
import { Removals } from '../store/writer/removals.js';
import { AgentStore } from './agent-store.js';
import { beginThreads, warmUp } from './warm-up.js';
import type { ChannelOperation } from '../store/writer/writer-channel.js';
import { refused, writerOperations } from '../store/writer/writer-operations.js';
import type { RepairOptions } from '../maintenance/examination.js';
import type { ObjectStorage } from '../objects/object-storage.js';

/** How often, and how long, a writer that is stopping is asked again until it has gone. */
const writerRetryMs = 20;
const writerAttemptsMax = 250;

interface OpenAgent {
  readonly store: AgentStore;
  readonly state: AgentState;
  readonly follower: Follower;
  writer: AgentWriter | undefined;
  removals: Removals | undefined;
  readonly retention: AgentRetention;
}

/**
 * An open data folder. In write mode this process holds the folder's lock, or commits through the process that holds it. In read mode it follows the
 * states that the writer publishes. `openArchive` opens a real one, tests those in memory.
 */
export class Archive {
  private readonly settings: Settings;
  private readonly pool: BufferPool;
  private readonly workers: WorkerPool;
  /** Resolves to whether an agent with records has been warmed up, or warming up was given up. One agent after another is tried. */
  private warmth: Promise<boolean> = Promise.resolve(true);
  private readonly warming = new AbortController();
  private readonly ownWorkers: WorkerPool | undefined;
  private readonly foreign: ForeignMeans;
  /** The object storage that `s3://` paths refer to; undefined when none is configured. */
  readonly objects: ObjectStorage | undefined;
  private readonly background: BackgroundCompaction | undefined;
  private readonly far: Tier | undefined;
  /** Ships by itself. */
  private readonly shipping: BackgroundShipping | undefined;
  private readonly opened = new Map<string, Promise<OpenAgent>>();
  /** Those of them that are open. */
  private readonly agentsOpen: OpenAgent[] = [];
  private lock: WriterLock | undefined;
  private readonly locking = new SharedWork(async () => {
    this.lock = await this.neighbours.lock();
  });
  private readStatus: () => unknown = () => undefined;
  /** Other processes can commit through this one. */
  private serving = false;
  private link: WriterLink | undefined;
  /** The link to the writer of another process, made anew where it has gone; undefined when there is no writer. */
  private readonly writerLink = new SharedWork(async () => {
    if (this.link?.alive !== true) this.link = await this.neighbours.connect();
    return this.link;
  });
  private timer: NodeJS.Timeout | undefined;
  /** One round at a time. A round waits for the commits of every agent: one that does not end shows that commits do not end either. */
  private readonly upkeep = new SharedWork(() => this.maintainOnce());
  /** Takes the lock if no other process has it. What fails behind that is tried again the next time. */
  private readonly takingOver = new SharedWork(() => this.becomeWriter());
  private lastWarning: string | undefined;
  private readonly folders: AgentFolders;
  private closed = false;

  constructor(
    private readonly directory: Directory,
    options: OpenOptions,
    private readonly neighbours: Neighbours,
  ) {
    this.settings = settingsOf(options);
    this.objects = options.objects;
    this.foreign = { guard: new GuardedThread(), objects: options.objects };
    this.folders = new AgentFolders(directory, this.settings.onWarning);
    if (options.background !== undefined)
      this.background = new BackgroundCompaction({ directory, ...this.settings, ...options.background });
    const { far } = options;
    this.far = far;
    if (options.background?.threads === 1) this.shipping = far?.background({ directory, ...this.settings });
    this.ownWorkers = options.workers === undefined ? new WorkerPool(workersDefault()) : undefined;
    this.workers = options.workers ?? this.ownWorkers!;
    this.pool = new BufferPool(options.cacheBytes ?? poolBytesDefault());
  }

  /** Absolute path of the data folder, for messages. */
  get location(): string {
    return this.directory.location;
  }

  async start(): Promise<void> {
    if (this.settings.mode === 'write') await this.becomeWriterOrFollow();
    // A server does not wait for it in the middle of what it answers.
    if (this.settings.role === 'serve') arrowModules();
    if (this.settings.anticipates) this.warmth = beginThreads(this.workers).then(() => false);
    this.timer = setInterval(() => void this.upkeep.run(), maintenanceIntervalMs);
    this.timer.unref();
  }

  private async becomeWriterOrFollow(): Promise<void> {
    try {
      this.lock = await this.neighbours.lock();
    } catch (error) {
      // A server answers what is stored all the same, and takes the lock once there is room for it.
      if (this.settings.role !== 'serve' || !isLogstrataError(error) || error.code !== 'disk_full')
        throw error;
      return this.warn(error.message);
    }
    if (this.lock !== undefined) {
      this.serve(this.lock);
      return;
    }
    const link = await this.writerLink.run();
    if (link === undefined) return this.becomeWriterOrFollow();
    if (link.holder.role === 'serve' && this.settings.role === 'serve') {
      await link.close();
      throw new LogstrataError(
        'locked',
        `process ${link.holder.pid} already serves ${this.location}: stop it, or use another --data folder`,
        { path: this.location },
      );
    }
  }

  /**
   * Asks the writer of another process; undefined when there is none, or it is this one. One that is stopping refuses, and
   * has gone soon after: only then it is known who comes after it.
   */
  private async askWriter<T>(ask: (link: WriterLink) => Promise<T>): Promise<T | undefined> {
    for (let attempt = 1; ; attempt++) {
      const link = this.lock === undefined ? await this.writerLink.run() : undefined;
      // The link may be to the lock that this very process has taken meanwhile, which nobody answers for yet.
      await this.locking.settled();
      if (link === undefined || this.lock !== undefined) return undefined;
      try {
        return await ask(link);
      } catch (error) {
        if (!isLogstrataError(error) || error.code !== 'closed' || attempt === writerAttemptsMax) throw error;
      }
      await delay(writerRetryMs);
    }
  }

  /** Names of all agents whose folder holds any of their files, even if the manifest is lost. Sorted. */
  agents(): Promise<string[]> {
    return this.folders.agents();
  }

  /**
   * Opens the store of one agent. With `schema`, it becomes the store's current schema; in write mode this creates the store or
   * adds a schema version. Without `schema`, throws `not_found` when the store does not exist. Without `retention`, the
   * retention of an earlier call stays; if there was none, records are kept for ever.
   */
  async agent(name: string, schema?: Schema, retention?: Retention): Promise<AgentStore> {
    if (this.closed) throw new LogstrataError('closed', `the archive ${this.location} is closed`);
    if (!isAgentName(name)) {
      throw new LogstrataError(
        'invalid',
        `${JSON.stringify(name)} is not a valid agent name: use letters, digits, ".", "_" and "-"`,
      );
    }
    let opening = this.opened.get(name);
    if (opening === undefined) {
      opening = this.openAgent(name, schema);
      this.opened.set(name, opening);
      opening.catch(() => this.opened.delete(name));
    }
    const { store, writer } = await opening;
    if (retention !== undefined) {
      store.context.retention = retention;
      await writer?.keepNew(retention);
    }
    return store;
  }

  /**
   * Replaces the fields and the retention (`undefined`: none) of an open agent. Stored records stay as they are.
   * Nothing in this process may append to the agent meanwhile. After a failure the agent is as before.
   */
  async redefine(name: string, schema: Schema, retention: Retention | undefined): Promise<AgentStore> {
    const store = await this.agent(name, schema, retention);
    const agent = await this.opened.get(name)!;
    if (!sameSchema(agent.state.schema, schema)) {
      if (agent.writer === undefined) agent.state.show(schema);
      else await agent.writer.takeSchema(schema);
    }
    agent.store.context.retention = retention;
    agent.retention.makeDue();
    return store;
  }

  /**
   * Repairs an agent's folder (`repairAgent`). The archive must be open `alone`, and the agent must not have been opened, neither here
   * nor by another process through this one. Throws `locked` when another process writes: its state would no longer match the folder.
   */
  async repair(name: string, options: RepairOptions): Promise<RepairReport> {
    assert(!this.opened.has(name), 'an agent is repaired before it is opened');
    const { directory, workers } = this;
    if (this.lock === undefined) {
      const holder = this.link?.holder;
      const who = holder === undefined ? 'another process' : `process ${holder.pid} (${holder.role})`;
      throw new LogstrataError('locked', `${who} writes to ${this.location}: stop it before the repair`, {
        path: this.location,
      });
    }
    const { now, codec } = this.settings;
    const id = randomBytes(6).toString('hex');
    return repairAgent({ directory, agent: name, id, now, codec, workers }, options);
  }

  /** Verifies an agent as `AgentStore.verify` does, but also when its newest manifest can't be read and it can't be opened. */
  verify(name: string, options: VerifyOptions = {}): Promise<VerifyReport> {
    return verifyOpening(this.directory, name, () => this.agent(name), options);
  }

  private async openAgent(name: string, schema: Schema | undefined): Promise<OpenAgent> {
    const shown = schema ?? (await readStoredSchema(this.directory, name));
    const { workers, foreign } = this;
    const { far } = this;
    const state = new AgentState(this.directory, name, shown, this.pool, foreign);
    const { now, codec, zstdAfterMs, onRetention } = this.settings;
    const follower = new Follower(this.directory, state, () =>
      this.askWriter(async (link) => (await link.request('heads', { agent: name })) as Heads),
    );
    const access = {
      follows: true,
      refresh: () => follower.refresh(),
      committer: () => this.committer(name, state.schema),
    };
    const means = { directory: this.directory, workers, foreign, far, remote: far?.rows };
    const store = new AgentStore({ ...means, state, access, now, codec, zstdAfterMs, retention: undefined });
    const agent: OpenAgent = {
      store,
      state,
      follower,
      writer: undefined,
      removals: undefined,
      retention: new AgentRetention(state, now, onRetention),
    };
    if (this.lock !== undefined) await this.takeOver(agent);
    else await follower.refresh();
    if (state.damage !== undefined) this.settings.onWarning(`agent ${name}: ${state.damage.message}`);
    this.agentsOpen.push(agent);
    const { signal } = this.warming;
    this.warmth = this.warmth.then(
      (isWarm) => isWarm || signal.aborted || warmUp(state, this.workers, signal),
    );
    return agent;
  }

  /** Reads what is committed, removes what crashes have left, and commits from now on. */
  private async takeOver(agent: OpenAgent): Promise<void> {
    const { state, store } = agent;
    const { now, graceMs, codec, removalDelayMs } = this.settings;
    const { workers } = this;
    await agent.follower.end(async () => {
      await readCommitted(this.directory, state, () => Promise.resolve(undefined), 'writer');
      const removals = new Removals(this.directory, state, removalDelayMs, now);
      const writer = new AgentWriter(this.directory, state, removals, { now, graceMs, codec, workers });
      if (state.damage === undefined) {
        await cleanUp(this.directory, state);
        await writer.takeSchema();
      }
      agent.writer = writer;
      agent.removals = removals;
      store.context.access = {
        follows: false,
        refresh: () => Promise.resolve(),
        committer: () => Promise.resolve(writer),
      };
    });
  }

  /** The writer of another process, or this one where the other has gone. */
  private async committer(name: string, schema: Schema): Promise<AttachingCommitter> {
    if (this.settings.mode === 'read') throw new LogstrataError('invalid', 'this archive was opened to read');
    return this.asWriter<AttachingCommitter>(
      async (link) => {
        const opened = (await link.request('open', { agent: name, schema })) as { schemaVersion: number };
        return new RemoteCommitter(link, name, schema, opened.schemaVersion);
      },
      () => this.writerOf(name, schema),
    );
  }

  /** Has something done by the writer of another process, or by this one where the other has gone. */
  private async asWriter<T>(ask: (link: WriterLink) => Promise<T>, here: () => Promise<T>): Promise<T> {
    for (let attempt = 1; attempt <= writerAttemptsMax; attempt++) {
      const answer = await this.askWriter(ask);
      if (answer !== undefined) return answer;
      await this.takingOver.run();
      if (this.lock !== undefined) return here();
    }
    throw new LogstrataError('locked', `other processes keep taking the lock on ${this.location}`, {
      path: this.location,
    });
  }

  /** For the requests of other processes. */
  private async writerOf(name: string, schema?: Schema): Promise<AgentWriter> {
    await this.agent(name, schema);
    const { writer } = await this.opened.get(name)!;
    if (writer === undefined) throw new LogstrataError('closed', 'this process does not write any more');
    return writer;
  }

  private async maintainOnce(): Promise<void> {
    try {
      // A server that began while a load was the writer becomes it once that has ended; a load when it has to commit.
      if (this.settings.mode === 'write' && this.settings.role === 'serve') await this.takingOver.run();
      if (this.lock === undefined) return;
      for (const opening of this.opened.values()) {
        const agent = await opening;
        await agent.writer?.maintain();
        const ahead = agent.retention.aheadWarning();
        if (ahead !== null) this.settings.onWarning(ahead);
        if (this.background?.isAlone === true && agent.retention.isDue)
          await agent.retention.check(agent.writer, agent.store.context.retention);
      }
      if (this.background?.isAlone === true) this.background.tick(this.backgroundAgents());
      this.shipping?.tick(this.backgroundAgents());
      this.lastWarning = undefined;
    } catch (error) {
      this.warn(error instanceof Error ? error.message : String(error));
    }
  }

  /** Reports why maintenance failed, once until it succeeds or fails for another reason. */
  private warn(message: string): void {
    if (message !== this.lastWarning) this.settings.onWarning(message);
    this.lastWarning = message;
  }

  /**
   * Puts a retention policy in force at once, in the process that writes, and removes the records that exceed it. Returns
   * what happened. Throws `conflict` when that process has another policy for the agent, and `not_found` when the agent has no records.
   */
  async applyRetention(name: string, policy: RetentionPolicy): Promise<readonly RetentionEvent[]> {
    const args = { agent: name, policy: policyOf(policy) };
    return this.asWriter(
      async (link) => (await link.request('apply_retention', args)) as readonly RetentionEvent[],
      () => this.applyHere(name, policy),
    );
  }

  private async applyHere(name: string, policy: RetentionPolicy): Promise<readonly RetentionEvent[]> {
    const writer = await this.writerOf(name);
    const { retention, store } = await this.opened.get(name)!;
    return retention.apply(writer, policy, store.context.retention);
  }

  /**
   * What a policy would remove of an agent's records. Without `policy`, this is about the policy that waits or is in force. Throws
   * `not_found` when the agent has no records.
   */
  async retentionOutlook(name: string, policy?: RetentionPolicy): Promise<RetentionOutlook> {
    await this.agent(name);
    const { store, retention } = await this.opened.get(name)!;
    await store.context.access.refresh();
    return retention.outlook(policy);
  }

  /** Looks at once for records that retention has an end for, in every agent. */
  async retireNow(): Promise<void> {
    for (const { retention, writer, store } of this.agentsOpen)
      await retention.check(writer, store.context.retention);
  }

  private backgroundAgents(): BackgroundAgent[] {
    return this.agentsOpen.flatMap(({ state, writer }) =>
      writer === undefined ? [] : [{ state, committer: writer }],
    );
  }

  /** Does the next piece of compaction at once, and says whether there was any to do. */
  async compactNext(): Promise<boolean> {
    return (await this.background?.runOnce(this.backgroundAgents())) ?? false;
  }

  private async becomeWriter(): Promise<void> {
    if (this.serving || this.link?.alive) return;
    if (this.lock === undefined) await this.locking.run();
    if (this.lock === undefined) return;
    for (const opening of this.opened.values()) await this.takeOver(await opening);
    this.serve(this.lock);
  }

  private serve(lock: WriterLock): void {
    this.serving = true;
    const operations = writerOperations((agent, schema) => this.writerOf(agent, schema));
    const status = (): Promise<unknown> => Promise.resolve(this.readStatus() ?? null);
    const applyRetention: ChannelOperation = (args) => {
      const { agent, policy } = args as { agent: string; policy: RetentionPolicy };
      return this.applyHere(agent, policy);
    };
    const all = { ...operations, status, apply_retention: applyRetention };
    const refusal = `process ${process.pid} (${this.settings.role}) has ${this.location} for itself: wait until it has ended`;
    lock.serve(this.settings.alone ? refused(all, refusal) : all);
  }

  /** Sets the function that reads this process's status (plain data). While it is the writer, it sends it to processes that ask. */
  provideStatus(read: () => unknown): void {
    this.readStatus = read;
  }

  /** Figures for monitoring: what the archive holds, what it has done, and the free space of its disk. */
  async figures(): Promise<ArchiveFigures> {
    const { background, pool } = this;
    const agents = this.agentsOpen.map(({ state, writer }) =>
      agentFigures(state, writer?.tally, background?.counts(state.agent), this.shipping?.counts(state.agent)),
    );
    const disk = await this.directory.diskSpace();
    return { agents, pool: poolFigures(pool), compactionThreadsBusy: background?.busy ?? 0, disk };
  }

  /** The problems that keep this process from answering or storing all that it should; empty when there are none. */
  async troubles(): Promise<readonly Trouble[]> {
    const disk = await this.directory.diskSpace();
    const { lock, link, lastWarning, location } = this;
    const ofLock = await lockTroubles(location, lock, link?.alive === true, lastWarning);
    const ofAgents = this.agentsOpen.flatMap(({ state, writer }) =>
      agentTroubles(state, writer?.tally, disk),
    );
    return [...ofAgents, ...diskTroubles(location, disk), ...ofLock];
  }

  /** Whether upkeep rounds still end. A round waits for commits, so false means that this process's commits hang. */
  isWell(): boolean {
    return this.upkeep.runningMs < upkeepMsMax;
  }

  /** The status of the folder's writer; undefined when there is no writer, or it provides none. */
  async writerStatus(): Promise<unknown> {
    if (this.lock !== undefined) return this.readStatus();
    return (await this.askWriter((link) => link.request('status', {}))) ?? undefined;
  }

  /** Finishes pending commits, records the committed length of hot files, and releases the lock. */
  async close(): Promise<void> {
    if (this.closed) return;
    this.closed = true;
    clearInterval(this.timer);
    await everyStep([
      () => this.upkeep.settled(),
      () => this.background?.stop(),
      () => this.shipping?.stop(),
      () => this.warming.abort(),
      () => this.warmth,
      () => this.lock?.stopServing(),
      () => everyStep([...this.opened.values()].map((opening) => () => this.closeAgent(opening))),
      () => this.pool.close(),
      () => this.foreign.guard.close(),
      () => this.link?.close(),
      () => this.lock?.release(),
      () => this.ownWorkers?.close(),
    ]);
  }

  private async closeAgent(opening: Promise<OpenAgent>): Promise<void> {
    const agent = await opening.catch(() => undefined);
    if (agent === undefined) return;
    const { writer, removals, state } = agent;
    await everyStep([() => writer?.close(), () => removals?.run('now'), () => state.close()]);
  }
}
