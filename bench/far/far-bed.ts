import { cpSync } from 'node:fs';
import { join } from 'node:path';
import { crc32 } from '../../engine/kernels/crc32.js';
import {
  formatCursor,
  openArchive,
  WorkerPool,
  workersDefault,
  type AgentStore,
  type Archive,
  type Query,
} from '../../engine/index.js';
import { FarTier } from '../../engine/far/far-tier.js';
import { FarCluster } from '../../engine/far/far-cluster.js';
import {
  type FarSettings,
  openFarTransport,
  type FarStatement,
  type FarTransport,
} from '../../engine/far/far-transport.js';
import { packageRoot } from '../../server/cli/options.js';
import { parseQueryRequest } from '../../server/http/query-request.js';
import { addRecords, endMs, webAgent } from '../growth/web-store.js';
import { ServerProcess } from '../http/server-process.js';
import type { WebRecord } from '../web-records.js';

/** The cost of shipping. */
export interface Shipping {
  readonly rows: number;
  readonly bytes: number;
  readonly seconds: number;
  /** CPU time of this process and of the server. */
  readonly ownSeconds: number;
  readonly serverSeconds: number;
}

const dayMs = 86_400_000;
/** Records per day, about four per second. They make a few segments, each of which becomes a unit. */
const recordsOfDay = 333_333;

const hourMs = 3_600_000;

const never = new AbortController().signal;

/** A transport that records the statements which request records. */
class NotingTransport implements FarTransport {
  readonly questions: string[] = [];

  constructor(private readonly real: FarTransport) {}

  ask(url: string, statement: FarStatement): Promise<Uint8Array> {
    if (/^SELECT .* FORMAT Native$/s.test(statement.sql)) this.questions.push(statement.sql);
    return this.real.ask(url, statement);
  }

  close(): Promise<void> {
    return this.real.close();
  }
}

/**
 * The same records in two archives: in one all are near, in the other all but the newest day are in the far tier, which is a ClickHouse in
 * a process of its own.
 */
export class FarBed {
  private constructor(
    readonly server: ServerProcess,
    readonly url: string,
    readonly near: AgentStore,
    readonly far: AgentStore,
    /** A record in the far tier. */
    readonly wanted: WebRecord,
    readonly days: number,
    readonly shipping: Shipping,
    /** The version that ClickHouse reports. */
    readonly serverVersion: string,
    private readonly transport: NotingTransport,
    private readonly opened: readonly { close(): Promise<void> }[],
  ) {}

  /** Generates the records, makes both archives below `folder`, starts ClickHouse, and ships the records. */
  static async make(folder: string, rows: number, say: (what: string) => void): Promise<FarBed> {
    const days = Math.max(2, Math.round(rows / recordsOfDay));
    const [nearPath, farPath] = [join(folder, 'near'), join(folder, 'far')];
    const portion = { isFull: false, rows, startMs: endMs - days * dayMs, days, seed: 1 };
    say(`makes ${rows} records of ${days} days`);
    const { wanted } = await addRecords(nearPath, portion, Math.floor(rows / 5), never, () => undefined);
    cpSync(nearPath, farPath, { recursive: true });
    const server = await ServerProcess.start(join(packageRoot(), 'dist/bench/far/door-process.js'), []);
    const opened: { close(): Promise<void> }[] = [{ close: () => server.stop() }];
    try {
      const workers = new WorkerPool(workersDefault());
      opened.unshift(workers);
      const { origin: url } = server;
      const settings: FarSettings = { shards: [[url]], database: 'logs', user: 'default', password: '' };
      const transport = new NotingTransport(await openFarTransport(settings));
      const cluster = new FarCluster(settings, transport);
      opened.unshift(cluster);
      const tier = new FarTier({
        cluster,
        policy: { afterMs: dayMs / 2, keepLocalMs: 0 },
        bytesPerSecond: Infinity,
        longestQueryMs: 0,
      });
      const nearArchive = await archiveAt(nearPath, workers);
      opened.unshift(nearArchive);
      const farArchive = await archiveAt(farPath, workers, tier);
      opened.unshift(farArchive);
      const { name } = webAgent(false);
      const [near, far] = [await nearArchive.agent(name), await farArchive.agent(name)];
      say('ships all but the newest day');
      const shipping = await ship(far, server);
      await cluster.command(url, `OPTIMIZE TABLE logs.\`${name}\``);
      const [[version = ''] = []] = await cluster.lines(url, 'SELECT version()');
      const told = `ClickHouse ${version} (chdb)`;
      return new FarBed(server, url, near, far, wanted, days, shipping, told, transport, opened);
    } catch (error) {
      await closeAll(opened);
      throw error;
    }
  }

