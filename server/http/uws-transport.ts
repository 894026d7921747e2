import { createServer } from 'node:net';
import {
  headerOf,
  type TransportRequest,
  clientGoneError,
  type ResponseHead,
  type TransportResponse,
  type RequestHandler,
  type Transport,
} from './transport.js';
import type { UwsHttpRequest, UwsHttpResponse, Uws, UwsApp } from './uws-binary.js';
import { assert, answerBytesMax, LogstrataError } from '../../engine/index.js';
import { uwsBehindWriteBytesMax } from './http-limits.js';
import { reasonPhrase } from './problem.js';
import { formatAddress, listenOn } from './listen.js';

/** A request as uWebSockets.js has read it. The version is always 1.1, because uWebSockets.js refuses all others. */
class UwsRequest implements TransportRequest {
  readonly method: string;
  readonly version = '1.1';
  readonly rawPath: string;
  readonly rawQuery: string;
  readonly #response: UwsHttpResponse;
  readonly #lines: string[] = [];

  constructor(response: UwsHttpResponse, request: UwsHttpRequest) {
    this.#response = response;
    this.method = request.getCaseSensitiveMethod();
    this.rawPath = request.getUrl();
    // The library's own look-up treats an empty value as a missing header, and returns only the first of several. The check whether a
    // request has a body must see all of them.
    request.forEach((name, value) => this.#lines.push(name, value));
    this.rawQuery = request.getQuery() ?? '';
  }

  get remoteAddress(): string {
    return textOfAddress(new Uint8Array(this.#response.getRemoteAddress()));
  }

  header(name: string): string | undefined {
    return headerOf(this.#lines, name);
  }
}

/** What a response needs from its transport. */
interface UwsTransportState {
  readonly isStopping: boolean;
  /** Called when the answer has ended or its client has gone. `isKept` says that uWebSockets.js still holds bytes of the answer. */
  finished(isKept: boolean): void;
}

const done = Promise.resolve();

/** One answer on uWebSockets.js, which copies the bytes of a write that the operating system does not take at once. */
class UwsResponse implements TransportResponse {
  readonly #response: UwsHttpResponse;
  readonly #transport: UwsTransportState;
  readonly #isHead: boolean;
  /**
   * Whether the client asks for the connection to be closed (`Connection: close`). uWebSockets.js decides that by the length of the value
   * alone, and then closes the connection by itself.
   */
  readonly #isClosedBehind: boolean;
  #isBegun = false;
  #isEnded = false;
  #isGone = false;
  #isWatched = false;
  /** Whether the operating system has not taken everything that was written. */
  #isBehind = false;
  #whenGone: (() => void) | undefined;
  /** Continues a write that waits. Called with the number of bytes of the body taken so far, or undefined when the client has gone. */
  #goOn: ((offset: number | undefined) => void) | undefined;

  constructor(response: UwsHttpResponse, request: TransportRequest, transport: UwsTransportState) {
    this.#response = response;
    this.#transport = transport;
    this.#isHead = request.method === 'HEAD';
    this.#isClosedBehind = request.header('connection')?.length === 'close'.length;
    response.onAborted(() => this.#leave());
  }

  get isWaiting(): boolean {
    return this.#goOn !== undefined;
  }

  get isGone(): boolean {
    return this.#isGone;
  }

  whenGone(call: () => void): void {
    this.#whenGone = call;
    if (this.#isGone) call();
  }

  send(head: ResponseHead, body: Uint8Array | null): Promise<void> {
    if (this.#isEnded) return done;
    assert(!this.#isBegun, 'a response is sent once');
    if (head.closes === true) return this.#refuse(head, body!);
    let isDone = true;
    this.#response.cork(() => {
      this.#writeHead(head);
      if (body === null) this.#response.endWithoutBody();
      else if (this.#isHead) this.#response.endWithoutBody(body.length);
      else [, isDone] = this.#response.tryEnd(body, body.length);
    });
    if (isDone) {
      this.#finish(false);
      return done;
    }
    return this.#sendRest(body!);
  }

  /**
   * Answers and closes the connection. This is done in a later turn of the event loop, because uWebSockets.js, when told to close while it
   * reads, still handles the pipelined requests that it has read.
   */
  #refuse(head: ResponseHead, body: Uint8Array): Promise<void> {
    return new Promise((resolve) => {
      setImmediate(() => {
        resolve();
        if (this.#isEnded) return;
        this.#response.cork(() => {
          this.#writeHead(head);
          if (this.#isHead) this.#response.endWithoutBody(body.length, true);
          else this.#response.end(body, true);
        });
        this.#finish(false);
      });
    });
  }

  /** Sends the rest of a body whenever the operating system can take more. Nothing is copied. */
  #sendRest(body: Uint8Array): Promise<void> {
    return new Promise((resolve) => {
      this.#goOn = (offset) => {
        if (offset === undefined) {
          resolve();
          return;
        }
        const [, isDone] = this.#response.tryEnd(body.subarray(offset), body.length);
        if (!isDone) return;
        this.#goOn = undefined;
        this.#finish(false);
        resolve();
      };
      this.#watch();
    });
  }

  write(head: ResponseHead, piece: Uint8Array): Promise<void> {
    if (this.#isEnded) return Promise.reject(clientGoneError());
    const offset = this.#writeWhile(head, piece, 0);
    return offset === undefined ? done : this.#writeRest(head, piece, offset);
  }

  /** Writes a piece from `offset` for as long as the operating system takes all of it. Returns where it stopped; undefined at the end. */
  #writeWhile(head: ResponseHead, piece: Uint8Array, offset: number): number | undefined {
    for (let at = offset; at < piece.length;) {
      const end = at + (this.#isBehind ? uwsBehindWriteBytesMax : answerBytesMax);
      this.#response.cork(() => {
        if (!this.#isBegun) this.#writeHead(head);
        this.#isBehind = !this.#response.write(piece.subarray(at, end));
      });
      at = end;
      if (this.#isBehind) return at;
    }
    return undefined;
  }

  async #writeRest(head: ResponseHead, piece: Uint8Array, from: number): Promise<void> {
    for (let offset: number | undefined = from; offset !== undefined;) {
      await new Promise<void>((resolve) => {
        this.#goOn = () => resolve();
        this.#watch();
      });
      this.#goOn = undefined;
      if (this.#isEnded) throw clientGoneError();
      offset = this.#writeWhile(head, piece, offset);
    }
  }

  end(): void {
    if (this.#isEnded) return;
    this.#response.cork(() => this.#response.end());
    this.#finish(this.#isBehind);
  }

  /**
   * Breaks the connection in a later turn of the event loop. uWebSockets.js keeps what is written in the turn that reads a request until
   * the end of that turn, and drops it if the connection is closed before. A client that got no byte of an answer may ask again by itself.
   */
  break(): void {
    setImmediate(() => {
      if (!this.#isEnded) this.#response.close();
    });
  }

  #writeHead(head: ResponseHead): void {
    this.#isBegun = true;
    const response = this.#response;
    response.writeStatus(`${head.status} ${reasonPhrase(head.status)}`);
    const { headers } = head;
    for (const name in headers) response.writeHeader(name, headers[name]!);
    // If `closes` is set and the client has not asked to close, uWebSockets.js writes this header by itself.
    if (this.#isClosedBehind || (this.#transport.isStopping && head.closes !== true))
      response.writeHeader('Connection', 'close');
    if (head.timing !== undefined) response.writeHeader('Server-Timing', head.timing);
  }

  #watch(): void {
    if (this.#isWatched) return;
    this.#isWatched = true;
    this.#response.onWritable((offset) => {
      this.#goOn?.(offset);
      return true;
    });
  }

  #leave(): void {
    this.#isGone = true;
    this.#finish(false);
    this.#goOn?.(undefined);
    this.#whenGone?.();
  }

  #finish(isKept: boolean): void {
    if (this.#isEnded) return;
    this.#isEnded = true;
    this.#transport.finished(isKept);
  }
}

/** The transport on uWebSockets.js. */
export class UwsTransport implements Transport, UwsTransportState {
  readonly name = 'uws';
  isStopping = false;
  #app: UwsApp | undefined;
  #listening: object | undefined;
  /** Number of open connections, and of answers under way. */
  #connections = 0;
  #answering = 0;
  /** Whether uWebSockets.js had to keep the last bytes of an answer that has ended. */
  #isKeeping = false;
  #whenQuiet: (() => void) | undefined;

  constructor(
    private readonly uws: Uws,
    private readonly handler: RequestHandler,
  ) {}

  async listen(host: string, port: number): Promise<number> {
    // Without this option uWebSockets.js names itself in every answer.
    this.uws._cfg('silent');
    const app = this.uws.App();
    app.filter((_response, change) => {
      this.#connections += change;
      this.#checkQuiet();
    });
    app.any('/*', (response, request) => this.#take(response, request));
    const listening = await new Promise<object | false>((resolve) => {
      const { LIBUS_LISTEN_EXCLUSIVE_PORT } = this.uws;
      app.listen(host, port, LIBUS_LISTEN_EXCLUSIVE_PORT, resolve);
    });
    if (listening === false) throw await this.#refusal(host, port);
    this.#app = app;
    this.#listening = listening;
    return this.uws.us_socket_local_port(listening);
  }

  async stop(): Promise<void> {
    this.isStopping = true;
    if (this.#listening !== undefined) this.uws.us_listen_socket_close(this.#listening);
    this.#listening = undefined;
    const quiet = new Promise<void>((resolve) => (this.#whenQuiet = resolve));
    this.#checkQuiet();
    await quiet;
    this.#close();
  }

  destroy(): Promise<void> {
    this.isStopping = true;
    this.#close();
    return Promise.resolve();
  }

  finished(isKept: boolean): void {
    this.#answering--;
    if (isKept) this.#isKeeping = true;
    this.#checkQuiet();
  }

  #take(response: UwsHttpResponse, request: UwsHttpRequest): void {
    this.#answering++;
    const taken = new UwsRequest(response, request);
    this.handler(taken, new UwsResponse(response, taken, this));
  }

  /**
   * Lets `stop` go on once no answer is under way. uWebSockets.js gives no access to idle connections, so `stop` then closes all at once.
   * If uWebSockets.js had to keep bytes of an ended answer, `stop` goes on only when all connections have closed.
   */
  #checkQuiet(): void {
    if (!this.isStopping) return;
    if (this.#isKeeping ? this.#connections === 0 : this.#answering === 0) this.#whenQuiet?.();
  }

  #close(): void {
    this.#app?.close();
    this.#app = undefined;
    this.#listening = undefined;
  }

  /** Finds out why uWebSockets.js can't listen, which it does not say: Node is asked to listen on the same address. */
  async #refusal(host: string, port: number): Promise<LogstrataError> {
    const server = createServer();
    try {
      await listenOn(server, host, port);
    } catch (error) {
      if (error instanceof LogstrataError) return error;
      throw error;
    }
    await new Promise((resolve) => server.close(resolve));
    return new LogstrataError(
      'invalid',
      `uWebSockets.js can't listen on ${formatAddress(host, port)}; use the transport "node"`,
    );
  }
}

/** An address of 4 or 16 bytes as text; an IPv4-mapped IPv6 address as IPv4. Empty for any other number of bytes. */
function textOfAddress(bytes: Uint8Array): string {
  if (bytes.length === 4) return bytes.join('.');
  if (bytes.length !== 16) return '';
  if (bytes.subarray(0, 10).every((byte) => byte === 0) && bytes[10] === 0xff && bytes[11] === 0xff)
    return bytes.subarray(12).join('.');
  const groups = Array.from({ length: 8 }, (_, i) => ((bytes[2 * i]! << 8) | bytes[2 * i + 1]!).toString(16));
  // `URL` writes the shortest form, as Node's sockets do.
  return new URL(`http://[${groups.join(':')}]`).hostname.slice(1, -1);
}
