import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseAgentFile } from '../../agents/agent-file.js';
import { Collection } from '../../agents/collectors/collection.js';
import { silentLog } from '../../agents/collectors/collect-log.js';
import { realLogFiles } from '../../agents/collectors/log-files.js';
import type { AgentDefinition } from '../../agents/definition.js';
import type { Archive, AgentStore } from '../../engine/archive.js';
import { openArchive, WorkerPool } from '../../engine/index.js';
import type { Committed } from './lags.js';

/** What a process is to collect, as its only argument. */
export interface CollectingTask {
  /** Folder of the store. */
  readonly store: string;
  /** Text of the agents' file; `file.path` is replaced by `logs`. */
  readonly agentFile: string;
  readonly logs: { readonly directory: string; readonly namePattern: string };
  /** Agents that all follow the same logs. The first `warmUp` of them are not counted. */
  readonly agents: number;
  readonly warmUp: number;
  /**
   * With `lines` it ends when each agent has stored so many, one agent after the other. Without, it goes on until standard input says how many
   * bytes there are, and those are stored; the commits are written to the file `commits`.
   */
  readonly lines?: number;
  readonly commits?: string;
}

/** What it came to, without opening the store and without warming up. */
export interface CollectingFigures {
  readonly records: number;
  readonly rejected: number;
  readonly contentBytes: number;
  readonly commits: number;
  readonly seconds: number;
  /** Processor time of all threads. */
  readonly cpuSeconds: number;
  /** Largest resident set of the process. */
  readonly memoryBytes: number;
}

const pollMs = 5;

const delay = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

/** The collection of one process, with threads of its own, as a server has it. */
class CollectingSide {
  private readonly workers = new WorkerPool(2);
  private readonly definition: AgentDefinition;
  readonly committed: Committed[] = [];

  constructor(
    private readonly archive: Archive,
    private readonly task: CollectingTask,
  ) {
    const { agentFile, logs } = task;
    const parsed = parseAgentFile(agentFile, join(logs.directory, 'agent.yaml'));
    this.definition = { ...parsed, file: { ...parsed.file!, ...logs } };
  }

  async store(i: number): Promise<AgentStore> {
    const { schema } = this.definition;
    return this.archive.agent(`agent-${i}`, schema);
  }

  /** Follows the logs by one agent. */
  async follow(i: number): Promise<Collection> {
    const collection = new Collection({
      files: realLogFiles,
      workers: this.workers,
      log: silentLog,
      now: Date.now,
      timezone: 'UTC',
      limitLines: 0,
      flushMs: 250,
      tailTimeoutMs: 5000,
    });
    const definition = { ...this.definition, name: `agent-${i}` };
    const store = noting(await this.store(i), this.committed);
    await collection.add({ definition, store });
    collection.start();
    return collection;
  }

  /** Collects all lines by one agent, and gives how it stood then. */
  async collectAll(
    i: number,
  ): Promise<Pick<CollectingFigures, 'records' | 'rejected' | 'contentBytes' | 'commits'>> {
    const collection = await this.follow(i);
    const status = () => collection.status()[`agent-${i}`]!;
    for (
      let { records, rejected } = status();
      records + rejected < this.task.lines!;
      { records, rejected } = status()
    )
      await delay(pollMs);
    const { records, rejected, bytes, commits } = status();
    await collection.stop();
    return { records, rejected, contentBytes: bytes, commits };
  }

  /** Collects what comes until standard input ends, and what is there then. */
  async collectLive(): Promise<Pick<CollectingFigures, 'records' | 'rejected' | 'contentBytes' | 'commits'>> {
    const collection = await this.follow(0);
    process.stdout.write('following\n');
    const [ended] = (await once(process.stdin, 'data')) as [Buffer];
    const status = () => collection.status()['agent-0']!;
    const end = Number(ended.toString());
    while (status().bytes < end) await delay(pollMs);
    const { records, rejected, bytes, commits } = status();
    await collection.stop();
    writeFileSync(this.task.commits!, JSON.stringify(this.committed));
    return { records, rejected, contentBytes: bytes, commits };
  }

  close(): Promise<void> {
    return this.workers.close();
  }
}

/** A store that notes how far each file is stored, and when. */
function noting(store: AgentStore, committed: Committed[]): AgentStore {
  const append: AgentStore['append'] = async (batch, extras, placement) => {
    const result = await store.append(batch, extras, placement);
    const atMs = Date.now();
    committed.push({ atMs, ends: extras.checkpoints.map(({ path, offset }) => [path, offset] as const) });
    return result;
  };
  return new Proxy(store, {
    get: (target, key) => {
      if (key === 'append') return append;
      const value: unknown = Reflect.get(target, key);
      return typeof value === 'function' ? (value.bind(target) as unknown) : value;
    },
  });
}

async function run(task: CollectingTask): Promise<CollectingFigures> {
  const archive = await openArchive(task.store, { mode: 'write', role: 'bench', now: Date.now });
  const side = new CollectingSide(archive, task);
  const sums = { records: 0, rejected: 0, contentBytes: 0, commits: 0 };
  for (let i = 0; i < task.warmUp; i++) await side.collectAll(i);
  const startMs = performance.now();
  const cpuBefore = process.cpuUsage();
  for (let i = task.warmUp; i < task.agents; i++) {
    const each = task.lines === undefined ? await side.collectLive() : await side.collectAll(i);
    sums.records += each.records;
    sums.rejected += each.rejected;
    sums.contentBytes += each.contentBytes;
    sums.commits += each.commits;
  }
  const { user, system } = process.cpuUsage(cpuBefore);
  const seconds = (performance.now() - startMs) / 1000;
  const memoryBytes = process.resourceUsage().maxRSS * 1024;
  await side.close();
  await archive.close();
  return { ...sums, seconds, cpuSeconds: (user + system) / 1e6, memoryBytes };
}

const figures = await run(JSON.parse(process.argv[2]!) as CollectingTask);
process.stdout.write(`${JSON.stringify(figures)}\n`);
