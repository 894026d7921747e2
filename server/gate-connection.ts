import { connect } from 'node:net';
import type { Socket } from 'node:net';
import { clientGone } from './client-gone.js';
import { headTimeoutMs, idleTimeoutMs, socketWriteBytesMax, stallTimeoutMs } from './http-limits.js';
import { ProblemError } from './problem.js';
import { closeGently } from './raw-response.js';
import { RequestReader } from './request-reader.js';
import type { ReadRequest } from './request-reader.js';

/** A request that uWebSockets.js is to answer: checked, or refused with a problem that closes the connection. */
export interface Exchange extends ReadRequest {
  readonly connection: GateConnection;
}

/** What a connection needs of its gate. */
export interface GateDoor {
  /** Unix socket that uWebSockets.js listens on. */
  readonly socketPath: string;
  readonly methods: readonly string[];
  readonly isStopping: boolean;
  /** Registers a request; returns the number under which uWebSockets.js will ask for it. */
  open(exchange: Exchange): number;
  forget(exchange: number): void;
}

/**
 * One client's connection. Reads its requests, one at a time, and relays the bytes of the answers in bounded memory: one
 * buffer, which is read into only when the client's kernel has taken what was in it.
 */
export class GateConnection {
  readonly #client: Socket;
  readonly #door: GateDoor;
  #inner: Socket | undefined;
  readonly #reader: RequestReader;
  /** Number of the request that is being answered. */
  #exchange: number | undefined;
  /** The client's kernel has not taken the relay's buffer yet, which holds so many bytes. */
  #isDraining = false;
  #drainingBytes = 0;
  #isClosing = false;
  /** An answer has been handed over whole, and its bytes are on their way to the client. */
  #isSettling = false;
  #headTimer: NodeJS.Timeout | undefined;
  /** Bytes that the answer under way has been given, and those that the client's kernel has taken. */
  #givenBytes = 0;
  #relayedBytes = 0;
  #waiter: { readonly resolve: () => void; readonly reject: (error: Error) => void } | undefined;

