import { once } from 'node:events';
import { closeSync, openSync, readSync, writeFileSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { parseAgentFile } from '../../agents/definition/agent-file.js';
import { Collection } from '../../agents/collect/collection.js';
import { silentLog } from '../../agents/collect/logs/collect-log.js';
import { realLogFiles } from '../../agents/collect/logs/log-files.js';
import type { AgentDefinition } from '../../agents/definition/definition.js';
import type { Archive } from '../../engine/archive/archive.js';
import type { AgentStore } from '../../engine/archive/agent-store.js';
import { openArchive, WorkerPool } from '../../engine/index.js';
import type { Committed } from './lags.js';

/** The task of a collecting process, which is its only argument. */
export interface CollectingTask {
  /** Folder of the archive. */
  readonly store: string;
  /** Text of the agent's file; its `file.path` is replaced by `logs`. */
  readonly agentFile: string;
  readonly logs: { readonly directory: string; readonly namePattern: string };
  /** What this process appends to the log. Without it, another process writes the logs until standard input says how many bytes there are. */
  readonly gains?: Gains;
  /** File that the commits are written to. */
  readonly commits?: string;
}

/** Pieces that are appended to a log. Each is collected and sealed before the next one is written. */
export interface Gains {
  /** Path of the log. */
  readonly log: string;
  /** Files with lines. Each has fewer lines than a hot segment holds, all of one day that no other piece has. */
  readonly pieces: readonly string[];
  /** Number of pieces at the beginning that are not counted. */
  readonly warmUp: number;
}

interface Counted {
  readonly records: number;
  readonly rejected: number;
  readonly contentBytes: number;
  readonly commits: number;
  readonly seconds: number;
  /** CPU time of all threads. */
  readonly cpuSeconds: number;
}

/** The result. It leaves out opening the store, warming up, and writing and sealing the pieces. */
export interface CollectingFigures extends Counted {
  /** The largest resident set of the process. */
  readonly memoryBytes: number;
}

const agentName = 'agent';

/** `a` plus `times` times `b`, for each figure. */
function added(a: Counted, b: Counted, times: 1 | -1): Counted {
  return {
    records: a.records + times * b.records,
    rejected: a.rejected + times * b.rejected,
    contentBytes: a.contentBytes + times * b.contentBytes,
    commits: a.commits + times * b.commits,
    seconds: a.seconds + times * b.seconds,
    cpuSeconds: a.cpuSeconds + times * b.cpuSeconds,
  };
}

/** A fixed buffer for copying: reading a whole piece into memory would cause garbage collection, which would be counted. */
const copied = new Uint8Array(256 * 1024);

/** Appends a file to a log, synchronously, so that nothing is collected meanwhile. Returns the number of bytes. */
function appendFile(log: string, path: string): number {
  const source = openSync(path, 'r');
  const target = openSync(log, 'a');
  try {
    let written = 0;
    for (let read = 1; read > 0; written += read) {
      read = readSync(source, copied);
      writeSync(target, copied, 0, read);
    }
    return written;
  } finally {
    closeSync(source);
    closeSync(target);
  }
}

/** A collection in this process with worker threads of its own, as in a server. */
class CollectingSide {
  private readonly workers = new WorkerPool(2);
  private readonly definition: AgentDefinition;
  private readonly collection: Collection;
  private readonly commits = new Commits();

  constructor(
    private readonly archive: Archive,
    private readonly task: CollectingTask,
  ) {
    const { agentFile, logs } = task;
    const parsed = parseAgentFile(agentFile, join(logs.directory, 'agent.yaml'));
    this.definition = { ...parsed, name: agentName, file: { ...parsed.file!, ...logs } };
    this.collection = new Collection({
      files: realLogFiles,
      workers: this.workers,
      log: silentLog,
      now: Date.now,
      timezone: 'UTC',
      limitLines: 0,
      redefine: () => Promise.resolve(),
      flushMs: 250,
      tailTimeoutMs: 5000,
    });
  }

  /** Collects the logs until everything is stored. */
  async run(): Promise<Counted> {
    const store = await this.archive.agent(agentName, this.definition.schema);
    await this.collection.add({ definition: this.definition, store: noting(store, this.commits) });
    this.collection.start();
    const { gains, commits } = this.task;
    const counted = gains === undefined ? await this.collectLive() : await this.collectPieces(gains, store);
    await this.collection.stop();
    if (commits !== undefined) writeFileSync(commits, JSON.stringify(this.commits.all));
    return counted;
  }

  private now(): Counted {
    const { records, rejected, bytes, commits } = this.collection.status()[agentName]!;
    const { user, system } = process.cpuUsage();
    const cpuSeconds = (user + system) / 1e6;
    return { records, rejected, contentBytes: bytes, commits, seconds: performance.now() / 1000, cpuSeconds };
  }

  /** Collects one piece after the other. Each is written completely before collecting begins, and sealed before the next one is written. */
  private async collectPieces({ log, pieces, warmUp }: Gains, store: AgentStore): Promise<Counted> {
    const each: Counted[] = [];
    let written = 0;
    for (const piece of pieces) {
      written += appendFile(log, piece);
      const before = this.now();
      await this.commits.reach(written);
      each.push(added(this.now(), before, -1));
      // There is nothing to merge, as each piece is of a day of its own.
      await store.compact({ codec: 'lz4' });
    }
    return each.slice(warmUp).reduce((sum, piece) => added(sum, piece, 1));
  }

  /** Collects what is written until standard input says how many bytes there are, and the rest up to there. */
  private async collectLive(): Promise<Counted> {
    const before = this.now();
    process.stdout.write('following\n');
    const [ended] = (await once(process.stdin, 'data')) as [Buffer];
    await this.commits.reach(Number(ended.toString()));
    return added(this.now(), before, -1);
  }

  close(): Promise<void> {
    return this.workers.close();
  }
}

/** Records up to where each file is stored, and when. */
class Commits {
  readonly all: Committed[] = [];
  private contentBytes = 0;
  private wantedBytes = Infinity;
  private tell = (): void => {};

  /**
   * Resolves once this many bytes of all files are stored and the collection knows it. It is notified instead of polling, which would cost
   * CPU time.
   */
  reach(contentBytes: number): Promise<void> {
    this.wantedBytes = contentBytes;
    return new Promise((resolve) => {
      this.tell = () => setImmediate(resolve);
      this.look();
    });
  }

  note(commit: Committed, contentBytes: number): void {
    this.all.push(commit);
    this.contentBytes += contentBytes;
    this.look();
  }

  private look(): void {
    if (this.contentBytes < this.wantedBytes) return;
    this.wantedBytes = Infinity;
    this.tell();
  }
}

/** A store that records its commits. */
function noting(store: AgentStore, commits: Commits): AgentStore {
  const append: AgentStore['append'] = async (batch, extras, placement) => {
    const result = await store.append(batch, extras, placement);
    const atMs = Date.now();
    const ends = extras.checkpoints.map(({ path, offset }) => [path, offset] as const);
    commits.note({ atMs, ends }, extras.counters.inputBytes);
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
  const counted = await side.run();
  const memoryBytes = process.resourceUsage().maxRSS * 1024;
  await side.close();
  await archive.close();
  return { ...counted, memoryBytes };
}

const figures = await run(JSON.parse(process.argv[2]!) as CollectingTask);
process.stdout.write(`${JSON.stringify(figures)}\n`);
