import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { halfClosedTimeoutMs, pipelinedRequestsMax } from './http-limits.js';
import type { OpenConnection } from './open-connections.js';

/** What a connection needs of its transport. */
export interface NodeTransportState {
  readonly isStopping: boolean;
  /** A client that takes nothing of its answer for this long is gone. */
  readonly clientTimeoutMs: number;
}

/** One client's connection: its requests are answered one after another. */
export class NodeConnection implements OpenConnection {
  /** Of the other end. */
  readonly address: string;
  readonly transport: NodeTransportState;
  /** It is closed after the answer under way: no further request of it is answered. */
  isClosing = false;
  readonly #socket: Socket;
  /** What the bytes go over: the socket itself, or the one that TLS works on. */
  readonly #carrier: Socket;
  /** The answer to the request that came last. */
  #last: ServerResponse | undefined;
  #waiting = 0;

  constructor(socket: Socket, transport: NodeTransportState, carrier = socket) {
    this.#socket = socket;
    this.#carrier = carrier;
    this.transport = transport;
    this.address = socket.remoteAddress ?? '';
    socket.on('end', () => this.#watchHalfClosed());
  }

  /** An answer is under way, or waits for the one before it. */
  get isAnswering(): boolean {
    return this.#last?.writableFinished === false;
  }

  /**
   * Node hands over pipelined requests all at once; here one begins when the one before has ended, so that a connection
   * takes one query's slot. Beyond a bound the socket is not read.
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
    if (this.#waiting >= pipelinedRequestsMax) this.#socket.pause();
    before.on('close', () => {
      this.#waiting--;
      if (this.#waiting < pipelinedRequestsMax) this.#socket.resume();
      if (!this.#socket.destroyed && !this.isClosing) begin();
    });
  }

  destroy(): void {
    this.#socket.destroy();
  }

  /** Ends it so that the client can't take what it has for the whole. TLS has no way of its own for that. */
  reset(): void {
    if (!this.#carrier.destroyed) this.#carrier.resetAndDestroy();
  }

  /** Closes a connection that waits for a request, and another one behind its answer. */
  stop(): void {
    if (this.isAnswering) this.#last!.on('close', () => this.#closeUnlessAnswering());
    else this.#socket.destroySoon();
  }

  /**
   * A client that has closed its side may still read, or may have gone. Writing to one that has gone resets the connection. One to which
   * nothing was written for a while is taken to have gone.
   */
  #watchHalfClosed(): void {
    const socket = this.#socket;
    let writtenBytes = socket.bytesWritten;
    const timer = setInterval(() => {
      if (socket.writableLength === 0 && socket.bytesWritten === writtenBytes) socket.destroy();
      writtenBytes = socket.bytesWritten;
    }, halfClosedTimeoutMs);
    socket.on('close', () => clearInterval(timer));
  }

  /** Closes a moment later: a request that has arrived by then is still answered, with 503. */
  #closeUnlessAnswering(): void {
    setImmediate(() => {
      if (!this.isAnswering) this.#socket.destroySoon();
    });
  }
}