  constructor(client: Socket, door: GateDoor) {
    this.#client = client;
    this.#door = door;
    this.#reader = new RequestReader(door.methods);
    client.setNoDelay(true);
    client.on('data', (chunk: Buffer) => this.#onData(chunk));
    // A client that has closed its side is gone, as for node:http: what is under way for it is cancelled.
    client.on('end', () => client.destroy());
    client.on('error', () => client.destroy());
    client.on('close', () => this.#onClose());
    client.on('drain', () => this.#onDrain());
    client.on('timeout', () => this.#onTimeout());
    this.#rearm();
  }

  /** Counts the bytes of an answer from here on. */
  beginAnswer(): void {
    this.#givenBytes = this.#relayedBytes;
  }

  /** Notes `bytes` more of the answer, without a wait. */
  note(bytes: number): void {
    this.#givenBytes += bytes;
  }

  /** Notes `bytes` more of the answer, and resolves when there is room for the next. Rejects `cancelled` when the client is gone. */
  async give(bytes: number): Promise<void> {
    this.#givenBytes += bytes;
    if (this.#client.destroyed) throw clientGone();
    if (this.#hasRoom()) return;
    await new Promise<void>((resolve, reject) => {
      this.#waiter = { resolve, reject };
    });
  }

  /** The answer has been handed over whole. With `closes`, both connections are closed once it has passed through. */
  finishAnswer(closes: boolean): void {
    this.#endExchange();
    this.#isSettling = true;
    if (closes) this.#closeBehind();
    else this.#settle();
  }

  /** The next request is taken when the client's kernel has the answer before it: what a client does not read must not pile up. */
  #settle(): void {
    if (!this.#isSettling || this.#isClosing || this.#relayedBytes < this.#givenBytes) return;
    this.#isSettling = false;
    this.#advance();
    // When the server stops, a request that is there already was still told so; then the connection closes.
    if (this.#door.isStopping && this.#exchange === undefined) this.#closeBehind();
    else this.#rearm();
  }

  /** uWebSockets.js closes in its turn, and we learn of that behind the last byte of the answer. */
  #closeBehind(): void {
    this.#isClosing = true;
    this.#inner?.end();
  }

  /** Resets the connection, so that what was sent can't be taken for the whole. */
  break(): void {
    this.#client.resetAndDestroy();
  }

  /** Closes a connection that waits for a request. One that is answering closes behind the answer. */
  stop(): void {
    const isWaiting = this.#exchange === undefined && !this.#isSettling;
    if (isWaiting && !this.#isDraining && !this.#isClosing) this.#client.end();
  }

  destroy(): void {
    this.#client.destroy();
  }

  #onData(chunk: Buffer): void {
    if (this.#isClosing) return;
    this.#reader.push(chunk);
    if (this.#exchange === undefined && !this.#isSettling) this.#advance();
    // While an answer is under way we keep reading, to learn when the client goes away, but not without bound.
    else if (this.#reader.isFull) this.#client.pause();
  }

  /** Takes the next request, if it is there. */
  #advance(): void {
    this.#client.resume();
    if (this.#client.destroyed || this.#isClosing) return;
    const next = this.#reader.next();
    if (next === undefined) {
      this.#awaitHead();
      return;
    }
    this.#endHeadTimer();
    if (next.request instanceof ProblemError) this.#isClosing = true;
    // A problem goes through uWebSockets.js too: an earlier answer may still be on its way, and must stay the earlier one.
    this.#forward(next);
  }

  #awaitHead(): void {
    if (!this.#reader.hasBegun) this.#endHeadTimer();
    else this.#headTimer ??= setTimeout(() => this.#client.destroy(), headTimeoutMs);
  }

  #endHeadTimer(): void {
    clearTimeout(this.#headTimer);
    this.#headTimer = undefined;
  }

  /** uWebSockets.js gets the number of the request alone: its own parser keeps silent about, or cuts, what the gate must answer. */
  #forward(next: ReadRequest): void {
    this.#exchange = this.#door.open({ ...next, connection: this });
    this.#rearm();
    this.#inner ??= this.#connectInner();
    const method = next.isHead ? 'HEAD' : 'GET';
    this.#inner.write(`${method} /${this.#exchange} HTTP/1.1\r\nHost: gate\r\n\r\n`, 'latin1');
  }

  #connectInner(): Socket {
    const inner = connect({
      path: this.#door.socketPath,
      onread: {
        buffer: Buffer.allocUnsafeSlow(socketWriteBytesMax),
        callback: (bytes, buffer) => this.#relay(buffer.subarray(0, bytes)),
      },
    });
    inner.on('end', () => closeGently(this.#client));
    inner.on('error', () => this.#client.destroy());
    return inner;
  }

  /** False stops the reading until the client's kernel has taken these bytes, for the buffer is only one. */
  #relay(bytes: Uint8Array): boolean {
    if (this.#client.destroyed) return true;
    this.#client.write(bytes);
    if (this.#client.writableLength === 0) {
      this.#noteRelayed(bytes.length);
      return true;
    }
    this.#isDraining = true;
    this.#drainingBytes = bytes.length;
    this.#rearm();
    return false;
  }

  #onDrain(): void {
    if (!this.#isDraining) return;
    this.#isDraining = false;
    this.#noteRelayed(this.#drainingBytes);
    this.#rearm();
    this.#inner?.resume();
  }

  #noteRelayed(bytes: number): void {
    this.#relayedBytes += bytes;
    if (this.#waiter !== undefined && this.#hasRoom()) {
      this.#waiter.resolve();
      this.#waiter = undefined;
    }
    this.#settle();
  }

  #hasRoom(): boolean {
    return this.#givenBytes - this.#relayedBytes <= socketWriteBytesMax;
  }

  /** Time without a byte moved, after which something must be wrong; waiting for the scan is not, however long it takes. */
  #rearm(): void {
    const isAnswering = this.#exchange !== undefined || this.#isDraining;
    this.#client.setTimeout(isAnswering ? stallTimeoutMs : idleTimeoutMs);
  }

  #onTimeout(): void {
    if (this.#exchange !== undefined && !this.#isDraining) this.#rearm();
    else this.#client.destroy();
  }

  #endExchange(): void {
    if (this.#exchange !== undefined) this.#door.forget(this.#exchange);
    this.#exchange = undefined;
  }

  #onClose(): void {
    this.#endHeadTimer();
    this.#endExchange();
    this.#inner?.destroy();
    this.#waiter?.reject(clientGone());
    this.#waiter = undefined;
  }
}
