import { createServer } from 'node:http';
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { assert } from '../engine/assert.js';
import { clientGone } from './client-gone.js';
import {
  connectionsMax,
  headersBytesMax,
  headTimeoutMs,
  idleTimeoutMs,
  lingerBytesMax,
  lingerTimeoutMs,
  pipelinedRequestsMax,
  requestLineBytesMax,
  socketWriteBytesMax,
  stallTimeoutMs,
} from './http-limits.js';
import { listenOn } from './listen.js';
import { ProblemError } from './problem.js';
import { sendProblem } from './problem-response.js';
import { closeGently, rawProblem } from './raw-response.js';
import {
  checkHead,
  headersRefusal,
  lineRefusal,
  methodRefusal,
  parseHeaderLines,
  readHeaders,
  refusal,
  takeHead,
  targetRefusal,
  versionRefusal,
} from './request-head.js';
import type { CheckedHead } from './request-head.js';
import type { ResponseHead, Transport, TransportOptions, TransportResponse } from './transport.js';

/** The route on node:http: Node's own parser instead of ours. */
export class NodeTransport implements Transport {
  readonly name = 'node';
  readonly #options: TransportOptions;
  readonly #server: Server;
  readonly #connections = new Map<Socket, NodeConnection>();
  #isStopping = false;

