import { networkInterfaces } from 'node:os';
import { graceMsDefault, queryTimeoutMsDefault, zstdAfterMsDefault } from '../../engine/index.js';
import type { FarConfig } from './far-config.js';
import type { ReaderConfig } from './reader-config.js';

/** An address to listen on. `host` is a name or an address without brackets. */
export interface ListenAddress {
  readonly host: string;
  readonly port: number;
}

/** Where operators ask. An address that nobody has asked for may be had by another process: then there is no console. */
export type ConsoleSetting = (ListenAddress & { readonly isAsked: boolean }) | 'off';

/** Absolute paths of a certificate, with those behind it up to an authority, and of its private key: PEM. */
export interface TlsFiles {
  readonly cert: string;
  readonly key: string;
}

/** How the server answers: `server` in `config.yaml`. */
export interface ServerSettings {
  readonly listen: ListenAddress;
  readonly console: ConsoleSetting;
  /** From how long on a query is noted as slow; null for none. */
  readonly slowQueryMs: number | null;
  /** Has both listeners answer over TLS; null for none. */
  readonly tls: TlsFiles | null;
  /** Has the console do so with a certificate of its own; null for that of `tls`. */
  readonly consoleTls: TlsFiles | null;
  /** Origins that browsers may ask from; `*` is any, an empty list none. */
  readonly corsOrigin: readonly string[];
  /** For times without an offset, in queries and in logs. */
  readonly timezone: string;
  /** Highest `limit` of a query. */
  readonly limitMax: number;
  /** Queries that run at once; more are answered with 429. */
  readonly queriesMax: number;
  /** Clients that follow at once, beside the queries. */
  readonly followersMax: number;
  /** Longest time that the scan of one query may take, without the time that the client takes. */
  readonly queryTimeoutMs: number;
  /** Bytes of columns that one query may have to read; null for any. */
  readonly queryBytesMax: number | null;
  /** Bytes a second that a client must take of its answer, over a minute of waiting for it; 0 for any. */
  readonly clientRateMin: number;
  /** Longest time from a request to the end of its answer. */
  readonly answerTimeoutMs: number;
  /** Proxies whose `X-Forwarded-For` names the client: addresses and networks. */
  readonly trustedProxies: readonly string[];
  /** A client that takes nothing of its answer for this long is gone. uWebSockets.js has a time of its own. */
  readonly clientTimeoutMs: number;
  /** Names besides `localhost`, in lowercase, that the server is asked by. None: any, unless it listens on a loopback address. */
  readonly hosts: readonly string[];
  /** Answer from the archive of a server on another machine, and store nothing; null for an archive of its own. */
  readonly reader: ReaderConfig | null;
}

/** What `config.yaml` says, with every default filled in. */
export interface Config {
  readonly server: ServerSettings;
  readonly storage: {
    /** The data folder: absolute if the file names it, else the default, relative to the working folder. */
    readonly path: string;
    /** Age of a day at which its segments are rewritten smaller; null for never. */
    readonly zstdAfterMs: number | null;
    /** Bound on the decoded columns in memory; null for a share of the machine's. */
    readonly cacheBytes: number | null;
    /** Where old records go; null for nowhere. */
    readonly far: FarConfig | null;
  };
  /** Where `s3://` paths lead. What is undefined is as the environment, or the profile, says. */
  readonly s3: {
    readonly endpoint?: string;
    readonly region?: string;
    readonly profile?: string;
    readonly pathStyle?: boolean;
    /** What is kept of objects on our disk, in bytes. */
    readonly cacheBytes?: number;
  };
  /** Look at the agents' folder now and then, and go by what has changed. */
  readonly watch: boolean;
  readonly fileInput: {
    /** Lines of a new file to read, counted from its end; 0 reads all. */
    readonly limit: number;
    /** How late a live record may be and still be placed among the newest. */
    readonly graceMs: number;
    /** Longest time from a line to its answer. */
    readonly flushMs: number;
    /** Silence after which a last line without an end is taken, of a file that nobody writes to any more. */
    readonly tailTimeoutMs: number;
  };
  /** Sentences to say once at the start: keys that are accepted and not used. */
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
 * `host:port`, `[IPv6]:port` or `:port`; undefined for anything else. Without a host it is every address of this
 * machine: `::` takes IPv4 along, and `0.0.0.0` stands in where IPv6 is switched off.
 */
export function parseListen(text: string): ListenAddress | undefined {
  const match = /^(?:\[([0-9a-fA-F:.%a-z]+)\]|([^\s:[\]/]*)):(\d{1,5})$/.exec(text.trim());
  if (match === null || Number(match[3]) > 65_535) return undefined;
  const host = match[1] ?? match[2] ?? '';
  return { host: host === '' || host === '*' ? everyAddress() : host, port: Number(match[3]) };
}

/** An address as `parseListen` reads it, or `off`; undefined for anything else. */
export function parseConsole(text: string): ConsoleSetting | undefined {
  if (text.trim().toLowerCase() === 'off') return 'off';
  const address = parseListen(text);
  return address === undefined ? undefined : { ...address, isAsked: true };
}

function everyAddress(): string {
  const addresses = Object.values(networkInterfaces()).flat();
  return addresses.some((address) => address?.family === 'IPv6') ? '::' : '0.0.0.0';
}
