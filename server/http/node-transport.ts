import { connectionsMax, idleMs } from '../../engine/index.js';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { createServer as createTlsServer, type Server as TlsServer } from 'node:https';
import type { Socket } from 'node:net';
import type { SecureContextOptions } from 'node:tls';
import { tlsVersionMin, type Certificate } from './certificate.js';
import { headBytesMax, headTimeoutMs } from './http-limits.js';
import { listenOn } from './listen.js';
import { NodeConnection } from './node-connection.js';
import type { NodeTransportState } from './node-connection.js';
import { NodeRequest } from './node-request.js';
import { NodeResponse } from './node-response.js';
import { Handshakes } from './handshakes.js';
import { OpenConnections, type OpenConnection } from './open-connections.js';
import { ProblemError } from './problem.js';
import { closeAfterReading, rawProblem } from './raw-response.js';
import type { RequestHandler, Transport } from './transport.js';

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
