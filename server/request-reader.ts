import { keptHeadBytesMax, pipelinedBytesMax } from './http-limits.js';
import { ProblemError } from './problem.js';
import { checkHead, parseHeaderLines, readHeaders, takeHead } from './request-head.js';
import type { CheckedHead, Headers } from './request-head.js';

/** One request of a connection: checked, or refused with a problem that closes the connection. */
export interface ReadRequest {
  readonly request: CheckedHead | ProblemError;
  /** The method is HEAD: the answer has no body. */
  readonly isHead: boolean;
}

const nothing: Buffer = Buffer.alloc(0);

/** Takes the bytes that a client sends apart into requests, which are asked for one at a time. */
export class RequestReader {
  readonly #methods: readonly string[];
  /** What has come and belongs to no request that was given. */
  #pending = nothing;
  #isOver = false;
  /** The headers of the last request: clients send the same ones again and again. */
  #headers: Headers | undefined;
  #headersText = '';
  /** What came last in one piece, and the request that it was: who polls sends the same bytes every time. */
  #lastBytes: Buffer = nothing;
  #last: ReadRequest | undefined;

  constructor(methods: readonly string[]) {
    this.#methods = methods;
  }

  /** Bytes wait: a head has begun, or requests wait behind the one that is being answered. */
  get hasBegun(): boolean {
    return this.#pending.length > 0;
  }

  /** More waits than a client may send ahead: its socket is not to be read until a request was taken. */
  get isFull(): boolean {
    return this.#pending.length > pipelinedBytesMax;
  }

  push(chunk: Buffer): void {
    if (this.#isOver) return;
    this.#pending = this.#pending.length === 0 ? chunk : Buffer.concat([this.#pending, chunk]);
  }

  /** The next request; undefined when its head is not complete. Behind one that is refused there is none. */
  next(): ReadRequest | undefined {
    const pending = this.#pending;
    if (pending.length === 0) return undefined;
    if (this.#last !== undefined && pending.equals(this.#lastBytes)) {
      this.#pending = nothing;
      return this.#last;
    }
    let isHead = false;
    try {
      const taken = takeHead(pending);
      if (taken === undefined) return undefined;
      isHead = taken.line.method === 'HEAD';
      const isAlone = taken.length === pending.length;
      this.#pending = isAlone ? nothing : pending.subarray(taken.length);
      const read = { request: checkHead(taken.line, this.#headersOf(taken.headers), this.#methods), isHead };
      if (isAlone && pending.length <= keptHeadBytesMax) {
        this.#lastBytes = pending;
        this.#last = read;
      }
      return read;
    } catch (error) {
      if (!(error instanceof ProblemError)) throw error;
      this.#isOver = true;
      this.#pending = nothing;
      return { request: error, isHead };
    }
  }

  #headersOf(text: string): Headers {
    if (this.#headers === undefined || text !== this.#headersText) {
      this.#headers = readHeaders(parseHeaderLines(text));
      this.#headersText = text;
    }
    return this.#headers;
  }
}
