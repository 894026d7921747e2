import { assert, answerBytesMax } from '../../engine/index.js';
import { clientGoneError } from './client-gone.js';
import { uwsBehindWriteBytesMax } from './http-limits.js';
import { reasonPhrase } from './problem.js';
import type { UwsHttpResponse } from './uws-binary.js';
import type { ResponseHead, TransportRequest, TransportResponse } from './transport.js';

/** What a response needs from its transport. */
export interface UwsTransportState {
  readonly isStopping: boolean;
  /** Called when the answer has ended or its client has gone. `isKept` says that uWebSockets.js still holds bytes of the answer. */
  finished(isKept: boolean): void;
}

const done = Promise.resolve();

/** One answer on uWebSockets.js, which copies the bytes of a write that the operating system does not take at once. */
export class UwsResponse implements TransportResponse {
  readonly #response: UwsHttpResponse;
  readonly #transport: UwsTransportState;
  readonly #isHead: boolean;
  /**
   * Whether the client asks for the connection to be closed (`Connection: close`). uWebSockets.js decides that by the length of the value
   * alone, and then closes the connection by itself.
   */
  readonly #isClosedBehind: boolean;
  #isBegun = false;
  #isEnded = false;
  #isGone = false;
  #isWatched = false;
  /** Whether the operating system has not taken everything that was written. */
  #isBehind = false;
  #whenGone: (() => void) | undefined;
  /** Continues a write that waits. Called with the number of bytes of the body taken so far, or undefined when the client has gone. */
  #goOn: ((offset: number | undefined) => void) | undefined;

  constructor(response: UwsHttpResponse, request: TransportRequest, transport: UwsTransportState) {
    this.#response = response;
    this.#transport = transport;
    this.#isHead = request.method === 'HEAD';
    this.#isClosedBehind = request.header('connection')?.length === 'close'.length;
    response.onAborted(() => this.#leave());
  }

  get isWaiting(): boolean {
    return this.#goOn !== undefined;
  }

  get isGone(): boolean {
    return this.#isGone;
  }

  whenGone(call: () => void): void {
    this.#whenGone = call;
    if (this.#isGone) call();
  }

  send(head: ResponseHead, body: Uint8Array | null): Promise<void> {
    if (this.#isEnded) return done;
    assert(!this.#isBegun, 'a response is sent once');
    if (head.closes === true) return this.#refuse(head, body!);
    let isDone = true;
    this.#response.cork(() => {
      this.#writeHead(head);
      if (body === null) this.#response.endWithoutBody();
      else if (this.#isHead) this.#response.endWithoutBody(body.length);
      else [, isDone] = this.#response.tryEnd(body, body.length);
    });
    if (isDone) {
      this.#finish(false);
      return done;
    }
    return this.#sendRest(body!);
  }

  /**
   * Answers and closes the connection. This is done in a later turn of the event loop, because uWebSockets.js, when told to close while it
   * reads, still handles the pipelined requests that it has read.
   */
  #refuse(head: ResponseHead, body: Uint8Array): Promise<void> {
    return new Promise((resolve) => {
      setImmediate(() => {
        resolve();
        if (this.#isEnded) return;
        this.#response.cork(() => {
          this.#writeHead(head);
          if (this.#isHead) this.#response.endWithoutBody(body.length, true);
          else this.#response.end(body, true);
        });
        this.#finish(false);
      });
    });
  }

  /** Sends the rest of a body whenever the operating system can take more. Nothing is copied. */
  #sendRest(body: Uint8Array): Promise<void> {
    return new Promise((resolve) => {
      this.#goOn = (offset) => {
        if (offset === undefined) {
          resolve();
          return;
        }
        const [, isDone] = this.#response.tryEnd(body.subarray(offset), body.length);
        if (!isDone) return;
        this.#goOn = undefined;
        this.#finish(false);
        resolve();
      };
      this.#watch();
    });
  }

  write(head: ResponseHead, piece: Uint8Array): Promise<void> {
    if (this.#isEnded) return Promise.reject(clientGoneError());
    const offset = this.#writeWhile(head, piece, 0);
    return offset === undefined ? done : this.#writeRest(head, piece, offset);
  }

  /** Writes a piece from `offset` for as long as the operating system takes all of it. Returns where it stopped; undefined at the end. */
  #writeWhile(head: ResponseHead, piece: Uint8Array, offset: number): number | undefined {
    for (let at = offset; at < piece.length;) {
      const end = at + (this.#isBehind ? uwsBehindWriteBytesMax : answerBytesMax);
      this.#response.cork(() => {
        if (!this.#isBegun) this.#writeHead(head);
        this.#isBehind = !this.#response.write(piece.subarray(at, end));
      });
      at = end;
      if (this.#isBehind) return at;
    }
    return undefined;
  }

  async #writeRest(head: ResponseHead, piece: Uint8Array, from: number): Promise<void> {
    for (let offset: number | undefined = from; offset !== undefined;) {
      await new Promise<void>((resolve) => {
        this.#goOn = () => resolve();
        this.#watch();
      });
      this.#goOn = undefined;
      if (this.#isEnded) throw clientGoneError();
      offset = this.#writeWhile(head, piece, offset);
    }
  }

  end(): void {
    if (this.#isEnded) return;
    this.#response.cork(() => this.#response.end());
    this.#finish(this.#isBehind);
  }

  /**
   * Breaks the connection in a later turn of the event loop. uWebSockets.js keeps what is written in the turn that reads a request until
   * the end of that turn, and drops it if the connection is closed before. A client that got no byte of an answer may ask again by itself.
   */
  break(): void {
    setImmediate(() => {
      if (!this.#isEnded) this.#response.close();
    });
  }

  #writeHead(head: ResponseHead): void {
    this.#isBegun = true;
    const response = this.#response;
    response.writeStatus(`${head.status} ${reasonPhrase(head.status)}`);
    const { headers } = head;
    for (const name in headers) response.writeHeader(name, headers[name]!);
    // If `closes` is set and the client has not asked to close, uWebSockets.js writes this header by itself.
    if (this.#isClosedBehind || (this.#transport.isStopping && head.closes !== true))
      response.writeHeader('Connection', 'close');
    if (head.timing !== undefined) response.writeHeader('Server-Timing', head.timing);
  }

  #watch(): void {
    if (this.#isWatched) return;
    this.#isWatched = true;
    this.#response.onWritable((offset) => {
      this.#goOn?.(offset);
      return true;
    });
  }

  #leave(): void {
    this.#isGone = true;
    this.#finish(false);
    this.#goOn?.(undefined);
    this.#whenGone?.();
  }

  #finish(isKept: boolean): void {
    if (this.#isEnded) return;
    this.#isEnded = true;
    this.#transport.finished(isKept);
  }
}