  constructor(options: TransportOptions) {
    this.#options = options;
    this.#server = createServer(
      {
        // Our own bounds are checked when the head is there; this one only stops what is beyond both of them together.
        maxHeaderSize: requestLineBytesMax + headersBytesMax + 4096,
        requireHostHeader: false,
        headersTimeout: headTimeoutMs,
        requestTimeout: headTimeoutMs,
        keepAliveTimeout: idleTimeoutMs,
        connectionsCheckingInterval: 1000,
        noDelay: true,
      },
      (request, response) => this.#answer(request, response),
    );
    // Node drops headers beyond its count without a word; ours is checked in checkHead.
    this.#server.maxHeadersCount = 0;
    this.#server.maxConnections = connectionsMax;
    this.#server.on('connection', (socket) => {
      this.#connections.set(socket, new NodeConnection(socket));
      socket.on('close', () => this.#connections.delete(socket));
    });
    this.#server.on('checkContinue', (request: IncomingMessage, response: ServerResponse) =>
      this.#answer(request, response),
    );
    this.#server.on('checkExpectation', (request: IncomingMessage, response: ServerResponse) =>
      this.#answer(request, response),
    );
    this.#server.on('connect', (_request, socket) =>
      closeGently(socket as Socket, rawProblem(methodRefusal('CONNECT', options.methods), false)),
    );
    this.#server.on('clientError', (error: NodeJS.ErrnoException, socket) =>
      this.#refuse(error, socket as Socket),
    );
    this.#server.setTimeout(stallTimeoutMs, (socket) => {
      // A client that takes nothing of its answer is gone, and so is one without a request; one that waits for the scan is not.
      const isWaiting = this.#connections.get(socket)?.isAnswering === true && socket.writableLength === 0;
      if (isWaiting) socket.setTimeout(stallTimeoutMs);
      else socket.destroy();
    });
  }

  listen(host: string | undefined, port: number): Promise<number> {
    return listenOn(this.#server, host, port);
  }

  async stop(): Promise<void> {
    this.#isStopping = true;
    const closed = new Promise<void>((resolve) => this.#server.close(() => resolve()));
    for (const [socket, connection] of this.#connections) if (!connection.isAnswering) socket.destroySoon();
    await closed;
  }

  async destroy(): Promise<void> {
    const closed = this.stop();
    this.#server.closeAllConnections();
    await closed;
  }

  #answer(request: IncomingMessage, response: ServerResponse): void {
    const answer = new NodeResponse(request, response, () => this.#isStopping);
    response.on('close', () => this.#closeIfStopping(request.socket));
    let head: CheckedHead;
    try {
      const { method, url, httpVersion, rawHeaders } = request;
      const line = { method: method!, target: url!, version: httpVersion };
      // An old version is refused as such, whatever its headers are.
      if (httpVersion !== '1.1') throw versionRefusal(httpVersion);
      head = checkHead(line, readHeaders(rawHeaders), this.#options.methods);
    } catch (error) {
      if (!(error instanceof ProblemError)) throw error;
      const problem = error;
      this.#inTurn(request.socket, response, () => sendProblem(answer, problem));
      return;
    }
    if (head.closes) answer.closesBehind();
    this.#inTurn(request.socket, response, () => this.#options.handler(head, answer));
  }

  /** A connection whose answer had begun before the stop could not be told to close. */
  #closeIfStopping(socket: Socket): void {
    setImmediate(() => {
      if (this.#isStopping && this.#connections.get(socket)?.isAnswering === false) socket.destroySoon();
    });
  }

  #inTurn(socket: Socket, response: ServerResponse, begin: () => void): void {
    const connection = this.#connections.get(socket);
    assert(connection !== undefined, 'a request came on a connection that was not announced');
    connection.answerInTurn(response, begin);
  }

  #refuse(error: ParserError, socket: Socket): void {
    if (
      !socket.writable ||
      socket.destroyed ||
      error.code === 'ECONNRESET' ||
      error.code === 'ERR_HTTP_REQUEST_TIMEOUT'
    ) {
      socket.destroy();
      return;
    }
    // An answer under way on this connection can't be followed by another any more.
    if (socket.bytesWritten > 0 && socket.writableLength > 0) {
      socket.destroy();
      return;
    }
    closeGently(socket, rawProblem(this.#problemOfParser(error, socket), false));
  }

  /** Node says only that it could not parse; our own reader of heads says why, from the same bytes. */
  #problemOfParser(error: ParserError, socket: Socket): ProblemError {
    const packet = error.rawPacket ?? Buffer.alloc(0);
    if (error.code === 'HPE_HEADER_OVERFLOW') {
      const isLine = this.#connections.get(socket)?.isInRequestLine(packet, error.bytesParsed ?? 0);
      return isLine === true ? lineRefusal() : headersRefusal();
    }
    if (error.code === 'HPE_INVALID_URL') return targetRefusal();
    try {
      const taken = takeHead(packet);
      if (taken !== undefined)
        checkHead(taken.line, readHeaders(parseHeaderLines(taken.headers)), this.#options.methods);
    } catch (problem) {
      if (problem instanceof ProblemError) return problem;
      throw problem;
    }
    return refusal(400, 'this is not an HTTP/1.1 request');
  }
}

/** What `clientError` brings besides a code: the packet at hand, and how far the parser came in it. */
interface ParserError extends NodeJS.ErrnoException {
  readonly rawPacket?: Buffer;
  readonly bytesParsed?: number;
}

/** What node:http does not tell about a connection. */
class NodeConnection {
  readonly #socket: Socket;
  /** Last bytes before the chunk at hand. */
  #tail = '\r\n\r\n';
  /** The line that the connection is in the middle of is a request line: the first, or the first behind an empty one. */
  #isInRequestLine = true;
  /** Requests that wait for the answers before theirs, and whether one is being answered. */
  readonly #waiting: (() => void)[] = [];
  isAnswering = false;

  constructor(socket: Socket) {
    this.#socket = socket;
    socket.on('data', (chunk: Buffer) => this.#note(chunk));
  }

  /**
   * Node hands over pipelined requests all at once; here one begins when the one before has ended, so that a connection
   * takes one query's slot. Beyond a bound the socket is not read.
   */
  answerInTurn(response: ServerResponse, begin: () => void): void {
    response.on('close', () => {
      this.isAnswering = false;
      const next = this.#waiting.shift();
      if (this.#waiting.length < pipelinedRequestsMax) this.#socket.resume();
      next?.();
    });
    const run = (): void => {
      this.isAnswering = true;
      begin();
    };
    if (!this.isAnswering && this.#waiting.length === 0) run();
    else if (this.#waiting.push(run) >= pipelinedRequestsMax) this.#socket.pause();
  }

  /** Whether the parser gave up inside a request line: at byte `parsed` of the packet at hand, which `#note` has not seen yet. */
  isInRequestLine(packet: Buffer, parsed: number): boolean {
    const newline = parsed === 0 ? -1 : packet.lastIndexOf(0x0a, parsed - 1);
    return newline < 0 ? this.#isInRequestLine : this.#endsHead(packet, newline);
  }

  #endsHead(chunk: Buffer, newline: number): boolean {
    return (this.#tail + chunk.toString('latin1', Math.max(0, newline - 3), newline + 1)).endsWith(
      '\r\n\r\n',
    );
  }

  #note(chunk: Buffer): void {
    const newline = chunk.lastIndexOf(0x0a);
    if (newline >= 0) this.#isInRequestLine = this.#endsHead(chunk, newline);
    this.#tail = (this.#tail + chunk.toString('latin1', Math.max(0, chunk.length - 4))).slice(-4);
  }
}

class NodeResponse implements TransportResponse {
  readonly #request: IncomingMessage;
  readonly #response: ServerResponse;
  readonly #isStopping: () => boolean;
  #isGone = false;
  #whenGone: (() => void) | undefined;
  /** Ends the wait of a write. */
  #fail: (() => void) | undefined;
  #closesBehind = false;

  constructor(request: IncomingMessage, response: ServerResponse, isStopping: () => boolean) {
    this.#request = request;
    this.#response = response;
    this.#isStopping = isStopping;
    response.on('close', () => {
      if (response.writableFinished) return;
      this.#isGone = true;
      this.#fail?.();
      this.#whenGone?.();
    });
    // Without a listener a failed write would end the process; `close` follows in any case.
    response.on('error', () => undefined);
  }

  get isGone(): boolean {
    return this.#isGone;
  }

  whenGone(call: () => void): void {
    this.#whenGone = call;
    if (this.#isGone) call();
  }

  closesBehind(): void {
    this.#closesBehind = true;
  }

  send(head: ResponseHead, body: Uint8Array | null): undefined {
    if (this.#isGone) return;
    assert(!this.#response.headersSent, 'a response is sent once');
    this.#writeHead(head, body?.length);
    if (body !== null && this.#request.method !== 'HEAD') this.#response.write(Buffer.from(body));
    if (head.closes === true) this.#endAfterBody();
    else this.#response.end();
  }

  async write(head: ResponseHead, piece: Uint8Array): Promise<void> {
    for (let offset = 0; offset < piece.length; offset += socketWriteBytesMax) {
      if (this.#isGone) throw clientGone();
      if (!this.#response.headersSent) this.#writeHead(head, undefined);
      const slice = piece.subarray(offset, offset + socketWriteBytesMax);
      // The callback comes when the kernel has the bytes: only then are they no more the caller's.
      await new Promise<void>((resolve, reject) => {
        this.#fail = () => reject(clientGone());
        this.#response.write(slice, (error) => {
          if (error) this.#fail?.();
          else resolve();
        });
      });
    }
  }

  end(): void {
    if (!this.#isGone) this.#response.end();
  }

  break(): void {
    const { socket } = this.#request;
    if (!socket.destroyed) socket.resetAndDestroy();
  }

  #writeHead(head: ResponseHead, length: number | undefined): void {
    for (const [name, value] of Object.entries(head.headers)) this.#response.setHeader(name, value);
    if (head.timing !== undefined) this.#response.setHeader('Server-Timing', head.timing);
    if (length !== undefined) this.#response.setHeader('Content-Length', length);
    if (head.closes === true || this.#closesBehind || this.#isStopping())
      this.#response.setHeader('Connection', 'close');
    this.#response.writeHead(head.status);
  }

  /** Node closes the socket when the response ends; bytes of a body that are not read by then would reset it. */
  #endAfterBody(): void {
    const request = this.#request;
    if (request.complete) {
      this.#response.end();
      return;
    }
    let dropped = 0;
    const end = (): void => {
      clearTimeout(timer);
      this.#response.end();
    };
    const timer = setTimeout(end, lingerTimeoutMs);
    request.on('data', (chunk: Buffer) => {
      dropped += chunk.length;
      if (dropped > lingerBytesMax) end();
    });
    request.on('end', end);
    request.on('close', end);
  }
}
