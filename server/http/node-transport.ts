import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { createServer as createTlsServer, type Server as TlsServer } from 'node:https';
import type { Socket } from 'node:net';
import type { SecureContextOptions } from 'node:tls';
import { tlsVersionMin, type Certificate } from './certificate.js';
import { connectionsMax, headBytesMax, headTimeoutMs, idleTimeoutMs } from './http-limits.js';
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
  // The route says what is wrong with it.
  requireHostHeader: false,
  headersTimeout: headTimeoutMs,
  requestTimeout: headTimeoutMs,
  keepAliveTimeout: idleTimeoutMs,
  connectionsCheckingInterval: 1000,
  noDelay: true,
};

/** As Node has it without TLS, the first one. */
const tlsOptions = { allowHalfOpen: true, handshakeTimeout: headTimeoutMs };

function contextOf({ cert, key }: Certificate): SecureContextOptions {
  return { cert, key, minVersion: tlsVersionMin };
}

/** The route on node:http, or node:https. */
export class NodeTransport implements Transport, NodeTransportState {
  readonly name = 'node';
  isStopping = false;
  readonly clientTimeoutMs: number;
  readonly #handler: RequestHandler;
  readonly #server: Server | TlsServer;
  readonly #connections = new Map<Socket, NodeConnection>();
  readonly #open = new OpenConnections<OpenConnection>(connectionsMax);
  readonly #handshakes = new Handshakes(this.#open);

  /** @param certificate has it answer over TLS */
  constructor(handler: RequestHandler, clientTimeoutMs: number, certificate?: Certificate) {
    this.#handler = handler;
    this.clientTimeoutMs = clientTimeoutMs;
    const take = (request: IncomingMessage, response: ServerResponse): void => this.#take(request, response);
    this.#server =
      certificate === undefined
        ? createServer(serverOptions, take)
        : createTlsServer({ ...serverOptions, ...tlsOptions, ...contextOf(certificate) }, take);
    // Else Node ends its side when the client ends its own, in the middle of an answer. Its types and pages leave this out.
    Object.assign(this.#server, { httpAllowHalfOpen: true });
    // Node drops headers beyond its count without a word; how long all of them may be is bounded.
    this.#server.maxHeadersCount = 0;
    if (certificate === undefined) {
      this.#server.on('connection', (socket: Socket) => this.#admit(socket));
    } else {
      this.#server.on('connection', (carrier: Socket) => this.#handshakes.begin(carrier));
      this.#server.on('secureConnection', (socket: Socket) =>
        this.#admit(socket, this.#handshakes.end(socket)),
      );
    }
    // Node would ask for the body that is going to be refused.
    this.#server.on('checkContinue', take);
    this.#server.on('clientError', (error, socket) => this.#refuse(error, socket as Socket));
  }

  /** New connections get this certificate. Those that are open go on. Only where it answers over TLS. */
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

  /** Answers what Node can't read. An answer under way on the connection can't be followed by another any more. */
  #refuse(error: NodeJS.ErrnoException, socket: Socket): void {
    const connection = this.#connections.get(socket);
    // It has not come as far as to speak HTTP over TLS.
    if (connection === undefined) {
      socket.destroy();
      return;
    }
    // What comes behind a request that is refused is for nobody, and the refusal is on its way.
    if (connection.isClosing === true) return;
    const isAnswering = connection.isAnswering === true;
    const isGone = error.code === 'ECONNRESET' || error.code === 'EPIPE' || !socket.writable;
    if (isGone || isAnswering || error.code === 'ERR_HTTP_REQUEST_TIMEOUT') socket.destroy();
    else closeAfterReading(socket, rawProblem(problemOfParser(error)));
  }
}

function problemOfParser(error: NodeJS.ErrnoException): ProblemError {
  if (error.code === 'HPE_HEADER_OVERFLOW')
    return new ProblemError(
      431,
      `the request line and the headers together are longer than ${headBytesMax} bytes`,
    );
  // Node's parser says what it met.
  const { reason } = error as { readonly reason?: unknown };
  const met = typeof reason === 'string' ? `: ${reason}` : '';
  return new ProblemError(400, `this is not an HTTP/1.1 request${met}`);
}
