import { addAbortSignal, Readable } from 'node:stream';
import type * as ClickHouse from '@clickhouse/client';
import { LogstrataError } from '../core/errors.js';
import { serverRequestsMax, shownCharactersMax } from '../core/limits.js';
import { hasSystemCode } from '../store/disk/directory.js';

/** Credentials for the servers. */
export interface FarLogin {
  readonly user: string;
  readonly password: string;
}

/** One statement for one server. */
export interface FarStatement {
  readonly sql: string;
  /** Id by which the query can be killed. */
  readonly queryId?: string | undefined;
  /** Data to insert. */
  readonly body?: Uint8Array | undefined;
  readonly settings?: Readonly<Record<string, string | number>> | undefined;
  /** Limit on the length of the answer. A longer one is cut off and fails. */
  readonly bytesMax: number;
  readonly timeoutMs: number;
  readonly signal?: AbortSignal | undefined;
}

/** A statement that has failed. */
export class FarFailure extends Error {
  /**
   * @param kind `unreachable`: the server did not answer, or the answer broke off; another replica may answer.
   *   `refused`: the server answered with an error. `long`: the answer exceeds `bytesMax`.
   */
  constructor(
    readonly kind: 'unreachable' | 'refused' | 'long',
    readonly url: string,
    message: string,
    cause?: unknown,
  ) {
    super(message, cause === undefined ? undefined : { cause });
    this.name = 'FarFailure';
  }
}

/** The problem that a check of a server finds, or why the check failed; null for none. */
export async function problemOf(check: () => Promise<string | null>): Promise<string | null> {
  try {
    return await check();
  } catch (error) {
    if (error instanceof FarFailure) return error.message;
    throw error;
  }
}

/** Sends statements to servers. */
export interface FarTransport {
  /** Returns the whole answer. Throws a `FarFailure`, or the reason of the signal. */
  ask(url: string, statement: FarStatement): Promise<Uint8Array>;
  close(): Promise<void>;
}

type Library = typeof ClickHouse;

/** Opens a transport over ClickHouse's own client library, which is loaded here. Throws `unsupported` if it is not installed. */
export async function openFarTransport(login: FarLogin): Promise<FarTransport> {
  try {
    return new ClickHouseTransport(await import('@clickhouse/client'), login);
  } catch (error) {
    if (!hasSystemCode(error, 'ERR_MODULE_NOT_FOUND')) throw error;
    const message =
      'the far tier (storage.far) needs the package @clickhouse/client, which is not installed: npm install @clickhouse/client';
    throw new LogstrataError('unsupported', message, { cause: error });
  }
}

class ClickHouseTransport implements FarTransport {
  readonly #clients = new Map<string, ClickHouse.ClickHouseClient>();

  constructor(
    private readonly library: Library,
    private readonly login: FarLogin,
  ) {}

  async ask(url: string, statement: FarStatement): Promise<Uint8Array> {
    const { sql, queryId, body, settings = {}, bytesMax, timeoutMs, signal } = statement;
    const late = new AbortController();
    const timer = setTimeout(() => late.abort(timedOut(url, timeoutMs)), timeoutMs);
    const ended = AbortSignal.any([...(signal === undefined ? [] : [signal]), late.signal]);
    try {
      ended.throwIfAborted();
      const { stream } = await this.#client(url).exec({
        query: sql,
        ...(queryId === undefined ? {} : { query_id: queryId }),
        ...(body === undefined ? {} : { values: Readable.from([body]) }),
        clickhouse_settings: settings,
        abort_signal: ended,
      });
      return await gathered(addAbortSignal(ended, stream), url, bytesMax);
    } catch (error) {
      ended.throwIfAborted();
      throw error instanceof FarFailure ? error : failureOf(url, error);
    } finally {
      clearTimeout(timer);
    }
  }

  async close(): Promise<void> {
    const clients = [...this.#clients.values()];
    this.#clients.clear();
    for (const client of clients) await client.close();
  }

  #client(url: string): ClickHouse.ClickHouseClient {
    let client = this.#clients.get(url);
    if (client === undefined) {
      const { user: username, password } = this.login;
      client = this.library.createClient({
        url,
        username,
        password,
        max_open_connections: serverRequestsMax,
        // Effectively no timeout: each statement has its own.
        request_timeout: 2 ** 31 - 1,
        compression: { request: false, response: false },
        log: { level: this.library.ClickHouseLogLevel.OFF },
      });
      this.#clients.set(url, client);
    }
    return client;
  }
}

function timedOut(url: string, timeoutMs: number): FarFailure {
  return new FarFailure('unreachable', url, `no answer within ${timeoutMs / 1000} s`);
}

async function gathered(stream: Readable, url: string, bytesMax: number): Promise<Uint8Array> {
  const pieces: Uint8Array[] = [];
  let bytes = 0;
  for await (const piece of stream as AsyncIterable<Uint8Array>) {
    bytes += piece.length;
    if (bytes > bytesMax) throw new FarFailure('long', url, `the answer has more than ${bytesMax} bytes`);
    pieces.push(piece);
  }
  return Buffer.concat(pieces, bytes);
}

/** Converts an error of the client library. An error of the server begins with its code. */
function failureOf(url: string, error: unknown): FarFailure {
  const text = error instanceof Error ? error.message || error.name : String(error);
  const system = (error as { code?: unknown }).code;
  const isServer = error instanceof Error && (/^\s*Code: \d+/.test(text) || error.name === 'ClickHouseError');
  const isSpoken = isServer || (/DB::Exception/.test(text) && typeof system !== 'string');
  const message = (text.split('\n')[0] ?? '').slice(0, shownCharactersMax);
  const said = text.startsWith(message) && message !== '' ? message : 'it could not be reached';
  return new FarFailure(isSpoken ? 'refused' : 'unreachable', url, said, error);
}

/** URLs of the HTTP interfaces of the replicas of a shard. */
export type FarShard = readonly string[];

/** A cluster of ClickHouse servers, and how to log in. */
export interface FarSettings {
  /** Manifests refer to shards by index, so new shards are only appended. */
  readonly shards: readonly FarShard[];
  readonly database: string;
  readonly user: string;
  readonly password: string;
}
