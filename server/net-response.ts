import { assert } from '../engine/assert.js';
import { clientGone } from './client-gone.js';
import type { NetConnection } from './net-connection.js';
import type { ResponseHead, TransportResponse } from './transport.js';

const lineEnd = Buffer.from('\r\n');
const lastChunk = Buffer.from('0\r\n\r\n');

/** One answer of a connection on node:net. Bodies are handed to the kernel from where they lie. */
export class NetResponse implements TransportResponse {
  readonly #connection: NetConnection;
  readonly #isHead: boolean;
  #closes: boolean;
  #isBegun = false;
  #isEnded = false;
  #isGone = false;
  #whenGone: (() => void) | undefined;
  #waiter: { readonly resolve: () => void; readonly reject: (error: Error) => void } | undefined;

  constructor(connection: NetConnection, isHead: boolean, closes: boolean) {
    this.#connection = connection;
    this.#isHead = isHead;
    this.#closes = closes;
  }

  get isGone(): boolean {
    return this.#isGone;
  }

  whenGone(call: () => void): void {
    this.#whenGone = call;
    if (this.#isGone) call();
  }

  send(head: ResponseHead, body: Uint8Array | null): Promise<void> | undefined {
    if (this.#isGone) return undefined;
    assert(!this.#isBegun, 'a response is sent once');
    const { socket } = this.#connection;
    const text = this.#headText(head, body === null ? '' : `Content-Length: ${body.length}\r\n`);
    if (body === null || body.length === 0 || this.#isHead) {
      socket.write(text, 'latin1');
    } else {
      socket.cork();
      socket.write(Buffer.from(text, 'latin1'));
      socket.write(body);
      socket.uncork();
    }
    if (socket.writableLength === 0) {
      this.#finish();
      return undefined;
    }
    return this.#finishLater();
  }

  /** Ends an answer of which the kernel has not taken everything yet. */
  async #finishLater(): Promise<void> {
    try {
      await this.#drained();
      this.#finish();
    } catch {
      // The client is gone, and with it whoever would have to be told.
    }
  }

  #drained(): Promise<void> {
    this.#connection.awaitDrain();
    return new Promise((resolve, reject) => (this.#waiter = { resolve, reject }));
  }

  async write(head: ResponseHead, piece: Uint8Array): Promise<void> {
    if (this.#isGone) throw clientGone();
    const { socket } = this.#connection;
    const size = `${piece.length.toString(16)}\r\n`;
    const text = this.#isBegun ? size : `${this.#headText(head, 'Transfer-Encoding: chunked\r\n')}${size}`;
    socket.cork();
    socket.write(Buffer.from(text, 'latin1'));
    socket.write(piece);
    socket.write(lineEnd);
    socket.uncork();
    if (socket.writableLength === 0) return;
    await this.#drained();
  }

  end(): void {
    if (this.#isGone) return;
    this.#connection.socket.write(lastChunk);
    this.#finish();
  }

  break(): void {
    if (!this.#isEnded) this.#connection.socket.resetAndDestroy();
  }

  /** The kernel has taken what `write` gave it. */
  goOn(): void {
    this.#waiter?.resolve();
    this.#waiter = undefined;
  }

  /** The connection has been closed before the answer has ended. */
  leave(): void {
    this.#isGone = true;
    this.#isEnded = true;
    this.#waiter?.reject(clientGone());
    this.#waiter = undefined;
    this.#whenGone?.();
  }

  #headText(head: ResponseHead, framing: string): string {
    const { door } = this.#connection;
    this.#isBegun = true;
    this.#closes ||= head.closes === true || door.isStopping;
    const timing = head.timing === undefined ? '' : `Server-Timing: ${head.timing}\r\n`;
    const text = `${door.heads.startOf(head)}${timing}${framing}`;
    return this.#closes ? `${text}Connection: close\r\n\r\n` : `${text}\r\n`;
  }

  #finish(): void {
    this.#isEnded = true;
    if (this.#connection.socket.writableLength > 0) this.#connection.awaitDrain();
    this.#connection.finishAnswer(this.#closes);
  }
}
