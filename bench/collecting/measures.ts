import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { readAgentFile } from '../../agents/definition/agent-file.js';
import { packageRoot } from '../../server/cli/options.js';
import { generateLines } from '../generated-lines.js';
import { ServerProcess } from '../http/server-process.js';
import { spreadOf, type Spread } from '../spread.js';
import { Child, runChild } from '../child.js';
import type { CollectingFigures, CollectingTask } from './collecting-side.js';
import { lagsOf, type Committed, type Written } from './lags.js';
import type { WritingFigures, WritingTask } from './paced-writer.js';
import type { ScriptFigures, ScriptTask } from './script-side.js';

/** How much is measured. */
export interface Sizes {
  /** Lines that are appended at a time. They are fewer than a hot segment holds, so that none is sealed before all are collected. */
  readonly lines: number;
  /** Number of times that lines are appended, and how many of these are not counted. */
  readonly gains: number;
  readonly warmUp: number;
  readonly repeat: number;
  /** Number of logs that are followed at the same time, and for how long. */
  readonly files: number;
  readonly seconds: number;
  /** Lines per second of the busy log that is collected during queries. */
  readonly busyLines: number;
}

/** A format of lines, and the agent that reads them. */
export interface Format {
  readonly name: 'nginx' | 'JSON';
  readonly lines: 'combined' | 'json';
  readonly agentPath: string;
}

/** A format that is parsed by a regular expression, and JSON. */
export const formats: readonly Format[] = [
  { name: 'nginx', lines: 'combined', agentPath: join(packageRoot(), 'agents/nginx.yaml') },
  { name: 'JSON', lines: 'json', agentPath: join(packageRoot(), 'bench/agents/web.yaml') },
];

const hourMs = 3_600_000;
const firstDayMs = Date.UTC(2026, 9, 20);

/** The times of generated records. */
interface Span {
  readonly startMs: number;
  readonly days: number;
}

/** The current hour, for lines that are collected while they are written: the records of live logs are placed in it as well. */
function thisHour(): Span {
  return { startMs: Math.floor(Date.now() / hourMs) * hourMs, days: 1 / 24 };
}

/** Generates lines of a format into a file. */
export function writeLines(path: string, { lines }: Format, rows: number, span: Span): void {
  const all = generateLines(lines, { rows, seed: 1, ...span })!;
  writeFileSync(path, `${[...all].join('\n')}\n`);
}

/** How fast a log is collected, and how fast scripts read the same lines. */
export interface BacklogFigures {
  /** Lines per second of CPU time up to the committed hot batch, by run. */
  readonly collected: Spread;
  /** The same for a script that only finds the lines, and for one that parses them. */
  readonly split: number;
  readonly script: number;
  readonly lineBytes: number;
}

/** Measures how fast a log is collected, without sealing, and how fast scripts read the same lines. */
export async function measureBacklog(folder: string, format: Format, sizes: Sizes): Promise<BacklogFigures> {
  const pieces = Array.from({ length: sizes.gains }, (_, i) => join(folder, `${format.name}-${i}`));
  pieces.forEach((piece, i) =>
    writeLines(piece, format, sizes.lines, { startMs: firstDayMs + i * 24 * hourMs, days: 1 }),
  );
  const path = pieces[0]!;
  const rates: number[] = [];
  for (let i = 0; i < sizes.repeat; i++) {
    const directory = join(folder, `backlog-${format.name}-${i}`);
    mkdirSync(directory);
    const task: CollectingTask = {
      store: join(folder, `store-${format.name}-${i}`),
      agentFile: readFileSync(format.agentPath, 'utf8'),
      logs: { directory, namePattern: 'log' },
      gains: { log: join(directory, 'log'), pieces, warmUp: sizes.warmUp },
    };
    const figures = await runChild<CollectingFigures>('collecting/collecting-side', task);
    const lines = sizes.lines * (sizes.gains - sizes.warmUp);
    if (figures.records !== lines) throw new Error(`${figures.records} records of ${lines} lines`);
    rates.push(lines / figures.cpuSeconds);
    for (const done of [directory, task.store]) rmSync(done, { recursive: true });
  }
  const regex = readAgentFile(format.agentPath).file?.regex ?? null;
  const beside = { times: sizes.gains - sizes.warmUp, path, target: join(folder, 'script.jsonl'), regex };
  const rateOf = async (kind: ScriptTask['kind']): Promise<number> => {
    const { lines, cpuSeconds } = await runChild<ScriptFigures>('collecting/script-side', {
      ...beside,
      kind,
    });
    return lines / cpuSeconds;
  };
  return {
    collected: spreadOf(rates),
    split: await rateOf('split'),
    script: await rateOf('script'),
    lineBytes: readFileSync(path).length / sizes.lines,
  };
}

/** The cost of following logs. */
export interface FollowingFigures {
  /** Milliseconds from each write to the commit that made its last line durable and visible. */
  readonly lagMs: Spread;
  readonly lagP99Ms: number;
  /** CPU seconds of the collecting process per second. */
  readonly cores: number;
  readonly memoryBytes: number;
  readonly written: WritingFigures;
}

