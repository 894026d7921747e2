import { existsSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { AgentCollector } from '../../agents/collect/agent-collector.js';
import type { CollectLog, LogFacts } from '../../agents/collect/logs/collect-log.js';
import { LineFrame } from '../../agents/collect/line-frame.js';
import { realLogFiles, type LogFiles } from '../../agents/collect/logs/log-files.js';
import { OpenFiles } from '../../agents/collect/logs/open-files.js';
import type { AgentDefinition, FileInput, Rotation } from '../../agents/definition/definition.js';
import { loadFiles } from '../../agents/load/load.js';
import type { LoadSummary } from '../../agents/load/load-report.js';
import type { AgentStore } from '../../engine/archive/agent-store.js';
import { isLogstrataError } from '../../engine/core/errors.js';
import { makeSchema } from '../../engine/core/schema.js';
import type { Archive } from '../../engine/archive/archive.js';
import { MemoryDirectory } from '../storage-doubles/memory-directory.js';
import { WorkerPool } from '../../engine/workers/worker-pool.js';
import { closeAtEnd, temporaryFolder } from '../agents/load/temporary.js';
import { answer, openOn } from '../engine/store/memory-archive.js';
import type { TimestampFormat } from '../../engine/times/timestamp.js';

const fields = [
  { name: 'time', type: 'time', source: 'time', timestamp: { format: 'rfc3339' } },
  { name: 'n', type: 'int', source: 'n' },
  { name: 'text', type: 'string', source: 'text' },
  { name: 'host', type: 'string', source: 'host' },
] as const;

/** An agent whose lines have the form `2026-11-20T10:00:00Z 17 some text`. */
export function followedAgent(directory: string, file: Partial<FileInput> = {}): AgentDefinition {
  return {
    name: 'app',
    path: 'agents/app.yaml',
    fields,
    schema: makeSchema(fields),
    notes: [],
    file: {
      directory,
      namePattern: '(?P<host>[a-z]+)\\.log',
      format: 'plain',
      regex: '^(?P<time>\\S+) (?P<n>\\S+) (?P<text>(?s).*)$',
      ...file,
    },
  };
}

/** The line of record `n`, without its line end. */
export function lineOf(n: number): string {
  const time = new Date(Date.UTC(2026, 10, 20) + n * 1000).toISOString().slice(0, 19);
  return `${time}Z ${n} some text of line ${n}`;
}

/** The lines of records [from, to). */
export function lines(from: number, to: number): string {
  return range(from, to)
    .map((n) => `${lineOf(n)}\n`)
    .join('');
}

/** The numbers [from, to). */
export function range(from: number, to: number): number[] {
  return Array.from({ length: to - from }, (_, i) => from + i);
}

/** The offset at which a record of `recordOf` begins. */
export const multiline = { start: '^2026-', timeoutMs: 1000, linesMax: 50, bytesMax: 64 * 1024 } as const;

/** The lines of record `n`, without the end of the last one. */
export function recordOf(n: number): string {
  const trace = Array.from({ length: n % 5 }, (_, i) => (i === 1 ? '\n' : `\n  at frame ${i} of ${n}`)).join(
    '',
  );
  return `${lineOf(n)}${trace}\n  end of ${n}`;
}

export interface LogLine {
  readonly level: 'info' | 'warn' | 'error';
  readonly facts: LogFacts;
  readonly message: string;
}

export interface FollowOptions {
  /** Fields of the same names and types as the usual ones. */
  readonly fields?: AgentDefinition['fields'];
  readonly file?: Partial<FileInput>;
  readonly files?: LogFiles;
  /** The directory of the archive, by default in memory. */
  readonly dataFolder?: string;
  readonly limitLines?: number;
  readonly handlesMax?: number;
  readonly rotate?: Rotation;
  readonly rejectedBytesMax?: number;
  /** The format of times, by default RFC 3339. */
  readonly timestamp?: TimestampFormat;
  /** The start of the clock, by default the time of the machine. */
  readonly startMs?: number;
  /** The store as the collector sees it, by default unchanged. */
  readonly storeOf?: (store: AgentStore) => AgentStore;
}

const noThreads = new WorkerPool(0);
const frame = new LineFrame(false);

/** A folder of logs that is followed into an archive in memory, with a clock that only the test advances, since machines may be slow. */
export class FollowedFolder {
  readonly directory: string;
  readonly log: LogLine[] = [];
  disk = new MemoryDirectory();
  store!: AgentStore;
  collector!: AgentCollector;
  private archive: Archive | undefined;
  private nowMs: number;

  constructor(
    folder: string,
    private readonly options: FollowOptions = {},
  ) {
    this.nowMs = options.startMs ?? Date.now();
    this.directory = join(folder, 'logs');
    if (!existsSync(this.directory)) mkdirSync(this.directory);
  }

  readonly now = (): number => this.nowMs;

  get definition(): AgentDefinition {
    const { file, rotate, timestamp, rejectedBytesMax, fields: own } = this.options;
    const agent = followedAgent(this.directory, file);
    const [time, ...others] = agent.fields;
    const usual = timestamp === undefined ? agent.fields : [{ ...time!, timestamp }, ...others];
    const path = join(this.directory, 'app.yaml');
    return {
      ...agent,
      fields: own ?? usual,
      path,
      ...(rotate === undefined ? {} : { rotate }),
      ...(rejectedBytesMax === undefined ? {} : { rejectedBytesMax }),
    };
  }

  path(name: string): string {
    return join(this.directory, name);
  }

  pass(ms: number): void {
    this.nowMs += ms;
  }

  /** Starts the service, after a stop or a crash. */
  async start(): Promise<void> {
    const { definition, now, options } = this;
    const files = options.files ?? realLogFiles;
    this.archive = await openOn(this.disk, now);
    this.store = await this.archive.agent('app', definition.schema);
    this.collector = new AgentCollector({
      store: options.storeOf?.(this.store) ?? this.store,
      definition,
      timezone: 'UTC',
      now,
      files,
      dataFolder: options.dataFolder,
      handles: new OpenFiles(files, options.handlesMax ?? 100),
      workers: noThreads,
      log: this.logTo(),
      limitLines: options.limitLines ?? 0,
      tailTimeoutMs: 5000,
    });
  }

  private logTo(): CollectLog {
    const at =
      (level: LogLine['level']) =>
      (facts: LogFacts, message: string): void =>
        void this.log.push({ level, facts, message });
    return { info: at('info'), warn: at('warn'), error: at('error') };
  }

  async stop(): Promise<void> {
    await this.collector.close();
    await this.archive!.close();
  }

  /** Cuts the power; data that was not durable is lost. */
  async crash(): Promise<void> {
    this.disk = this.disk.crash('lost');
    await this.collector.close();
  }

  /** Checks the folder once, and reads everything that this finds. */
  async collect(): Promise<void> {
    for (let round = 'more'; round === 'more';) {
      await this.collector.survey();
      round = await this.round();
    }
  }

  /** Collects everything, including a last record that only a pause shows to be complete. */
  async collectAll(): Promise<void> {
    await this.collect();
    // A load that was committed before restarts the pause.
    for (let i = 0; i < 2; i++) {
      this.pass(multiline.timeoutMs);
      await this.collect();
    }
  }

  /** One commit. If a load was committed before it, the collector continues after that. */
  async round(): Promise<string> {
    try {
      return await this.collector.round(frame);
    } catch (error) {
      if (isLogstrataError(error) && error.code === 'conflict') return 'more';
      throw error;
    }
  }

  /** Collects until nothing is left that only time brings: pauses end, and copies are recognised. */
  async settle(): Promise<void> {
    for (let i = 0; i < 8; i++) {
      await this.collect();
      this.pass(i === 4 ? 700_000 : 10_000);
    }
    await this.collect();
  }

  load(name: string): Promise<LoadSummary> {
    const { store, definition, now } = this;
    return loadFiles({ store, definition, now, timezone: 'UTC', files: [this.path(name)] });
  }

  /** Every record, in order of position. */
  async records(): Promise<{ n: number; host: string; text: string; time: number; _cursor: string }[]> {
    const text = await answer(this.store, { limit: 10_000_000, after: { partition: 0, ordinal: 0 } });
    return text
      .split('\n')
      .filter((line) => line !== '')
      .map(
        (line) =>
          JSON.parse(line) as { n: number; host: string; text: string; time: number; _cursor: string },
      );
  }

  /** The numbers of all records, sorted. */
  async numbers(): Promise<number[]> {
    return (await this.records()).map(({ n }) => n).sort((a, b) => a - b);
  }
}

/** A followed folder that is stopped when the test ends. */
export async function follow(options: FollowOptions = {}): Promise<FollowedFolder> {
  const followed = new FollowedFolder(await temporaryFolder(), options);
  await followed.start();
  closeAtEnd(() => followed.stop());
  return followed;
}