  /** The first hour that has records, in hours since the epoch. */
  get firstHour(): number {
    return Math.floor(endMs / hourMs) - this.days * 24;
  }

  /** Cursors before and after the hour of the wanted record. */
  get wantedHour(): { readonly after: string; readonly before: string } {
    const hour = Math.floor(this.wanted.timeMs / hourMs);
    return { after: this.cursorAt(hour), before: this.cursorAt(hour + 1) };
  }

  /** The cursor before the first record of an hour. */
  cursorAt(hour: number): string {
    return formatCursor({ partition: hour, ordinal: 0 });
  }

  /** The statements that requested records during `work`. */
  async questionsOf(work: () => Promise<unknown>): Promise<readonly string[]> {
    this.transport.questions.length = 0;
    await work();
    return [...this.transport.questions];
  }

  /** The response of the server to a statement. */
  ask(sql: string): Promise<Uint8Array> {
    return this.transport.ask(this.url, { sql, bytesMax: 2 ** 31, timeoutMs: 600_000 });
  }

  /** Closes the archives and stops ClickHouse. */
  async close(): Promise<void> {
    await closeAll(this.opened);
  }
}

/** A summary of an answer. */
export interface Answered {
  readonly bytes: number;
  /** Equal for equal answers. */
  readonly digest: string;
}

/** Reads an answer to its end. */
export async function answered(store: AgentStore, raw: string): Promise<Answered> {
  const { lines } = await store.scan(queryOf(store, raw), { lends: true });
  let bytes = 0;
  let first = 0;
  for await (const piece of lines) {
    // Long answers are compared by their length and their beginning: hashing all of it would take longer than the answer.
    if (bytes === 0) first = crc32(piece.subarray(0, comparedBytes));
    bytes += piece.length;
  }
  return { bytes, digest: `${bytes} ${first}` };
}

const comparedBytes = 64 * 1024;

/** Counts the records with status ≥ 400 by method. */
export async function counted(store: AgentStore): Promise<Answered> {
  const { schema } = store;
  const { predicates } = queryOf(store, 'status__gte=400');
  const field = schema.fields.findIndex(({ name }) => name === 'method');
  const { stats: _, ...counts } = await store.count({ predicates, values: { field, top: 10 } });
  return { bytes: 0, digest: JSON.stringify(counts) };
}

function queryOf({ schema }: AgentStore, raw: string): Query {
  const bounds = { timezone: 'UTC', limitMax: 1_000_000, limitDefault: 100 };
  return parseQueryRequest(raw, { schema, now: endMs, ...bounds });
}

async function closeAll(opened: readonly { close(): Promise<void> }[]): Promise<void> {
  for (const each of opened) await each.close();
}

function archiveAt(location: string, workers: WorkerPool, far?: FarTier): Promise<Archive> {
  return openArchive(location, {
    mode: 'write',
    role: 'bench',
    now: () => endMs,
    background: { threads: 0 },
    workers,
    ...(far === undefined ? {} : { far }),
  });
}

async function ship(store: AgentStore, server: ServerProcess): Promise<Shipping> {
  const startMs = performance.now();
  const own = process.cpuUsage();
  const serverBefore = server.cpuSeconds;
  const { rows, bytes } = await store.shipFar();
  const { user, system } = process.cpuUsage(own);
  return {
    rows,
    bytes,
    seconds: (performance.now() - startMs) / 1000,
    ownSeconds: (user + system) / 1e6,
    serverSeconds: server.cpuSeconds - serverBefore,
  };
}