/** Measures following logs while another process writes to them. */
export async function measureFollowing(
  folder: string,
  name: string,
  files: number,
  linesPerSecond: number,
  { seconds, lines }: Sizes,
): Promise<FollowingFigures> {
  const [format] = formats;
  const directory = join(folder, `logs-${name}`);
  mkdirSync(directory);
  const source = join(folder, `lines-${name}`);
  writeLines(source, format!, lines, thisHour());
  const commits = join(folder, `commits-${name}`);
  const notes = join(folder, `notes-${name}`);
  const task: CollectingTask = {
    store: join(folder, `store-${name}`),
    agentFile: readFileSync(format!.agentPath, 'utf8'),
    logs: { directory, namePattern: '.*\\.log' },
    commits,
  };
  const collecting = new Child<CollectingFigures>('collecting/collecting-side', task);
  try {
    await collecting.prints('following');
    const writing: WritingTask = { directory, files, linesPerSecond, seconds, lines: source, notes };
    const written = await runChild<WritingFigures>('collecting/paced-writer', writing);
    collecting.tell(String(written.bytes));
    const figures = await collecting.figures();
    if (figures.records !== written.lines)
      throw new Error(`${figures.records} records of ${written.lines} lines`);
    const read = <T>(path: string): T => JSON.parse(readFileSync(path, 'utf8')) as T;
    const lags = lagsOf(read<Written[]>(notes), read<Committed[]>(commits)).sort((a, b) => a - b);
    return {
      lagMs: spreadOf(lags),
      lagP99Ms: percentile(lags, 0.99),
      cores: figures.cpuSeconds / figures.seconds,
      memoryBytes: figures.memoryBytes,
      written,
    };
  } finally {
    collecting.stop();
  }
}

function percentile(sorted: readonly number[], share: number): number {
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))]!;
}

/** The latency of queries, alone and beside collecting. */
export interface QueryFigures {
  readonly alone: { readonly medianMs: number; readonly p99Ms: number };
  readonly beside: { readonly medianMs: number; readonly p99Ms: number };
  /** Bytes per second that were appended to the busy log meanwhile. */
  readonly bytesPerSecond: number;
}

const askEveryMs = 5;

/** Measures queries for the newest 100 records of a log on a server: without other work, and while another log is collected. */
export async function measureQueries(folder: string, sizes: Sizes): Promise<QueryFigures> {
  const format = formats[1]!;
  const home = join(folder, 'server');
  const source = join(folder, 'lines-server');
  writeLines(source, format, sizes.lines, thisHour());
  for (const name of ['quiet', 'busy']) {
    mkdirSync(join(home, name), { recursive: true });
    mkdirSync(join(home, 'agents'), { recursive: true });
    const text = readFileSync(format.agentPath, 'utf8').replace(/path: .*/, `path: '../${name}/.*\\.log'`);
    writeFileSync(join(home, 'agents', `${name}.yaml`), text);
  }
  writeLines(join(home, 'quiet/0.log'), format, sizes.lines, { startMs: firstDayMs, days: 30 });
  const main = join(packageRoot(), 'dist/program/server/main.js');
  const server = await ServerProcess.start(main, ['serve', '--listen', '127.0.0.1:0'], home);
  try {
    const url = `${server.origin}/api/query/quiet?limit=100`;
    while ((await ask(url)).lines < 100) await delay(100);
    await askFor(url, sizes.seconds / 4);
    const alone = await askFor(url, sizes.seconds);
    const { busyLines, seconds } = sizes;
    const notes = join(folder, 'notes-server');
    const directory = join(home, 'busy');
    const writing: WritingTask = {
      directory,
      files: 1,
      linesPerSecond: busyLines,
      seconds,
      lines: source,
      notes,
    };
    const written = runChild<WritingFigures>('collecting/paced-writer', writing);
    const beside = await askFor(url, seconds);
    const { bytes, seconds: took } = await written;
    return { alone, beside, bytesPerSecond: bytes / took };
  } finally {
    await server.stop();
  }
}

async function ask(url: string): Promise<{ lines: number; ms: number }> {
  const startMs = performance.now();
  const text = await (await fetch(url)).text();
  return { ms: performance.now() - startMs, lines: text.split('\n').length - 1 };
}

async function askFor(url: string, seconds: number): Promise<{ medianMs: number; p99Ms: number }> {
  const tookMs: number[] = [];
  for (const end = performance.now() + seconds * 1000; performance.now() < end;) {
    const { ms, lines } = await ask(url);
    if (lines !== 100) throw new Error(`${lines} records of 100`);
    tookMs.push(ms);
    await delay(askEveryMs);
  }
  tookMs.sort((a, b) => a - b);
  return { medianMs: percentile(tookMs, 0.5), p99Ms: percentile(tookMs, 0.99) };
}
