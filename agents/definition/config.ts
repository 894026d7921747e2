import { networkInterfaces } from 'node:os';
import { graceMsDefault, queryTimeoutMsDefault, zstdAfterMsDefault } from '../../engine/index.js';
import type { FarConfig, ReaderConfig } from './far-config.js';

/** An address to listen on. `host` is a name or an IP address without brackets. */
export interface ListenAddress {
  readonly host: string;
  readonly port: number;
}

/** Address of the console for operators. If it was not configured (`isAsked`) and another process uses it, there is no console. */
export type ConsoleSetting = (ListenAddress & { readonly isAsked: boolean }) | 'off';

/** Absolute paths of a certificate chain and of its private key, both PEM. */
export interface TlsFiles {
  readonly cert: string;
  readonly key: string;
}

/** Settings of the server: `server` in `config.yaml`. */
export interface ServerSettings {
  readonly listen: ListenAddress;
  readonly console: ConsoleSetting;
  /** Duration from which a query is logged as slow; null for never. */
  readonly slowQueryMs: number | null;
  /** Certificate for both listeners; null for no TLS. */
  readonly tls: TlsFiles | null;
  /** The console's own certificate; null to use that of `tls`. */
  readonly consoleTls: TlsFiles | null;
  /** Origins that browsers may send requests from; `*` allows any, an empty list none. */
  readonly corsOrigin: readonly string[];
  /** Time zone for times without an offset, in queries and in logs. */
  readonly timezone: string;
  /** Highest `limit` of a query. */
  readonly limitMax: number;
  /** Limit on concurrent queries; further ones are answered with 429. */
  readonly queriesMax: number;
  /** Limit on concurrent clients that follow, in addition to queries. */
  readonly followersMax: number;
  /** Longest time of the scan of one query, without the time that the client takes. */
  readonly queryTimeoutMs: number;
  /** Limit on the bytes of columns that one query reads; null for none. */
  readonly queryBytesMax: number | null;
  /** Bytes per second at which a client must read its answer, on average over a minute of waiting for it; 0 for no minimum. */
  readonly clientRateMin: number;
  /** Longest time from a request to the end of its answer. */
  readonly answerTimeoutMs: number;
  /** Proxies whose `X-Forwarded-For` header is trusted to name the client: addresses and networks. */
  readonly trustedProxies: readonly string[];
  /** A client that reads nothing of its answer for this long is disconnected. uWebSockets.js has a timeout of its own. */
  readonly clientTimeoutMs: number;
  /**
   * Host names besides `localhost`, in lower case, that requests may use. If empty, any name is allowed, unless the server
   * listens on a loopback address.
   */
  readonly hosts: readonly string[];
  /** Set to answer from the archive of a server on another machine and store nothing; null for an archive of its own. */
  readonly reader: ReaderConfig | null;
}

/** The content of `config.yaml`, with all defaults filled in. */
export interface Config {
  readonly server: ServerSettings;
  readonly storage: {
    /** The data folder: an absolute path if the file gives one; else the default, relative to the working folder. */
    readonly path: string;
    /** Age of a day at which its segments are rewritten with better compression; null for never. */
    readonly zstdAfterMs: number | null;
    /** Limit on the decoded columns in memory; null for a share of the machine's memory. */
    readonly cacheBytes: number | null;
    /** Where old records are shipped; null for nowhere. */
    readonly far: FarConfig | null;
  };
  /** Object storage for `s3://` paths. Undefined settings come from the environment or the profile. */
  readonly s3: {
    readonly endpoint?: string;
    readonly region?: string;
    readonly profile?: string;
    readonly pathStyle?: boolean;
    /** Limit on the copies of objects on our disk, in bytes. */
    readonly cacheBytes?: number;
  };
  /** Whether the agents' folder is checked regularly, and changes are applied. */
  readonly watch: boolean;
  readonly fileInput: {
    /** Number of last lines to read of a new file; 0 for all. */
    readonly limit: number;
    /** How late a live record may be and still be placed among the newest. */
    readonly graceMs: number;
    /** Longest time, in milliseconds, from the writing of a line until queries see it. */
    readonly flushMs: number;
    /** Time without growth after which a last line without a line end is taken, of a file that is no longer written to. */
    readonly tailTimeoutMs: number;
  };
  /** Messages to log once at the start: about keys that are accepted but not used. */
  readonly notes: readonly string[];
}

export const defaultConfig: Config = {
  server: {
    listen: { host: '127.0.0.1', port: 2111 },
    console: { host: '127.0.0.1', port: 2112, isAsked: false },
    slowQueryMs: 1000,
    tls: null,
    consoleTls: null,
    corsOrigin: [],
    timezone: 'UTC',
    limitMax: 1_000_000,
    queriesMax: 64,
    followersMax: 1024,
    queryTimeoutMs: queryTimeoutMsDefault,
    queryBytesMax: null,
    clientRateMin: 16 * 1024,
    answerTimeoutMs: 3_600_000,
    trustedProxies: [],
    clientTimeoutMs: 60_000,
    hosts: [],
    reader: null,
  },
  storage: { path: 'data/store', zstdAfterMs: zstdAfterMsDefault, cacheBytes: null, far: null },
  s3: {},
  watch: false,
  fileInput: { limit: 0, graceMs: graceMsDefault, flushMs: 250, tailTimeoutMs: 5000 },
  notes: [],
};

/**
 * Parses `host:port`, `[IPv6]:port` or `:port`; undefined for anything else. Without a host it is every address of this
 * machine: `::`, which includes IPv4, or `0.0.0.0` where IPv6 is disabled.
 */
export function parseListen(text: string): ListenAddress | undefined {
  const match = /^(?:\[([0-9a-fA-F:.%a-z]+)\]|([^\s:[\]/]*)):(\d{1,5})$/.exec(text.trim());
  if (match === null || Number(match[3]) > 65_535) return undefined;
  const host = match[1] ?? match[2] ?? '';
  return { host: host === '' || host === '*' ? everyAddress() : host, port: Number(match[3]) };
}

/** Parses an address like `parseListen`, or `off`; undefined for anything else. */
export function parseConsole(text: string): ConsoleSetting | undefined {
  if (text.trim().toLowerCase() === 'off') return 'off';
  const address = parseListen(text);
  return address === undefined ? undefined : { ...address, isAsked: true };
}

function everyAddress(): string {
  const addresses = Object.values(networkInterfaces()).flat();
  return addresses.some((address) => address?.family === 'IPv6') ? '::' : '0.0.0.0';
}
