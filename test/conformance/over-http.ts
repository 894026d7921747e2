import { defaultConfig } from '../../agents/definition/config.js';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { afterAll } from 'vitest';
import type { AgentStore } from '../../engine/archive/agent-store.js';
import type { Archive } from '../../engine/archive/archive.js';
import { openArchive, WorkerPool, workersDefault } from '../../engine/index.js';
import type { Query } from '../../engine/scan/query.js';
import { startServer, type RunningServer } from '../../server/route/server.js';
import type { TransportName } from '../../server/http/transport.js';
import { append, load } from '../engine/store/memory-archive.js';
import { piece, ScriptedStore } from '../server/scripted-store.js';
import { Wire } from '../server/wire.js';
import type {
  Answer,
  Answerer,
  CaseDataset,
  Commit,
  HttpRequest,
  OpenedStore,
  ServerState,
} from './answerer.js';
import type { Scan, ScanOptions } from '../../engine/scan/scan.js';

/** An agent next to the dataset's, whose queries run until they are told to end. */
const endless = 'endless';

/** Threads of all archives, one after another, because starting threads takes longer than the cases. */
const workers = new WorkerPool(workersDefault());
afterAll(() => workers.close());

/** The service as a client sees it: bytes on a socket, to a server over an archive in its own folder. */
export function httpAnswerer(transport: TransportName): Answerer {
  return {
    name: `HTTP on ${transport}`,
    isHttp: true,
    open: async (dataset, state) => {
      const service = new Service(transport, dataset, state);
      await service.start();
      return service;
    },
  };
}

class Service implements OpenedStore {
  readonly #transport: TransportName;
  readonly #dataset: CaseDataset;
  readonly #state: ServerState | undefined;
  readonly #wires: Wire[] = [];
  #folder = '';
  #archive!: Archive;
  #store!: AgentStore;
  #server!: RunningServer;
  #closing: Promise<void> | undefined;
  #commits = 0;
  /** Called when a query on the dataset's agent has taken its snapshot. */
  #onScan: () => void = () => {};
  /** Answers of the dataset's agent wait for this promise. */
  #released: Promise<void> = Promise.resolve();
  #endEndless: () => void = () => {};

  constructor(transport: TransportName, dataset: CaseDataset, state: ServerState | undefined) {
    this.#transport = transport;
    this.#dataset = dataset;
    this.#state = state;
  }

  async start(): Promise<void> {
    this.#folder = await mkdtemp(join(tmpdir(), 'logstrata-conformance-'));
    await this.#open();
  }

