import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { halfClosedTimeoutMs, pipelinedRequestsMax } from './http-limits.js';
import type { OpenConnection } from './open-connections.js';

/** What a connection needs of its transport. */
export interface NodeDoor {
  readonly isStopping: boolean;
  /** A client that takes nothing of its answer for this long is gone. */
  readonly clientTimeoutMs: number;
}

/** One client's connection: its requests are answered one after another. */
export class NodeConnection implements OpenConnection {
  /** Of the other end. */
  readonly address: string;
  readonly door: NodeDoor;
  /** It is closed behind the answer under way: no further request of it is answered. */
  isClosing = false;
  readonly #socket: Socket;
  /** The answer to the request that came last. */
  #last: ServerResponse | undefined;
  #waiting = 0;

  constructor(socket: Socket, door: NodeDoor) {
    this.#socket = socket;
    this.door = door;
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

  /** Closes a connection that waits for a request, and another one behind its answer. */
  stop(): void {
    if (this.isAnswering) this.#last!.on('close', () => this.#closeUnlessAnswering());
    else this.#socket.destroySoon();
  }

  /**
   * A client that has closed its side may be one that only sends no more, or may have gone. What is written to one that has gone comes
   * back as a reset; so it is taken for gone when there is nothing to write to it for a while.
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

  /** A request that was there when the answer ended is still told that the server stops. */
  #closeUnlessAnswering(): void {
    setImmediate(() => {
      if (!this.isAnswering) this.#socket.destroySoon();
    });
  }
}
