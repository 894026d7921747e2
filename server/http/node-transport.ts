import { type ServerResponse, type IncomingMessage, createServer, type Server } from 'node:http';
import type { Socket } from 'node:net';
import { createServer as createTlsServer, type Server as TlsServer } from 'node:https';
import type { SecureContextOptions } from 'node:tls';
import { unansweredMax, assert, connectionsMax, idleMs } from '../../engine/index.js';
import { farewellMs, headBytesMax, headTimeoutMs } from './http-limits.js';
import { type OpenConnection, OpenConnections, listenOn } from './listen.js';
import {
  headerOf,
  type TransportRequest,
  clientGoneError,
  type ResponseHead,
  type TransportResponse,
  type RequestHandler,
  type Transport,
} from './transport.js';
import { tlsVersionMin, type Certificate } from './certificate.js';
import { ProblemError, problemBody, reasonPhrase } from './problem.js';

/** The state of the transport that its connections read. */
interface NodeTransportState {
  readonly isStopping: boolean;
  /** A client that takes nothing of its answer for this long is treated as gone. */
  readonly clientTimeoutMs: number;
}

/** One client's connection. Its requests are answered one after another, also if they are pipelined. */
class NodeConnection implements OpenConnection {
  /** Address of the other end. */
  readonly address: string;
  readonly transport: NodeTransportState;
  /** Whether the connection closes after the answer under way, so that no further request on it is answered. */
  isClosing = false;
  readonly #socket: Socket;
  /** The TCP socket: `#socket` itself, or the socket below it with TLS. */
  readonly #carrier: Socket;
  /** The response to the latest request. */
  #last: ServerResponse | undefined;
  /** Number of requests that wait for the answers before theirs. */
  #waiting = 0;

