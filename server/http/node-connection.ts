import { unansweredMax } from '../../engine/index.js';
import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { farewellMs } from './http-limits.js';
import type { OpenConnection } from './open-connections.js';

/** The state of the transport that its connections read. */
export interface NodeTransportState {
  readonly isStopping: boolean;
  /** A client that takes nothing of its answer for this long is treated as gone. */
  readonly clientTimeoutMs: number;
}

/** One client's connection. Its requests are answered one after another, also if they are pipelined. */
export class NodeConnection implements OpenConnection {
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
