import { createServer } from 'node:http';
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { connectionsMax, headBytesMax, headTimeoutMs, idleTimeoutMs } from './http-limits.js';
import { listenOn } from './listen.js';
import { NodeConnection } from './node-connection.js';
import type { NodeTransportState } from './node-connection.js';
import { NodeRequest } from './node-request.js';
import { NodeResponse } from './node-response.js';
import { OpenConnections } from './open-connections.js';
import { ProblemError } from './problem.js';
import { closeAfterReading, rawProblem } from './raw-response.js';
import type { RequestHandler, Transport } from './transport.js';

/** The route on node:http. */
export class NodeTransport implements Transport, NodeTransportState {
  readonly name = 'node';
  isStopping = false;
  readonly clientTimeoutMs: number;
  readonly #handler: RequestHandler;
  readonly #server: Server;
  readonly #connections = new Map<Socket, NodeConnection>();
  readonly #open = new OpenConnections<NodeConnection>(connectionsMax);

  constructor(handler: RequestHandler, clientTimeoutMs: number) {
    this.#handler = handler;
    this.clientTimeoutMs = clientTimeoutMs;
    this.#server = createServer(
      {
        maxHeaderSize: headBytesMax,
        // The route says what is wrong with it.
        requireHostHeader: false,
        headersTimeout: headTimeoutMs,
        requestTimeout: headTimeoutMs,
        keepAliveTimeout: idleTimeoutMs,
        connectionsCheckingInterval: 1000,
        noDelay: true,
      },
      (request, response) => this.#take(request, response),
    );
    // Else Node ends its side when the client ends its own, in the middle of an answer. Its types and pages leave this out.
    Object.assign(this.#server, { httpAllowHalfOpen: true });
    // Node drops headers beyond its count without a word; how long all of them may be is bounded.
    this.#server.maxHeadersCount = 0;
    this.#server.on('connection', (socket: Socket) => {
      const connection = new NodeConnection(socket, this);
      this.#connections.set(socket, connection);
      this.#open.add(connection);
      socket.on('close', () => {
        this.#connections.delete(socket);
        this.#open.remove(connection);
      });
    });
    // Node would ask for the body that is going to be refused.
    this.#server.on('checkContinue', (request: IncomingMessage, response: ServerResponse) =>
      this.#take(request, response),
    );
    this.#server.on('clientError', (error, socket) => this.#refuse(error, socket as Socket));
  }

  listen(host: string, port: number): Promise<number> {
    return listenOn(this.#server, host, port);
  }

  async stop(): Promise<void> {
    this.isStopping = true;
    const closed = new Promise<void>((resolve) => this.#server.close(() => resolve()));
    for (const connection of this.#connections.values()) connection.stop();
    await closed;
  }

  async destroy(): Promise<void> {
    const closed = this.stop();
    this.#server.closeAllConnections();
    await closed;
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
    // What comes behind a request that is refused is for nobody, and the refusal is on its way.
    if (connection?.isClosing === true) return;
    const isAnswering = connection?.isAnswering === true;
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
