import type { IncomingMessage, ServerResponse } from 'node:http';
import { assert } from '../../engine/index.js';
import { clientGoneError } from './client-gone.js';
import { farewellMs } from './http-limits.js';
import type { NodeConnection } from './node-connection.js';
import type { ResponseHead, TransportResponse } from './transport.js';

const ignore = (): void => undefined;
const done = Promise.resolve();

/** One answer on node:http. Bodies are handed to the operating system without a copy. */
export class NodeResponse implements TransportResponse {
  readonly #request: IncomingMessage;
  readonly #response: ServerResponse;
  readonly #connection: NodeConnection;
  #isWatched = false;
  #whenGone: (() => void) | undefined;
  /** Number of pieces for which Node has not confirmed that the operating system has taken them. */
  #unconfirmed = 0;
  /** The caller of `write` that waits until all pieces are confirmed. */
  #waiter: { readonly resolve: () => void; readonly reject: (error: Error) => void } | undefined;

  constructor(request: IncomingMessage, response: ServerResponse, connection: NodeConnection) {
    this.#request = request;
    this.#response = response;
    this.#connection = connection;
    // Without a listener a failed write would end the process; `close` follows in any case.
    response.on('error', ignore);
  }

  get isWaiting(): boolean {
    return this.#waiter !== undefined;
  }

  get isGone(): boolean {
    return this.#request.socket.destroyed && !this.#response.writableFinished;
  }

  whenGone(call: () => void): void {
    this.#whenGone = call;
    if (this.isGone) call();
    else this.#watch();
  }

  send(head: ResponseHead, body: Uint8Array | null): Promise<void> {
    if (this.isGone) return done;
    const response = this.#response;
    assert(!response.headersSent, 'a response is sent once');
    this.#writeHead(head, body?.length);
    const sent = this.#request.method === 'HEAD' ? null : body;
    if (head.closes === true && !this.#request.complete) this.#endBehindRequest(sent);
    else if (sent === null) response.end();
    else response.end(sent);
    if (response.writableFinished) return done;
    this.#limitWait();
    return new Promise((resolve) => response.on('close', resolve));
  }

  write(head: ResponseHead, piece: Uint8Array): Promise<void> {
    if (this.isGone) return Promise.reject(clientGoneError());
    const { socket } = this.#request;
    socket.cork();
    if (!this.#response.headersSent) this.#writeHead(head, undefined);
    this.#unconfirmed++;
    this.#response.write(piece, () => this.#confirm());
    socket.uncork();
    // The operating system has taken all of it.
    if (socket.writableLength === 0) return done;
    this.#watch();
    this.#limitWait();
    return new Promise((resolve, reject) => (this.#waiter = { resolve, reject }));
  }

  end(): void {
    if (this.isGone) return;
    this.#response.end();
    if (!this.#response.writableFinished) this.#limitWait();
  }

  break(): void {
    this.#connection.reset();
  }

  #confirm(): void {
    this.#unconfirmed--;
    if (this.#unconfirmed > 0 || this.#waiter === undefined) return;
    // The client has taken everything. Now it may wait for the server, so its silence no longer counts.
    this.#request.socket.setTimeout(0);
    this.#waiter.resolve();
    this.#waiter = undefined;
  }

  /** Has Node end the connection if the client takes nothing for `clientTimeoutMs`. After the answer Node's own limits apply again. */
  #limitWait(): void {
    this.#request.socket.setTimeout(this.#connection.transport.clientTimeoutMs);
  }

  #watch(): void {
    if (this.#isWatched) return;
    this.#isWatched = true;
    this.#response.on('close', () => {
      if (!this.isGone) return;
      this.#waiter?.reject(clientGoneError());
      this.#whenGone?.();
    });
  }

  #writeHead(head: ResponseHead, length: number | undefined): void {
    const lines = [...linesOf(head.headers)];
    if (head.timing !== undefined) lines.push('Server-Timing', head.timing);
    if (length !== undefined) lines.push('Content-Length', String(length));
    if (head.closes === true || this.#connection.transport.isStopping) {
      this.#connection.isClosing = true;
      lines.push('Connection', 'close');
    }
    this.#response.writeHead(head.status, lines);
  }

  /**
   * Ends the response only after the request's body has been read and dropped, for a limited time. Node closes the socket when the response
   * ends, and unread bytes would reset the connection before the client has read the answer.
   */
  #endBehindRequest(body: Uint8Array | null): void {
    const request = this.#request;
    if (body !== null) this.#response.write(body);
    const end = (): void => {
      clearTimeout(timer);
      this.#response.end();
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
