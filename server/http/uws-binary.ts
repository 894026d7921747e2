import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { headBytesMax } from './http-limits.js';

/** What is used of uWebSockets.js, as it is: its own types leave out some of it. */
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

/** To be used in the handler only. */
export interface UwsHttpRequest {
  getCaseSensitiveMethod(): string;
  getUrl(): string;
  /** Undefined without a question mark. */
  getQuery(): string | undefined;
  /** Names are in lowercase. */
  forEach(call: (name: string, value: string) => void): void;
}

/** To be used until it has ended, or `onAborted` was called. */
export interface UwsHttpResponse {
  cork(call: () => void): UwsHttpResponse;
  writeStatus(status: string): UwsHttpResponse;
  writeHeader(name: string, value: string): UwsHttpResponse;
  /** Writes a chunk. False where the kernel has not taken it all. */
  write(piece: Uint8Array): boolean;
  end(body?: Uint8Array, closesConnection?: boolean): UwsHttpResponse;
  /** Without any argument, there is no Content-Length. An undefined one would become 2^63. */
  endWithoutBody(length?: number, closesConnection?: boolean): UwsHttpResponse;
  /** Gives the kernel what it takes of `rest`, which ends a body of `bytes`, and copies nothing. The second result: all of it was taken. */
  tryEnd(rest: Uint8Array, bytes: number): readonly [boolean, boolean];
  /** Calls `call` with the bytes of the body that were taken so far. */
  onWritable(call: (offset: number) => boolean): UwsHttpResponse;
  onAborted(call: () => void): UwsHttpResponse;
  getRemoteAddress(): ArrayBuffer;
  close(): UwsHttpResponse;
}

/** uWebSockets.js, or why there is none. */
export type FoundUws = { readonly uws: Uws } | { readonly whyNot: string };

const require = createRequire(import.meta.url);

/** The first version that answers malformed heads. Older versions close the connection, or don't answer at all. */
const versionMin = { major: 20, minor: 50 };

let found: FoundUws | undefined;

/** Loads uWebSockets.js, once, where it is installed and works here. Throws nothing. */
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
  // It reads this once, while it loads.
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

/** The package says at length which systems it knows, and behind that what the system's loader said. */
function lastLine(error: unknown): string {
  const lines = String(error).trimEnd().split('\n');
  return lines.at(-1)!.replace(/^Error: /, '');
}
