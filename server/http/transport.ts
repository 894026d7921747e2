import type { Certificate } from './certificate.js';

/**
 * The transport port: all that the route asks of an HTTP server. One test suite runs on all implementations.
 *
 * A transport refuses by itself what its library can't read. What it hands on is well-formed, but no more than that: the route checks
 * the version, the method and the rest of the head (`request-check.ts`).
 */
export interface Transport {
  readonly name: TransportName;
  /** Takes connections. Throws `invalid` for a busy port or an address that is not ours, naming it. Returns the port taken. */
  listen(host: string, port: number): Promise<number>;
  /** New connections get this certificate. Not there where a transport has no TLS. */
  renew?(certificate: Certificate): void;
  /** Takes no more connections, and closes each that is open behind its answer. Resolves when all are closed. */
  stop(): Promise<void>;
  /** Breaks what is still open and gives back every resource. */
  destroy(): Promise<void>;
}

/** `uws`: uWebSockets.js. `node`: node:http. */
export type TransportName = 'uws' | 'node';

/** A request. It is to be read before the handler returns: the library may use its memory for the next one. */
export interface TransportRequest {
  readonly method: string;
  /** `1.1`, `1.0`, … */
  readonly version: string;
  /** What was asked for as it was sent, percent-encoded, up to the first `?`. */
  readonly rawPath: string;
  /** What follows the first `?`, percent-encoded; empty without one. */
  readonly rawQuery: string;
  /** Address of the other end of the connection, which may be a proxy's: `192.0.2.1`, `2001:db8::1`. Empty where it has gone. */
  readonly remoteAddress: string;
  /** Value of a header, by its lowercase name; several lines of it are joined by `, `. */
  header(name: string): string | undefined;
}

export interface ResponseHead {
  readonly status: number;
  /** The same headers should be the same object: transports keep what they have made of it. */
  readonly headers: Readonly<Record<string, string>>;
  /** `Server-Timing`, which no two answers have alike. */
  readonly timing?: string | undefined;
  /** The connection is closed behind this response. */
  readonly closes?: boolean | undefined;
}

/** Answers one request: either `send`, or `write` any number of times and then `end`, or `break`. */
export interface TransportResponse {
  /** A response that has begun and sends nothing for longer may be broken off by the transport. */
  readonly silenceMsMax: number;
  /** The client has gone away before the response has ended. */
  readonly isGone: boolean;
  /** Calls `call`, the last one given, when the client goes away before the response has ended; at once where it has. */
  whenGone(call: () => void): void;
  /**
   * A response in one go, with its Content-Length. For `HEAD` only the head is sent; `null` is a response without
   * a Content-Length as well (204, or a `HEAD` whose body is not known). Once it has returned, or what it returns has resolved, the
   * body's bytes have been handed to the kernel or copied, or the client is gone.
   */
  send(head: ResponseHead, body: Uint8Array | null): Promise<void> | undefined;
  /**
   * A part of the body. The head goes with the first. Resolves when the bytes have been handed to the kernel or copied and the
   * client keeps pace: no more than this piece waits on our side. Rejects `cancelled` when the client is gone.
   */
  write(head: ResponseHead, piece: Uint8Array): Promise<void> | undefined;
  /** Ends a body that `write` began. */
  end(): void;
  /** Ends the connection so that the client can't take what it has for the whole. Nothing happens when it is gone. */
  break(): void;
}

export type RequestHandler = (request: TransportRequest, response: TransportResponse) => void;
