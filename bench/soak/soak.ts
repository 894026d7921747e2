import { execFile } from 'node:child_process';
import { mkdtemp, mkdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { promisify } from 'node:util';
import { formatBytes } from '../../server/cli/terminal.js';
import { packageRoot } from '../../server/cli/options.js';
import { ServerProcess } from '../http/server-process.js';
import { describeMachine } from '../machine.js';
import { folderBytes } from '../sides/folder-size.js';
import { PacedLog } from './paced-log.js';
import { Follower, PagingFault, Walker, type PagingClient } from './paging-client.js';
import { steadyState, type Sample, type SoakOptions, type SoakResult } from './result.js';

const agentFile = `fields:
  - name: time
    timestamp: { format: rfc3339 }
  - name: n
    type: int
  - name: shard
    type: int
  - name: level
  - name: message
file:
  path: '../logs/app\\.log'
  format: json
# The log's hours pass in minutes.
retention: { period: 3h, interval: 10s }
`;

const tickMs = 50;
const sampleMs = 1000;

/** Milliseconds within which the last line must be in an answer after it was written, however far behind the server was. */
const catchUpMs = 120_000;

/** One in this many clients walks back and forward; the others follow. */
const walkersEach = 5;

const run = promisify(execFile);
const main = join(packageRoot(), 'dist/program/server/main.js');

/** The part of `stats --json` that is used. */
interface Stats {
  readonly records: number;
  readonly segments: number;
  readonly retired: { readonly records: number };
  readonly counters: { readonly rejected: number };
}

async function statsOf(folder: string): Promise<Stats> {
  const { stdout } = await run(process.execPath, [main, 'stats', 'soak', '--json'], { cwd: folder });
  return JSON.parse(stdout) as Stats;
}

function clientsFor(url: string, count: number): { followers: Follower[]; walkers: Walker[] } {
  const shards = Array.from({ length: count }, (_, i) => i);
  const walks = (i: number): boolean => i % walkersEach === walkersEach - 1;
  return {
    followers: shards.filter((i) => !walks(i)).map((i) => new Follower(url, i % 10)),
    walkers: shards.filter(walks).map((i) => new Walker(url, i % 10)),
  };
}

/** A running soak test. */
class Soak {
  readonly samples: Sample[] = [];
  private readonly startMs = performance.now();
  private readonly clients: readonly PagingClient[];
  private lastCpuSeconds: number;
  private lastMs = this.startMs;

  constructor(
    private readonly folder: string,
    private readonly server: ServerProcess,
    private readonly log: PacedLog,
    private readonly followers: readonly Follower[],
    walkers: readonly Walker[],
  ) {
    this.clients = [...followers, ...walkers];
    // The CPU time of the start is not part of the first sample.
    this.lastCpuSeconds = server.cpuSeconds;
  }

  /**
   * Runs for `minutes`, or until `end` aborts, and then until every line was in an answer. Rejects when a client finds an error or the
   * server ends.
   */
  async run(minutes: number, tell: (what: string) => void, end: AbortSignal): Promise<void> {
    const until = this.startMs + minutes * 60_000;
    const paging = Promise.all(this.clients.map((client) => client.run()));
    const isOver = (): boolean => end.aborted || performance.now() >= until;
    const working = Promise.all([
      this.each(tickMs, 0, isOver, () => this.log.tick()),
      this.each(sampleMs, sampleMs, isOver, () => this.sample(tell)),
    ]);
    try {
      await orFault(working, paging);
      await orFault(this.catchUp(), paging);
    } finally {
      for (const client of this.clients) client.stop();
    }
    await paging;
    await this.log.end();
  }

  /** Runs the work at this interval, the first time after `firstMs`. */
  private async each(
    everyMs: number,
    firstMs: number,
    isOver: () => boolean,
    work: () => Promise<void>,
  ): Promise<void> {
    await delay(firstMs);
    for (let dueMs = performance.now(); !isOver(); dueMs += everyMs) {
      await work();
      await delay(Math.max(1, dueMs + everyMs - performance.now()));
    }
  }

  private async catchUp(): Promise<void> {
    for (const end = performance.now() + catchUpMs; this.unseen() < this.log.written;) {
      if (performance.now() > end) throw new PagingFault(`line ${this.unseen()} was not answered`);
      await delay(sampleMs);
    }
  }

  /** The lowest number of a line that the follower of its shard has not received. */
  private unseen(): number {
    return Math.min(...this.followers.map(({ next }) => next));
  }

  private async sample(tell: (what: string) => void): Promise<void> {
    const { server } = this;
    if (server.hasEnded) throw new PagingFault('the server has ended');
    const nowMs = performance.now();
    const cpuSeconds = server.cpuSeconds;
    const sample: Sample = {
      seconds: Math.round(nowMs - this.startMs) / 1000,
      rssBytes: server.residentBytes,
      lagMs: this.log.waitingMs(this.unseen()),
      handles: server.openHandles,
      diskBytes: await folderBytes(join(this.folder, 'data')).catch(
        () => this.samples.at(-1)?.diskBytes ?? 0,
      ),
      cpuCores: (cpuSeconds - this.lastCpuSeconds) / Math.max(1e-3, (nowMs - this.lastMs) / 1000),
    };
    this.lastCpuSeconds = cpuSeconds;
    this.lastMs = nowMs;
    this.samples.push(sample);
    if (this.samples.length % 60 === 1)
      tell(`${sample.seconds.toFixed(0)} s, lag ${sample.lagMs} ms, memory ${formatBytes(sample.rssBytes)}`);
  }

  counts(): SoakResult['clients'] {
    const sum = (key: 'pages' | 'records'): number =>
      this.clients.reduce((total, { counts }) => total + counts[key], 0);
    return { count: this.clients.length, pages: sum('pages'), records: sum('records') };
  }
}

/**
 * Makes a folder, runs the soak test in it, and compares the counts of written and stored lines. `end` ends it early, with the results up
 * to then. Throws `PagingFault` for a record that was lost, repeated or not counted.
 */
export async function runSoak(
  options: SoakOptions,
  tell: (what: string) => void,
  end: AbortSignal,
): Promise<SoakResult> {
  const machine = describeMachine();
  const startedAt = new Date().toISOString();
  const folder = await mkdtemp(join(tmpdir(), 'logstrata-soak-'));
  let server: ServerProcess | undefined;
  try {
    await mkdir(join(folder, 'agents'));
    await writeFile(join(folder, 'agents/soak.yaml'), agentFile);
    const log = await PacedLog.begin(join(folder, 'logs'), options.rate, options.minutes);
    const args = ['serve', '--listen', '127.0.0.1:0', '--cache', `${options.cacheMib}mb`];
    server = await ServerProcess.start(main, args, folder, true);
    const { followers, walkers } = clientsFor(`${server.origin}/api/query/soak`, options.clients);
    const soak = new Soak(folder, server, log, followers, walkers);
    await soak.run(options.minutes, tell, end);
    const { records, segments, retired, counters } = await statsOf(folder);
    const lines = {
      written: log.written,
      stored: records,
      removed: retired.records,
      rejected: counters.rejected,
      perSecond: Math.round(log.written / (soak.samples.at(-1)?.seconds ?? options.minutes * 60)),
    };
    if (lines.stored + lines.removed !== lines.written)
      throw new PagingFault(
        `${lines.written} lines were written, ${lines.stored} are stored and ${lines.removed} removed`,
      );
    return {
      format: 'logstrata-soak/1',
      startedAt,
      machine,
      settings: options,
      lines,
      rotations: log.rotations,
      segments,
      clients: soak.counts(),
      steady: steadyState(soak.samples),
      samples: soak.samples,
    };
  } finally {
    await server?.stop();
    await rm(folder, { recursive: true, force: true });
  }
}

/**
 * Resolves when `work` is done. Rejects when it fails, or when a client finds an error: clients end by themselves only then, or after they
 * were stopped.
 */
function orFault(work: Promise<unknown>, clients: Promise<unknown>): Promise<void> {
  return new Promise((resolve, reject) => {
    for (const end of [work, clients]) end.then(() => resolve(), reject);
  });
}