  async #open(): Promise<void> {
    const { name, schema, nowMs } = this.#dataset;
    const now = (): number => nowMs;
    this.#archive = await openArchive(this.#folder, { mode: 'write', role: 'serve', now, workers });
    this.#store = await this.#archive.agent(name, schema);
    const served = this.#servedStore();
    const ended = new Promise<void>((resolve) => (this.#endEndless = resolve));
    const waiting = new ScriptedStore(() => [piece(1), ended, piece(2)]);
    this.#server = await startServer({
      ...defaultConfig.server,
      listen: { host: '127.0.0.1', port: 0 },
      transport: this.#transport,
      lookup: (agent) => (agent === name ? served : agent === endless ? waiting : undefined),
      corsOrigin: this.#state === 'cors' ? ['https://example.org'] : [],
      queriesMax: 1,
      queryTimeoutMs: this.#state === 'late' ? 50 : 60_000,
      clientRateMin: 0,
      hosts: ['test'],
      now,
      log: () => {},
    });
  }

  /** The archive's store, whose answers wait until they are requested; in the state `late` for ever. */
  #servedStore(): AgentStore {
    const store = this.#store;
    return Object.create(store, {
      name: { value: store.name },
      schema: { value: store.schema },
      scan: {
        value: async (query: Query, options?: ScanOptions): Promise<Scan> => {
          const scan = await store.scan(query, options);
          this.#onScan();
          const wait =
            this.#state === 'late'
              ? untilAborted(typeof options?.signal === 'function' ? options?.signal() : options?.signal)
              : this.#released;
          return { stats: scan.stats, lines: behind(wait, scan.lines) };
        },
      },
    }) as AgentStore;
  }

  async commit(commit: Commit): Promise<void> {
    const rows = commit.records.map((record) => record.values);
    // Hot and sealed in turn, so that answers use both.
    if (this.#commits++ % 2 === 0) await append(this.#store, rows, 'load');
    else await load(this.#store, rows);
  }

  async begin(request: HttpRequest): Promise<() => Promise<Answer>> {
    if (this.#state === 'stopping') return this.#beginWhileStopping(request);
    if (this.#state === 'busy') await this.#occupy();
    const wire = await this.#connect();
    let release: () => void = () => {};
    this.#released = new Promise((resolve) => (release = resolve));
    const scanned = new Promise<void>((resolve) => (this.#onScan = resolve));
    wire.send(bytesOf(request));
    await new Promise<void>((resolve, reject) => {
      for (const end of [scanned, wire.closed(), received(wire)]) end.then(() => resolve(), reject);
    });
    return async () => {
      release();
      return answerAt(0, wire, request);
    };
  }

  /**
   * Once a server stops, it accepts requests only on open connections. node:http closes idle ones;
   * uWebSockets.js closes a connection that sends a request before the previous answer.
   */
  async #beginWhileStopping(request: HttpRequest): Promise<() => Promise<Answer>> {
    const occupied = await this.#occupy();
    const wire = this.#transport === 'uws' ? await this.#connect() : occupied;
    this.#closing = this.#server.close({ timeoutMs: 10_000 });
    wire.send(bytesOf(request));
    // By the time that another connection is refused, the server has read the request as well.
    await Wire.open(this.#server.address).then(
      () => Promise.reject(new Error('the server takes connections after its stop')),
      () => undefined,
    );
    this.#endEndless();
    return () => answerAt(wire === occupied ? 1 : 0, wire, request);
  }

  async #connect(): Promise<Wire> {
    const wire = await Wire.open(this.#server.address);
    this.#wires.push(wire);
    return wire;
  }

  /** Takes the only query slot, and keeps it. */
  async #occupy(): Promise<Wire> {
    const wire = await this.#connect();
    wire.send(`GET /api/query/${endless} HTTP/1.1\r\nHost: test\r\n\r\n`);
    await received(wire);
    return wire;
  }

  async restart(): Promise<void> {
    await this.#stop();
    await this.#open();
  }

  async compact(): Promise<void> {
    await this.#store.compact();
  }

  async #stop(): Promise<void> {
    for (const wire of this.#wires.splice(0)) wire.socket.destroy();
    this.#endEndless();
    await (this.#closing ?? this.#server.close({ timeoutMs: 0 }));
    await this.#archive.close();
  }

  async close(): Promise<void> {
    await this.#stop();
    await rm(this.#folder, { recursive: true, force: true });
  }
}

function bytesOf({ method, target, version, headers, body }: HttpRequest): Buffer {
  const named = headers.some(([name]) => name === 'Host') ? headers : [['Host', 'test'], ...headers];
  const lines = named.map(([name, value]) => `${name}: ${value}\r\n`).join('');
  return Buffer.from(`${method} ${target} ${version}\r\n${lines}\r\n${body}`, 'utf8');
}

/** Resolves when the first bytes of an answer have arrived, or none can arrive any more. */
async function received(wire: Wire): Promise<void> {
  while (wire.receivedBytes === 0 && !wire.socket.destroyed) {
    await new Promise((resolve) => wire.socket.once('data', resolve).once('close', resolve));
  }
}

/** The answer with this `index` on the connection, decompressed. */
async function answerAt(index: number, wire: Wire, { method }: HttpRequest): Promise<Answer> {
  const isHead = method === 'HEAD';
  const response = (await wire.responses(index + 1, isHead))[index];
  if (response?.isWhole !== true) throw new Error(`no whole response (${wire.ending}): ${wire.text}`);
  const isPacked = response.headers.get('content-encoding') === 'gzip' && !isHead;
  const body = isPacked ? gunzipSync(response.body) : response.body;
  return { status: response.status, body: body.toString('utf8'), headers: response.headers };
}

async function* behind(wait: Promise<void>, lines: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  await wait;
  yield* lines;
}

function untilAborted(signal: AbortSignal | undefined): Promise<void> {
  return new Promise((_resolve, reject) => {
    const fail = (): void => reject(signal?.reason instanceof Error ? signal.reason : new Error('aborted'));
    if (signal?.aborted === true) fail();
    signal?.addEventListener('abort', fail);
  });
}
