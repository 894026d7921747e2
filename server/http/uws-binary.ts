import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { headBytesMax } from './http-limits.js';

/** The part of uWebSockets.js that is used here. The types that it brings leave out some of it. */
export interface Uws {
  readonly LIBUS_LISTEN_EXCLUSIVE_PORT: number;
  App(): UwsApp;
  _cfg(option: 'silent'): void;
  us_listen_socket_close(listening: object): void;
  us_socket_local_port(listening: object): number;
}

export interface UwsApp {
  any(pattern: string, handler: (response: UwsHttpResponse, request: UwsHttpRequest) => void): UwsApp;
  /** Calls `call` with 1 for each connection that opens, and with -1 for each that has closed. */
  filter(call: (response: UwsHttpResponse, change: number) => void): UwsApp;
  listen(host: string, port: number, options: number, call: (listening: object | false) => void): UwsApp;
  /** Closes what listens, and every connection. */
  close(): UwsApp;
}

/** A request. It may be used only until the handler returns. */
export interface UwsHttpRequest {
  getCaseSensitiveMethod(): string;
  getUrl(): string;
  /** Undefined without a question mark. */
  getQuery(): string | undefined;
  /** Names are in lowercase. */
  forEach(call: (name: string, value: string) => void): void;
}

/** A response. It may be used until it has ended or the call given to `onAborted` was made. */
export interface UwsHttpResponse {
  cork(call: () => void): UwsHttpResponse;
  writeStatus(status: string): UwsHttpResponse;
  writeHeader(name: string, value: string): UwsHttpResponse;
  /** Writes a chunk. Returns false if the operating system has not taken all of it. */
  write(piece: Uint8Array): boolean;
  end(body?: Uint8Array, closesConnection?: boolean): UwsHttpResponse;
  /** Called without arguments, it sends no Content-Length. An undefined `length` would be sent as 2^63. */
  endWithoutBody(length?: number, closesConnection?: boolean): UwsHttpResponse;
  /**
   * Sends as much of `rest`, the end of a body of `bytes` bytes, as the operating system takes, without a copy. The second result says
   * whether all of it was taken.
   */
  tryEnd(rest: Uint8Array, bytes: number): readonly [boolean, boolean];
  /** Calls `call` with the bytes of the body that were taken so far. */
  onWritable(call: (offset: number) => boolean): UwsHttpResponse;
  onAborted(call: () => void): UwsHttpResponse;
  getRemoteAddress(): ArrayBuffer;
  close(): UwsHttpResponse;
}

/** uWebSockets.js, or why it can't be used. */
export type FoundUws = { readonly uws: Uws } | { readonly whyNot: string };

const require = createRequire(import.meta.url);

/** The first version that answers malformed heads. Older versions close the connection, or don't answer at all. */
const versionMin = { major: 20, minor: 50 };

let found: FoundUws | undefined;

/** Loads uWebSockets.js if it is installed and works on this machine. Never throws. Later calls return the first result. */
export function loadUws(): FoundUws {
  return (found ??= findUws());
}

function findUws(): FoundUws {
  let entry: string;
  try {
    entry = require.resolve('uWebSockets.js');
  } catch {
    return { whyNot: 'uWebSockets.js is not installed' };
  }
  const version = versionBeside(entry);
  const [major = 0, minor = 0] = version.split('.').map(Number);
  if (!(major > versionMin.major || (major === versionMin.major && minor >= versionMin.minor)))
    return {
      whyNot: `uWebSockets.js ${version} is older than ${versionMin.major}.${versionMin.minor}`,
    };
  // uWebSockets.js reads this variable once, while it loads.
  process.env['UWS_HTTP_MAX_HEADERS_SIZE'] ??= String(headBytesMax);
  try {
    return { uws: require(entry) as Uws };
  } catch (error) {
    return { whyNot: `uWebSockets.js ${version} does not load: ${lastLine(error)}` };
  }
}

function versionBeside(entry: string): string {
  try {
    const text = readFileSync(join(dirname(entry), 'package.json'), 'utf8');
    const { version } = JSON.parse(text) as { readonly version?: unknown };
    return typeof version === 'string' ? version : 'without a version';
  } catch {
    return 'without a version';
  }
}

/** The last line of an error. That of uWebSockets.js first lists the systems that it supports, and ends with the loader's message. */
function lastLine(error: unknown): string {
  const lines = String(error).trimEnd().split('\n');
  return lines.at(-1)!.replace(/^Error: /, '');
}
