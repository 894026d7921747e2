import { createServer } from 'node:http';
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { assert } from '../engine/assert.js';
import { clientGone } from './gate-connection.js';
import {
  headersBytesMax,
  headTimeoutMs,
  idleTimeoutMs,
  lingerBytesMax,
  lingerTimeoutMs,
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
  refusal,
  takeHead,
  targetRefusal,
} from './request-head.js';
import type { CheckedHead } from './request-head.js';
import type { ResponseHead, Transport, TransportOptions, TransportResponse } from './transport.js';

/** The route on node:http, for wherever uWebSockets.js has no binary. */
export class NodeTransport implements Transport {
  readonly name = 'node';
  readonly #options: TransportOptions;
  readonly #server: Server;
  readonly #lines = new WeakMap<Socket, LineWatch>();
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
    this.#server.on('connection', (socket) => this.#lines.set(socket, new LineWatch(socket)));
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
      // A client that has taken nothing for so long is gone; one that waits for the scan is not.
      if (socket.writableLength > 0) socket.destroy();
      else socket.setTimeout(stallTimeoutMs);
    });
  }

  listen(host: string | undefined, port: number): Promise<number> {
    return listenOn(this.#server, host, port);
  }

  async stop(): Promise<void> {
    this.#isStopping = true;
    const closed = new Promise<void>((resolve) => this.#server.close(() => resolve()));
    this.#server.closeIdleConnections();
    await closed;
  }

  async destroy(): Promise<void> {
    const closed = this.stop();
    this.#server.closeAllConnections();
    await closed;
  }

  #answer(request: IncomingMessage, response: ServerResponse): void {
    const answer = new NodeResponse(request, response, () => this.#isStopping);
    response.on('close', () => {
      // A connection whose answer had begun before the stop could not be told to close; it is idle from here on.
      if (this.#isStopping) setImmediate(() => this.#server.closeIdleConnections());
    });
    let head: CheckedHead;
    try {
      const { method, url, httpVersion, rawHeaders } = request;
      head = checkHead(
        { method: method!, target: url!, version: httpVersion, rawHeaders },
        this.#options.methods,
      );
    } catch (error) {
      if (!(error instanceof ProblemError)) throw error;
      sendProblem(answer, error);
      return;
    }
    if (head.closes) answer.closesBehind();
    this.#options.handler(head, answer);
  }

  #refuse(error: NodeJS.ErrnoException & { rawPacket?: Buffer; bytesParsed?: number }, socket: Socket): void {
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
  #problemOfParser(error: NodeJS.ErrnoException & { rawPacket?: Buffer }, socket: Socket): ProblemError {
    if (error.code === 'HPE_HEADER_OVERFLOW') {
      return this.#lines.get(socket)?.isInRequestLine === true ? lineRefusal() : headersRefusal();
    }
    if (error.code === 'HPE_INVALID_URL') return targetRefusal();
    try {
      const taken = takeHead(error.rawPacket ?? Buffer.alloc(0));
      if (taken !== undefined) checkHead(taken.head, this.#options.methods);
    } catch (problem) {
      if (problem instanceof ProblemError) return problem;
      throw problem;
    }
    return refusal(400, 'this is not an HTTP/1.1 request');
  }
}

/** Knows whether the line that a connection is in the middle of is a request line: the first, or the first behind an empty one. */
class LineWatch {
  #tail = '\r\n\r\n';
  isInRequestLine = true;

  constructor(socket: Socket) {
    socket.on('data', (chunk: Buffer) => this.#note(chunk));
  }

  #note(chunk: Buffer): void {
    const newline = chunk.lastIndexOf(0x0a);
    if (newline >= 0) {
      const before = this.#tail + chunk.toString('latin1', Math.max(0, newline - 3), newline + 1);
      this.isInRequestLine = before.endsWith('\r\n\r\n');
    }
    this.#tail = (this.#tail + chunk.toString('latin1', Math.max(0, chunk.length - 4))).slice(-4);
  }
}

class NodeResponse implements TransportResponse {
  readonly #request: IncomingMessage;
  readonly #response: ServerResponse;
  readonly #isStopping: () => boolean;
  readonly #abort = new AbortController();
  #closesBehind = false;

  constructor(request: IncomingMessage, response: ServerResponse, isStopping: () => boolean) {
    this.#request = request;
    this.#response = response;
    this.#isStopping = isStopping;
    response.on('close', () => {
      if (!response.writableFinished) this.#abort.abort(clientGone());
    });
    // Without a listener a failed write would end the process; `close` follows in any case.
    response.on('error', () => undefined);
  }

  get gone(): AbortSignal {
    return this.#abort.signal;
  }

  closesBehind(): void {
    this.#closesBehind = true;
  }

  send(head: ResponseHead, body: Uint8Array | null): void {
    if (this.#abort.signal.aborted) return;
    assert(!this.#response.headersSent, 'a response is sent once');
    this.#writeHead(head, body?.length);
    if (body !== null && this.#request.method !== 'HEAD') this.#response.write(body);
    if (head.closes === true) this.#endAfterBody();
    else this.#response.end();
  }

  async write(head: ResponseHead, piece: Uint8Array): Promise<void> {
    for (let offset = 0; offset < piece.length; offset += socketWriteBytesMax) {
      if (this.#abort.signal.aborted) throw clientGone();
      if (!this.#response.headersSent) this.#writeHead(head, undefined);
      const slice = piece.subarray(offset, offset + socketWriteBytesMax);
      // The callback comes when the kernel has the bytes: only then are they no more the caller's.
      await new Promise<void>((resolve, reject) => {
        const fail = (): void => reject(clientGone());
        this.#abort.signal.addEventListener('abort', fail, { once: true });
        this.#response.write(slice, (error) => {
          this.#abort.signal.removeEventListener('abort', fail);
          if (error) fail();
          else resolve();
        });
      });
    }
  }

  end(): void {
    if (!this.#abort.signal.aborted) this.#response.end();
  }

  break(): void {
    const { socket } = this.#request;
    if (!socket.destroyed) socket.resetAndDestroy();
  }

  #writeHead(head: ResponseHead, length: number | undefined): void {
    for (const [name, value] of Object.entries(head.headers)) this.#response.setHeader(name, value);
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
