import type { Certificate } from './certificate.js';
import { LogstrataError } from '../../engine/index.js';

/**
 * The interface between the route and an HTTP server. One test suite runs on all implementations.
 *
 * A transport itself refuses requests that its library can't parse. The requests that it hands on are only known to be well-formed: the
 * route checks the version, the method and the rest of the head (`request-check.ts`).
 */
export interface Transport {
  readonly name: TransportName;
  /** Begins to accept connections, and returns the port. Throws `invalid` for a busy port or an address that this machine does not have. */
  listen(host: string, port: number): Promise<number>;
  /** Uses this certificate for new connections. Undefined for a transport without TLS. */
  renew?(certificate: Certificate): void;
  /** Accepts no more connections, and closes each open one after its answer. Resolves when all are closed. */
  stop(): Promise<void>;
  /** Breaks connections that are still open, and frees all resources. */
  destroy(): Promise<void>;
}

/** `uws`: uWebSockets.js. `node`: node:http. */
export type TransportName = 'uws' | 'node';

/** A request. It must be read before the handler returns, because the library may reuse its memory for the next one. */
export interface TransportRequest {
  readonly method: string;
  /** `1.1`, `1.0`, … */
  readonly version: string;
  /** The request target up to the first `?`, as it was sent (percent-encoded). */
  readonly rawPath: string;
  /** The request target after the first `?`, as it was sent (percent-encoded); empty without one. */
  readonly rawQuery: string;
  /** Address of the other end of the connection, which may be a proxy: `192.0.2.1`, `2001:db8::1`. Empty if the connection has closed. */
  readonly remoteAddress: string;
  /** Value of a header, by its lowercase name. Several lines of one header are joined by `, `. */
  header(name: string): string | undefined;
}

/** Status and headers of a response. */
export interface ResponseHead {
  readonly status: number;
  /** Equal headers should be the same object, because transports cache what they make of it. */
  readonly headers: Readonly<Record<string, string>>;
  /** Value of `Server-Timing`. It is kept apart because it differs from answer to answer. */
  readonly timing?: string | undefined;
  /** Whether the connection is closed after this response. */
  readonly closes?: boolean | undefined;
}

/** Answers one request: either `send`, or `write` any number of times and then `end`, or `break`. */
export interface TransportResponse {
  /** Whether the last `write` waits for the client. */
  readonly isWaiting: boolean;
  /** Whether the client has gone away before the response has ended. */
  readonly isGone: boolean;
  /** Calls `call` when the client goes away before the response has ended, at once if it has gone already. Replaces an earlier `call`. */
  whenGone(call: () => void): void;
  /**
   * Sends a complete response with its Content-Length. For `HEAD` only the head is sent. With `null` there is neither a body nor a
   * Content-Length (204, or a `HEAD` for which no body was made). Once the promise has resolved, the bytes of the body have been handed to
   * the operating system or copied, or the client has gone.
   */
  send(head: ResponseHead, body: Uint8Array | null): Promise<void>;
  /**
   * Writes a part of the body, and before the first part the head. Resolves when the bytes have been handed to the operating system or copied
   * and the client keeps pace: no more than this piece waits on our side. Rejects `cancelled` when the client has gone.
   */
  write(head: ResponseHead, piece: Uint8Array): Promise<void>;
  /** Ends a body that `write` began. */
  end(): void;
  /** Breaks the connection, so that the client can't take a part of the answer for the whole. Does nothing if the client has gone. */
  break(): void;
}

export type RequestHandler = (request: TransportRequest, response: TransportResponse) => void;

/** The error that ends work for a client whose connection has closed. */
export function clientGoneError(): LogstrataError {
  return new LogstrataError('cancelled', 'the client has gone away');
}

/** Value of the header `name` (lowercase) in `lines`, a list of alternating names and values. Several values are joined by `, `. */
export function headerOf(lines: readonly string[], name: string): string | undefined {
  let value: string | undefined;
  for (let i = 0; i + 1 < lines.length; i += 2) {
    const sent = lines[i]!;
    if (sent.length !== name.length || (sent !== name && sent.toLowerCase() !== name)) continue;
    value = value === undefined ? lines[i + 1]! : `${value}, ${lines[i + 1]!}`;
  }
  return value;
}
