import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { HttpResponse, TemplatedApp } from 'uWebSockets.js';
import { assert } from '../engine/assert.js';
import { LogstrataError } from '../engine/errors.js';
import { Gate } from './gate.js';
import { clientGone } from './client-gone.js';
import type { Exchange } from './gate-connection.js';
import { socketWriteBytesMax } from './http-limits.js';
import { ProblemError, reasonPhrase } from './problem.js';
import { sendProblem } from './problem-response.js';
import type { ResponseHead, Transport, TransportOptions, TransportResponse } from './transport.js';
import type { Uws } from './uws-binary.js';

/** Its types leave out what the binary has: the end of all listening and all connections. */
interface ClosableApp extends TemplatedApp {
  close(): void;
}

/** Folders of gates are named by their process, so that one that was killed leaves nothing for good. */
const folderPrefix = 'logstrata-gate-';

/** Removes the folders of processes that are gone. One that can't be removed is another user's. */
async function removeAbandonedFolders(): Promise<void> {
  for (const name of await readdir(tmpdir())) {
    const owner = /^logstrata-gate-(\d+)-/.exec(name)?.[1];
    if (owner === undefined || isRunning(Number(owner))) continue;
    await rm(join(tmpdir(), name), { recursive: true, force: true }).catch(() => undefined);
  }
}

function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    // A process of another user is there, too.
    return (error as NodeJS.ErrnoException).code !== 'ESRCH';
  }
}

/** The route on uWebSockets.js, behind its gate. */
export class UwsTransport implements Transport {
  readonly name = 'uws';
  readonly #uws: Uws;
  readonly #options: TransportOptions;
  #app: ClosableApp | undefined;
  #gate: Gate | undefined;
  #folder: string | undefined;

  constructor(uws: Uws, options: TransportOptions) {
    this.#uws = uws;
    this.#options = options;
  }

  async listen(host: string | undefined, port: number): Promise<number> {
    await removeAbandonedFolders();
    // mkdtemp gives the folder to this user alone, and with it the socket.
    this.#folder = await mkdtemp(join(tmpdir(), `${folderPrefix}${process.pid}-`));
    const gate = new Gate(join(this.#folder, 'gate'), this.#options.methods);
    this.#gate = gate;
    try {
      this.#uws._cfg('silent');
      this.#app = this.#uws.App() as ClosableApp;
      this.#app.any('/*', (response, request) => this.#answer(gate, response, request.getUrl()));
      await this.#listenInside(this.#app, gate.socketPath);
      return await gate.listen(host, port);
    } catch (error) {
      await this.destroy();
      throw error;
    }
  }

  async stop(): Promise<void> {
    await this.#gate?.stop();
  }

  async destroy(): Promise<void> {
    await this.#gate?.destroy();
    this.#app?.close();
    this.#app = undefined;
    if (this.#folder !== undefined) await rm(this.#folder, { recursive: true, force: true });
    this.#folder = undefined;
  }

  #listenInside(app: TemplatedApp, path: string): Promise<void> {
    return new Promise((resolve, reject) => {
      app.listen_unix((socket) => {
        if (socket) resolve();
        else
          reject(
            new LogstrataError('io', `uWebSockets.js can't listen on the Unix socket ${path}`, { path }),
          );
      }, path);
    });
  }

  #answer(gate: Gate, response: HttpResponse, url: string): void {
    const exchange = gate.exchange(Number(url.slice(1)));
    if (exchange === undefined) {
      response.close();
      return;
    }
    const answer = new UwsResponse(response, exchange, gate);
    if (exchange.request instanceof ProblemError) sendProblem(answer, exchange.request);
    else this.#options.handler(exchange.request, answer);
  }
}

class UwsResponse implements TransportResponse {
  readonly #response: HttpResponse;
  readonly #exchange: Exchange;
  readonly #gate: Gate;
  #isGone = false;
  #whenGone: (() => void) | undefined;
  #isBegun = false;
  #isEnded = false;
  #closesBehind = false;
  #writable: (() => void) | undefined;

  constructor(response: HttpResponse, exchange: Exchange, gate: Gate) {
    this.#response = response;
    this.#exchange = exchange;
    this.#gate = gate;
    response.onAborted(() => {
      this.#isEnded = true;
      this.#isGone = true;
      this.#writable?.();
      this.#whenGone?.();
    });
    response.onWritable(() => {
      this.#writable?.();
      return true;
    });
  }

  get isGone(): boolean {
    return this.#isGone;
  }

  whenGone(call: () => void): void {
    this.#whenGone = call;
    if (this.#isGone) call();
  }

  send(head: ResponseHead, body: Uint8Array | null): undefined {
    if (this.#isEnded) return;
    assert(!this.#isBegun, 'a response is sent once');
    const closes = this.#closes(head);
    this.#exchange.connection.beginAnswer();
    this.#response.cork(() => {
      this.#writeHead(head, closes);
      if (body !== null && !this.#exchange.isHead) {
        this.#exchange.connection.note(body.length);
        this.#response.end(body);
        return;
      }
      // Given the length itself, uWebSockets.js would wait for that many bytes before it takes another request.
      if (body !== null) this.#response.writeHeader('Content-Length', String(body.length));
      this.#response.endWithoutBody();
    });
    this.#finish(closes);
  }

  async write(head: ResponseHead, piece: Uint8Array): Promise<void> {
    for (let offset = 0; offset < piece.length; offset += socketWriteBytesMax) {
      if (this.#isEnded) throw clientGone();
      const slice = piece.subarray(offset, offset + socketWriteBytesMax);
      let isTaken = true;
      this.#response.cork(() => {
        if (!this.#isBegun) {
          this.#isBegun = true;
          this.#exchange.connection.beginAnswer();
          this.#writeHead(head, this.#closes(head));
        }
        isTaken = this.#response.write(slice);
      });
      if (!isTaken) await new Promise<void>((resolve) => (this.#writable = resolve));
      // The chunk's own framing: its length in hexadecimal, and two line ends.
      await this.#exchange.connection.give(slice.length + slice.length.toString(16).length + 4);
    }
  }

  end(): void {
    if (this.#isEnded) return;
    this.#response.cork(() => this.#response.end());
    this.#finish(this.#closesBehind);
  }

  break(): void {
    if (this.#isEnded) return;
    this.#exchange.connection.break();
    this.#response.close();
  }

  #closes(head: ResponseHead): boolean {
    const { request } = this.#exchange;
    return head.closes === true || this.#gate.isStopping || request instanceof ProblemError || request.closes;
  }

  #writeHead(head: ResponseHead, closes: boolean): void {
    this.#closesBehind = closes;
    this.#response.writeStatus(`${head.status} ${reasonPhrase(head.status)}`);
    for (const [name, value] of Object.entries(head.headers)) this.#response.writeHeader(name, value);
    if (head.timing !== undefined) this.#response.writeHeader('Server-Timing', head.timing);
    // Its own closing of connections would write this header into the middle of a body that has begun, so the gate closes.
    if (closes) this.#response.writeHeader('Connection', 'close');
  }

  #finish(closes: boolean): void {
    this.#isEnded = true;
    this.#exchange.connection.finishAnswer(closes);
  }
}