  constructor(socket: Socket, transport: NodeTransportState, carrier = socket) {
    this.#socket = socket;
    this.#carrier = carrier;
    this.transport = transport;
    this.address = socket.remoteAddress ?? '';
    socket.on('end', () => this.#watchHalfClosed());
  }

  /** Whether an answer is under way or waits for the one before it. */
  get isAnswering(): boolean {
    return this.#last?.writableFinished === false;
  }

  /**
   * Begins a request once the one before it on this connection has been answered, so that a connection takes only one slot of a query. Node
   * hands over pipelined requests all at once. While too many wait, the socket is not read.
   */
  answerInTurn(response: ServerResponse, begin: () => void): void {
    if (this.isClosing) return;
    const before = this.#last;
    this.#last = response;
    if (before === undefined || response.socket !== null) {
      begin();
      return;
    }
    this.#waiting++;
    if (this.#waiting >= unansweredMax) this.#socket.pause();
    before.on('close', () => {
      this.#waiting--;
      if (this.#waiting < unansweredMax) this.#socket.resume();
      if (!this.#socket.destroyed && !this.isClosing) begin();
    });
  }

  destroy(): void {
    this.#socket.destroy();
  }

  /** Resets the TCP connection, so that the client can't take a broken answer for a complete one. TLS itself has no way to signal that. */
  reset(): void {
    if (!this.#carrier.destroyed) this.#carrier.resetAndDestroy();
  }

  /** Closes the connection: at once if it is idle, otherwise after the answer under way. */
  stop(): void {
    if (this.isAnswering) this.#last!.on('close', () => this.#closeUnlessAnswering());
    else this.#socket.destroySoon();
  }

  /**
   * Watches a client that has closed its side of the connection. It may still read, or it may have gone. If it has gone, the next write
   * resets the connection. If nothing is written for `farewellMs`, the client is treated as gone.
   */
  #watchHalfClosed(): void {
    const socket = this.#socket;
    let writtenBytes = socket.bytesWritten;
    const timer = setInterval(() => {
      if (socket.writableLength === 0 && socket.bytesWritten === writtenBytes) socket.destroy();
      writtenBytes = socket.bytesWritten;
    }, farewellMs);
    socket.on('close', () => clearInterval(timer));
  }

  /** Closes the connection in the next turn of the event loop. A request that has arrived by then is still answered, with 503. */
  #closeUnlessAnswering(): void {
    setImmediate(() => {
      if (!this.isAnswering) this.#socket.destroySoon();
    });
  }
}

/** A request as node:http has read it. */
class NodeRequest implements TransportRequest {
  readonly method: string;
  readonly version: string;
  readonly rawPath: string;
  readonly rawQuery: string;

  constructor(private readonly request: IncomingMessage) {
    this.method = request.method!;
    this.version = request.httpVersion;
    const target = request.url!;
    const question = target.indexOf('?');
    this.rawPath = question < 0 ? target : target.slice(0, question);
    this.rawQuery = question < 0 ? '' : target.slice(question + 1);
  }

  get remoteAddress(): string {
    const address = this.request.socket.remoteAddress ?? '';
    return address.startsWith(mappedPrefix) ? address.slice(mappedPrefix.length) : address;
  }

  /** Looks headers up in the table that Node has made, except Host, of which that table has only the first line. */
  header(name: string): string | undefined {
    if (name === 'host') return headerOf(this.request.rawHeaders, name);
    const value = this.request.headers[name];
    return typeof value === 'object' ? value.join(', ') : value;
  }
}

/** Prefix of an IPv4 address on a socket that accepts both IPv4 and IPv6. */
const mappedPrefix = '::ffff:';

const ignore = (): void => undefined;
const done = Promise.resolve();

/** One answer on node:http. Bodies are handed to the operating system without a copy. */
class NodeResponse implements TransportResponse {
  #isWatched = false;
  #whenGone: (() => void) | undefined;
  /** Number of pieces for which Node has not confirmed that the operating system has taken them. */
  #unconfirmed = 0;
  /** The caller of `write` that waits until all pieces are confirmed. */
  #waiter: { readonly resolve: () => void; readonly reject: (error: Error) => void } | undefined;

  constructor(
    private readonly request: IncomingMessage,
    private readonly response: ServerResponse,
    private readonly connection: NodeConnection,
  ) {
    // Without a listener a failed write would end the process; `close` follows in any case.
    response.on('error', ignore);
  }

  get isWaiting(): boolean {
    return this.#waiter !== undefined;
  }

  get isGone(): boolean {
    return this.request.socket.destroyed && !this.response.writableFinished;
  }

  whenGone(call: () => void): void {
    this.#whenGone = call;
    if (this.isGone) call();
    else this.#watch();
  }

  send(head: ResponseHead, body: Uint8Array | null): Promise<void> {
    if (this.isGone) return done;
    const response = this.response;
    assert(!response.headersSent, 'a response is sent once');
    this.#writeHead(head, body?.length);
    const sent = this.request.method === 'HEAD' ? null : body;
    if (head.closes === true && !this.request.complete) this.#endBehindRequest(sent);
    else if (sent === null) response.end();
    else response.end(sent);
    if (response.writableFinished) return done;
    this.#limitWait();
    return new Promise((resolve) => response.on('close', resolve));
  }

  write(head: ResponseHead, piece: Uint8Array): Promise<void> {
    if (this.isGone) return Promise.reject(clientGoneError());
    const { socket } = this.request;
    socket.cork();
    if (!this.response.headersSent) this.#writeHead(head, undefined);
    this.#unconfirmed++;
    this.response.write(piece, () => this.#confirm());
    socket.uncork();
    // The operating system has taken all of it.
    if (socket.writableLength === 0) return done;
    this.#watch();
    this.#limitWait();
    return new Promise((resolve, reject) => (this.#waiter = { resolve, reject }));
  }

  end(): void {
    if (this.isGone) return;
    this.response.end();
    if (!this.response.writableFinished) this.#limitWait();
  }

  break(): void {
    this.connection.reset();
  }

  #confirm(): void {
    this.#unconfirmed--;
    if (this.#unconfirmed > 0 || this.#waiter === undefined) return;
    // The client has taken everything. Now it may wait for the server, so its silence no longer counts.
    this.request.socket.setTimeout(0);
    this.#waiter.resolve();
    this.#waiter = undefined;
  }

  /** Has Node end the connection if the client takes nothing for `clientTimeoutMs`. After the answer Node's own limits apply again. */
  #limitWait(): void {
    this.request.socket.setTimeout(this.connection.transport.clientTimeoutMs);
  }

  #watch(): void {
    if (this.#isWatched) return;
    this.#isWatched = true;
    this.response.on('close', () => {
      if (!this.isGone) return;
      this.#waiter?.reject(clientGoneError());
      this.#whenGone?.();
    });
  }

  #writeHead(head: ResponseHead, length: number | undefined): void {
    const lines = [...linesOf(head.headers)];
    if (head.timing !== undefined) lines.push('Server-Timing', head.timing);
    if (length !== undefined) lines.push('Content-Length', String(length));
    if (head.closes === true || this.connection.transport.isStopping) {
      this.connection.isClosing = true;
      lines.push('Connection', 'close');
    }
    this.response.writeHead(head.status, lines);
  }

  /**
   * Ends the response only after the request's body has been read and dropped, for a limited time. Node closes the socket when the response
   * ends, and unread bytes would reset the connection before the client has read the answer.
   */
  #endBehindRequest(body: Uint8Array | null): void {
    const request = this.request;
    if (body !== null) this.response.write(body);
    const end = (): void => {
      clearTimeout(timer);
      this.response.end();
    };
    const timer = setTimeout(end, farewellMs);
    request.resume();
    request.on('end', end);
    request.on('close', end);
  }
}

/** Header lines in the flat form that costs Node the least work, cached by the headers object that they were made of. */
const knownLines = new WeakMap<ResponseHead['headers'], readonly string[]>();

function linesOf(headers: ResponseHead['headers']): readonly string[] {
  let lines = knownLines.get(headers);
  if (lines === undefined) {
    lines = Object.entries(headers).flat();
    knownLines.set(headers, lines);
  }
  return lines;
}

/** A connection whose TLS handshake is not complete. */
class Handshake implements OpenConnection {
  readonly address: string;
  readonly isAnswering = false;

  constructor(readonly carrier: Socket) {
    this.address = carrier.remoteAddress ?? '';
  }

  destroy(): void {
    this.carrier.destroy();
  }
}

/**
 * The connections whose TLS handshake is under way. They count as open connections, so that clients that never complete a handshake can't
 * exceed the bound on connections.
 */
class Handshakes {
  /** By address and port of the client, because Node does not tell which TCP socket a TLS socket works on. */
  readonly #begun = new Map<string, Handshake>();

  constructor(private readonly open: OpenConnections<OpenConnection>) {}

  /** Notes a new TCP connection, on which TLS begins. */
  begin(carrier: Socket): void {
    const handshake = new Handshake(carrier);
    const key = keyOf(carrier);
    this.#begun.set(key, handshake);
    carrier.on('close', () => {
      this.open.remove(handshake);
      if (this.#begun.get(key) === handshake) this.#begun.delete(key);
    });
    this.open.add(handshake);
  }

  /** Notes that the handshake of a TLS socket is complete. Returns the TCP socket below it; undefined if that has closed. */
  end(socket: Socket): Socket | undefined {
    const key = keyOf(socket);
    const handshake = this.#begun.get(key);
    if (handshake === undefined) return undefined;
    this.#begun.delete(key);
    this.open.remove(handshake);
    return handshake.carrier;
  }

  /** The TCP socket of a TLS socket whose handshake has failed; undefined if that has closed. */
  carrierOf(socket: Socket): Socket | undefined {
    return this.#begun.get(keyOf(socket))?.carrier;
  }

  destroy(): void {
    for (const handshake of this.#begun.values()) handshake.destroy();
  }
}

function keyOf({ remoteAddress, remotePort }: Socket): string {
  return `${remoteAddress} ${remotePort}`;
}

const serverOptions = {
  maxHeaderSize: headBytesMax,
  // The route checks the Host header and says what is wrong with it.
  requireHostHeader: false,
  headersTimeout: headTimeoutMs,
  requestTimeout: headTimeoutMs,
  keepAliveTimeout: idleMs,
  connectionsCheckingInterval: 1000,
  noDelay: true,
};

/** `allowHalfOpen` is what Node's HTTP servers set without TLS. */
const tlsOptions = { allowHalfOpen: true, handshakeTimeout: headTimeoutMs };

function contextOf({ cert, key }: Certificate): SecureContextOptions {
  return { cert, key, minVersion: tlsVersionMin };
}

/** The transport on node:http, or with a certificate on node:https. */
export class NodeTransport implements Transport, NodeTransportState {
  readonly name = 'node';
  isStopping = false;
  readonly clientTimeoutMs: number;
  readonly #handler: RequestHandler;
  readonly #server: Server | TlsServer;
  readonly #connections = new Map<Socket, NodeConnection>();
  readonly #open = new OpenConnections<OpenConnection>(connectionsMax);
  readonly #handshakes = new Handshakes(this.#open);

  /** @param certificate if given, the transport answers over TLS */
  constructor(handler: RequestHandler, clientTimeoutMs: number, certificate?: Certificate) {
    this.#handler = handler;
    this.clientTimeoutMs = clientTimeoutMs;
    const take = (request: IncomingMessage, response: ServerResponse): void => this.#take(request, response);
    this.#server =
      certificate === undefined
        ? createServer(serverOptions, take)
        : createTlsServer({ ...serverOptions, ...tlsOptions, ...contextOf(certificate) }, take);
    // Without this Node ends its side in the middle of an answer when the client ends its own. Node's types and documentation omit it.
    Object.assign(this.#server, { httpAllowHalfOpen: true });
    // By default Node silently drops headers beyond a certain number. Their total length is bounded, so their number need not be.
    this.#server.maxHeadersCount = 0;
    if (certificate === undefined) {
      this.#server.on('connection', (socket: Socket) => this.#admit(socket));
    } else {
      this.#server.on('connection', (carrier: Socket) => this.#handshakes.begin(carrier));
      this.#server.on('secureConnection', (socket: Socket) =>
        this.#admit(socket, this.#handshakes.end(socket)),
      );
    }
    // A request with `Expect: 100-continue` is handled like any other. By default Node would ask for its body, which is refused anyway.
    this.#server.on('checkContinue', take);
    this.#server.on('clientError', (error, socket) => this.#refuse(error, socket as Socket));
  }

  /** Uses this certificate for new connections; open ones keep theirs. Does nothing without TLS. */
  renew(certificate: Certificate): void {
    if ('setSecureContext' in this.#server) this.#server.setSecureContext(contextOf(certificate));
  }

  listen(host: string, port: number): Promise<number> {
    return listenOn(this.#server, host, port);
  }

  async stop(): Promise<void> {
    this.isStopping = true;
    const closed = new Promise<void>((resolve) => this.#server.close(() => resolve()));
    this.#handshakes.destroy();
    for (const connection of this.#connections.values()) connection.stop();
    await closed;
  }

  async destroy(): Promise<void> {
    const closed = this.stop();
    this.#server.closeAllConnections();
    await closed;
  }

  #admit(socket: Socket, carrier = socket): void {
    const connection = new NodeConnection(socket, this, carrier);
    this.#connections.set(socket, connection);
    this.#open.add(connection);
    socket.on('close', () => {
      this.#connections.delete(socket);
      this.#open.remove(connection);
    });
  }

  #take(request: IncomingMessage, response: ServerResponse): void {
    const connection = this.#connections.get(request.socket)!;
    connection.answerInTurn(response, () =>
      this.#handler(new NodeRequest(request), new NodeResponse(request, response, connection)),
    );
  }

  /** Answers a request that Node can't parse, then closes the connection; only closes it if an answer is under way or the head was late. */
  #refuse(error: NodeJS.ErrnoException, socket: Socket): void {
    const connection = this.#connections.get(socket);
    if (connection === undefined) {
      this.#refuseHandshake(error, socket);
      return;
    }
    // An earlier request on the connection was refused, and that answer is being sent. Whatever follows is ignored.
    if (connection.isClosing === true) return;
    const isAnswering = connection.isAnswering === true;
    const isGone = error.code === 'ECONNRESET' || error.code === 'EPIPE' || !socket.writable;
    if (isGone || isAnswering || error.code === 'ERR_HTTP_REQUEST_TIMEOUT') socket.destroy();
    else closeAfterReading(socket, rawProblem(problemOfParser(error)));
  }

  /** Closes a connection whose TLS handshake has failed. A client that speaks HTTP without TLS is told so. */
  #refuseHandshake(error: NodeJS.ErrnoException, socket: Socket): void {
    const carrier = this.#handshakes.carrierOf(socket);
    if (error.code === 'ERR_SSL_HTTP_REQUEST' && carrier?.writable === true)
      closeAfterReading(carrier, rawProblem(expectsTls));
    else socket.destroy();
  }
}

/** What a client is told that sends HTTP to a port that expects TLS. It can read that, as its request is not encrypted. */
const expectsTls = new ProblemError(400, 'this port expects TLS: begin the address with https://');

function problemOfParser(error: NodeJS.ErrnoException): ProblemError {
  if (error.code === 'HPE_HEADER_OVERFLOW')
    return new ProblemError(
      431,
      `the request line and the headers together are longer than ${headBytesMax} bytes`,
    );
  // The reason that Node's parser gives.
  const { reason } = error as { readonly reason?: unknown };
  const met = typeof reason === 'string' ? `: ${reason}` : '';
  return new ProblemError(400, `this is not an HTTP/1.1 request${met}`);
}

/** The bytes of a complete response for a connection on which Node can't parse HTTP any more. It has `Connection: close`. */
function rawProblem(problem: ProblemError): Buffer {
  const body = Buffer.from(problemBody(problem));
  const lines = [`HTTP/1.1 ${problem.status} ${reasonPhrase(problem.status)}`];
  for (const [name, value] of Object.entries(problem.headers)) lines.push(`${name}: ${value}`);
  lines.push(
    'Content-Type: application/problem+json',
    `Content-Length: ${body.length}`,
    'Cache-Control: no-store',
    'X-Content-Type-Options: nosniff',
    `Date: ${new Date().toUTCString()}`,
    'Connection: close',
  );
  const head = Buffer.from(`${lines.join('\r\n')}\r\n\r\n`, 'latin1');
  return Buffer.concat([head, body]);
}

/**
 * Ends our side of a connection after everything that was written to it, with `words` last. Bytes that the client still sends are read and
 * dropped for a while: closing a socket with unread bytes resets it, and the client would lose the answer that says what was wrong.
 */
function closeAfterReading(socket: Socket, words?: Buffer): void {
  let timer: NodeJS.Timeout | undefined;
  // The time counts from the moment at which the operating system has everything. Until then the client may be slow.
  socket.on('finish', () => (timer = setTimeout(() => socket.destroy(), farewellMs)));
  socket.on('close', () => clearTimeout(timer));
  socket.on('end', () => socket.destroy());
  socket.resume();
  if (words === undefined) socket.end();
  else socket.end(words);
}
