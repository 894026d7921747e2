import { gunzipSync } from 'node:zlib';
import type { AgentStore } from '../../engine/archive.js';
import type { Query } from '../../engine/scan/query.js';
import { MemoryDirectory } from '../../engine/storage/memory-directory.js';
import { startServer } from '../../server/server.js';
import type { RunningServer } from '../../server/server.js';
import type { TransportName } from '../../server/transport.js';
import type {
  Answer,
  Answerer,
  CaseDataset,
  HttpRequest,
  OpenedStore,
  ServerState,
} from '../conformance/answerer.js';
import { runConformance } from '../conformance/runner.js';
import { load, openOn } from '../engine/store/memory-archive.js';
import { transports } from './running.js';
import { piece, ScriptedStore, until } from './scripted-store.js';
import { Wire } from './wire.js';
import type { WireResponse } from './wire.js';

/** The agent whose queries begin to answer and then wait for ever, or until they are let go. */
const waiting = 'waiting';

/** The real engine, on a directory in memory, behind the real server. */
function serverAnswerer(transport: TransportName): Answerer {
  return {
    name: `the server on ${transport}`,
    isHttp: true,
    open: async (dataset, state) => {
      const opened = new ServedDataset(dataset, state, transport);
      await opened.start();
      return opened;
    },
  };
}

class ServedDataset implements OpenedStore {
  readonly #dataset: CaseDataset;
  readonly #state: ServerState | undefined;
  readonly #transport: TransportName;
  readonly #directory = new MemoryDirectory();
  readonly #wires: Wire[] = [];
  #archive: Awaited<ReturnType<typeof openOn>> | undefined;
  #store: AgentStore | undefined;
  #server: RunningServer | undefined;
  #letGo: () => void = () => undefined;
  /** Scans that the server has begun: a request that is begun has its snapshot then. */
  #scansBegun = 0;

  constructor(dataset: CaseDataset, state: ServerState | undefined, transport: TransportName) {
    this.#dataset = dataset;
    this.#state = state;
    this.#transport = transport;
  }

  async start(): Promise<void> {
    await this.#openStore();
    const wait = new Promise<void>((resolve) => (this.#letGo = resolve));
    const stuck = new ScriptedStore(() => [new Promise(() => undefined)], this.#dataset.schema);
    const slow = new ScriptedStore(() => [piece(1), wait]);
    this.#server = await startServer({
      listen: { host: '127.0.0.1', port: 0 },
      transport: this.#transport,
      lookup: (agent) => {
        if (agent === waiting) return slow;
        if (agent !== this.#dataset.name) return undefined;
        return this.#state === 'late' ? stuck : this.#counted();
      },
      corsOrigin: this.#state === 'cors' ? 'https://example.org' : undefined,
      timezone: 'UTC',
      limitMax: 1_000_000,
      queriesMax: this.#state === 'busy' ? 1 : 10,
      queryTimeoutMs: this.#state === 'late' ? 20 : 60_000,
      now: () => this.#dataset.nowMs,
      log: () => undefined,
    });
    if (this.#state === 'busy') await this.#beginWaiting();
  }

  async commit(commit: Parameters<OpenedStore['commit']>[0]): Promise<void> {
    await load(
      this.#store!,
      commit.records.map((record) => record.values),
    );
  }

  async begin(request: HttpRequest): Promise<() => Promise<Answer>> {
    const wire = this.#state === 'stopping' ? await this.#beginWaiting() : await this.#open();
    if (this.#state === 'stopping') void this.#server!.close({ timeoutMs: 10_000 });
    const before = this.#scansBegun;
    let isAnswered = false;
    void wire.closed().then(() => (isAnswered = true));
    wire.send(wordsOf(request));
    if (this.#state === 'stopping') {
      // The request must be there when the answer before it ends: after that the connection would be closed.
      await new Promise((resolve) => setTimeout(resolve, 50));
      this.#letGo();
    }
    await until(() => isAnswered || this.#scansBegun > before, 'the server took the request');
    return async () => {
      await wire.closed();
      const responses = await wire.responses(1, request.method === 'HEAD');
      return answerOf(responses.at(-1)!);
    };
  }

  async restart(): Promise<void> {
    await this.#archive!.close();
    await this.#openStore();
  }

  async compact(): Promise<void> {
    await this.#store!.compact();
  }

  async close(): Promise<void> {
    for (const wire of this.#wires) wire.socket.destroy();
    await this.#server!.close({ timeoutMs: 0 });
    await this.#archive!.close();
  }

  async #openStore(): Promise<void> {
    this.#archive = await openOn(this.#directory, () => this.#dataset.nowMs);
    this.#store = await this.#archive.agent(this.#dataset.name, this.#dataset.schema);
  }

  async #open(): Promise<Wire> {
    const wire = await Wire.open(this.#server!.address);
    this.#wires.push(wire);
    return wire;
  }

  /** A connection whose first answer has begun and waits. */
  async #beginWaiting(): Promise<Wire> {
    const wire = await this.#open();
    wire.send(`GET /api/query/${waiting} HTTP/1.1\r\nHost: test\r\n\r\n`);
    await until(() => wire.receivedBytes > 0, 'the waiting answer began');
    return wire;
  }

  #counted(): AgentStore {
    const store = this.#store!;
    return new Proxy(store, {
      get: (target, name) => {
        if (name === 'scan') {
          return async (...given: [Query]) => {
            const scan = await store.scan(...given);
            this.#scansBegun++;
            return scan;
          };
        }
        return Reflect.get(target, name, target) as unknown;
      },
    });
  }
}

/** As any client would send it: what is typed beyond ASCII is percent-encoded. */
function wordsOf(request: HttpRequest): string {
  const target = request.target.replace(/[^!-~]/gu, (character) => encodeURIComponent(character));
  const headers = request.headers.map(([name, value]) => `${name}: ${value}\r\n`).join('');
  const host = request.version === 'HTTP/1.1' ? 'Host: test\r\nConnection: close\r\n' : '';
  return `${request.method} ${target} ${request.version}\r\n${host}${headers}\r\n${request.body}`;
}

function answerOf(response: WireResponse): Answer {
  if (!response.isWhole) throw new Error('the answer was broken off');
  const isPacked = response.headers.get('content-encoding') === 'gzip' && response.body.length > 0;
  const body = isPacked ? gunzipSync(response.body) : response.body;
  return { status: response.status, headers: response.headers, body: body.toString() };
}

for (const transport of transports) runConformance(serverAnswerer(transport));
