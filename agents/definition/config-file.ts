import { isIP } from 'node:net';
import { byteSizeShape, parseByteSize, durationShape, parseDuration } from './quantities.js';
import { defaultConfig, parseConsole, parseListen, type Config, type TlsFiles } from './config.js';
import { ProblemList, readConfigText, readRootSection, type YamlSection } from './yaml.js';
import { readFar, readReader } from './far-config.js';
import { zoneProblem } from '../../engine/times/zone.js';

const listenShape = 'an address and a port such as 127.0.0.1:2111, [::1]:2111, or :2111 for every address';
const consoleShape = 'an address and a port such as 127.0.0.1:2112, or off';

/** Maximum of `limit`: larger numbers do not fit the counters of an answer. */
const countMax = 2 ** 31 - 1;

/** Reads a `config.yaml`. Throws a `ConfigError` with all problems, `not_found` or `io`. */
export function readConfig(path: string): Config {
  return parseConfig(readConfigText(path, true), path);
}

/** Parses a configuration. `path` is used in messages, and paths in the file are relative to its folder. */
export function parseConfig(text: string, path: string): Config {
  const problems = new ProblemList(path);
  const root = readRootSection(text, problems, ['server', 'storage', 's3', 'file_input', 'watch']);
  const config: Config = {
    server: readServer(root),
    storage: readStorage(root),
    s3: readS3(root),
    watch: root?.boolean('watch') ?? defaultConfig.watch,
    fileInput: readFileInput(root),
    notes: problems.notes,
  };
  problems.throwIfAny();
  return config;
}

const neverShape = `never, or ${durationShape}`;

/** Parses a duration; `never` gives Infinity. */
function parseNever(text: string): number | undefined {
  return text.trim().toLowerCase() === 'never' ? Infinity : parseDuration(text);
}

function readServer(root: YamlSection | undefined): Config['server'] {
  const defaults = defaultConfig.server;
  const keys = [
    'listen',
    'console',
    'slow_query',
    'tls',
    'console_tls',
    'hosts',
    'cors',
    'timezone',
    'limit_max',
    'queries_max',
    'followers_max',
    'query_timeout',
    'query_bytes_max',
    'client_rate',
    'answer_timeout',
    'trusted_proxies',
    'client_timeout',
    'reader',
  ];
  const section = root?.section('server', keys);
  if (section === undefined) return defaults;
  const timezone = section.text('timezone');
  const problem = timezone === undefined ? undefined : zoneProblem(timezone);
  if (problem !== undefined) section.problem('timezone', problem);
  return {
    listen: section.parsed('listen', listenShape, parseListen) ?? defaults.listen,
    console: section.parsed('console', consoleShape, parseConsole) ?? defaults.console,
    slowQueryMs: readSlowQuery(section),
    tls: readTls(section.section('tls', tlsKeys)),
    consoleTls: readTls(section.section('console_tls', tlsKeys)),
    corsOrigin: readOrigins(section.section('cors', ['origin'])),
    timezone: timezone ?? defaults.timezone,
    limitMax: section.integer('limit_max', { min: 1, max: countMax }) ?? defaults.limitMax,
    queriesMax: section.integer('queries_max', { min: 1, max: 10_000 }) ?? defaults.queriesMax,
    followersMax: section.integer('followers_max', { min: 0, max: 100_000 }) ?? defaults.followersMax,
    queryTimeoutMs: section.duration('query_timeout', 1) ?? defaults.queryTimeoutMs,
    queryBytesMax: section.byteSize('query_bytes_max') ?? defaults.queryBytesMax,
    clientRateMin: section.parsed('client_rate', byteSizeShape, parseByteSize) ?? defaults.clientRateMin,
    answerTimeoutMs: section.duration('answer_timeout', 1) ?? defaults.answerTimeoutMs,
    trustedProxies: readProxies(section),
    clientTimeoutMs: section.duration('client_timeout', 1) ?? defaults.clientTimeoutMs,
    hosts: readHosts(section),
    reader: readReader(section),
  };
}

function readSlowQuery(section: YamlSection): number | null {
  const slowMs = section.parsed('slow_query', neverShape, parseNever);
  return slowMs === Infinity ? null : (slowMs ?? defaultConfig.server.slowQueryMs);
}

const tlsKeys = ['cert', 'key'];

/** Reads the paths of certificate and key. The server reads the files themselves, because they may be renewed while it runs. */
function readTls(section: YamlSection | undefined): TlsFiles | null {
  if (section === undefined) return null;
  const read = (key: string, what: string): string => {
    if (!section.has(key)) section.missing(key, `the file with ${what}, PEM`);
    return section.path(key) ?? '';
  };
  return { cert: read('cert', 'the certificate'), key: read('key', 'its private key') };
}

/** Reads a list of addresses and networks. */
function readProxies(section: YamlSection): readonly string[] {
  const proxies = section.texts('trusted_proxies') ?? [];
  for (const proxy of proxies) {
    const problem = networkProblem(proxy);
    if (problem !== undefined) section.problem('trusted_proxies', `trusted_proxies: ${problem}`);
  }
  return proxies;
}

/** Reads host names as they are written in a URL, without a port: a name is valid for all ports. */
function readHosts(section: YamlSection): readonly string[] {
  const hosts = section.texts('hosts') ?? [];
  for (const host of hosts) {
    if (/^[a-z0-9_-]+(?:\.[a-z0-9_-]+)*$/i.test(host)) continue;
    const message = `hosts must be names such as logs.example.com, without a port, not ${JSON.stringify(host)}`;
    section.problem('hosts', message);
  }
  return hosts.map((host) => host.toLowerCase());
}

/** Reads `*` or origins as browsers send them: scheme, host, optionally a port, and no path. Empty texts are ignored. */
function readOrigins(section: YamlSection | undefined): readonly string[] {
  const origins = (section?.texts('origin') ?? []).filter((origin) => origin !== '');
  for (const origin of origins) {
    if (origin === '*' || origin === 'null' || /^[a-z][a-z0-9+.-]*:\/\/[^\s/?#,]+$/i.test(origin)) continue;
    const message = `origin must be "*" or origins such as https://logs.example.com, not ${JSON.stringify(origin)}`;
    section!.problem('origin', message);
  }
  return origins;
}

function readStorage(root: YamlSection | undefined): Config['storage'] {
  const section = root?.section('storage', ['path', 'zstd_after', 'cache', 'sqlite', 'far']);
  if (section?.has('sqlite') === true)
    section.note('storage.sqlite is ignored: records are stored in files below storage.path');
  const zstdAfterMs = section?.parsed('zstd_after', neverShape, parseNever);
  return {
    path: section?.path('path', 'a folder') ?? defaultConfig.storage.path,
    zstdAfterMs: zstdAfterMs === Infinity ? null : (zstdAfterMs ?? defaultConfig.storage.zstdAfterMs),
    cacheBytes: section?.parsed('cache', byteSizeShape, parseByteSize) ?? null,
    far: readFar(section),
  };
}

function readS3(root: YamlSection | undefined): Config['s3'] {
  const section = root?.section('s3', ['endpoint', 'region', 'profile', 'path_style', 'cache']);
  if (section === undefined) return defaultConfig.s3;
  const endpoint = section.parsed('endpoint', 'an address such as http://minio:9000', parseEndpoint);
  const region = section.text('region');
  const profile = section.text('profile');
  const pathStyle = section.boolean('path_style');
  const cacheBytes = section.parsed('cache', byteSizeShape, parseByteSize);
  return {
    ...(endpoint === undefined ? {} : { endpoint }),
    ...(region === undefined ? {} : { region }),
    ...(profile === undefined ? {} : { profile }),
    ...(pathStyle === undefined ? {} : { pathStyle }),
    ...(cacheBytes === undefined ? {} : { cacheBytes }),
  };
}

function parseEndpoint(text: string): string | undefined {
  return /^https?:\/\/[^\s/?#@]+\/?$/i.test(text) && URL.canParse(text) ? text : undefined;
}

function readFileInput(root: YamlSection | undefined): Config['fileInput'] {
  const defaults = defaultConfig.fileInput;
  const section = root?.section('file_input', ['limit', 'grace', 'flush', 'tail_timeout', 'offsets']);
  if (section === undefined) return defaults;
  if (section.has('offsets')) {
    section.note('file_input.offsets is ignored: how far a file has been read is stored with the records');
  }
  return {
    limit: section.integer('limit', { min: 0, max: countMax }) ?? defaults.limit,
    graceMs: section.duration('grace', 0) ?? defaults.graceMs,
    flushMs: section.duration('flush', 1) ?? defaults.flushMs,
    tailTimeoutMs: section.duration('tail_timeout', 1) ?? defaults.tailTimeoutMs,
  };
}

/** The problem with the text of an address or a network (`10.0.0.0/8`); undefined for a valid one. */
function networkProblem(text: string): string | undefined {
  const [address = '', bits, ...more] = text.split('/');
  const version = isIP(address);
  const bitsMax = version === 6 ? 128 : 32;
  const isNetwork = bits === undefined || (/^\d{1,3}$/.test(bits) && Number(bits) <= bitsMax);
  if (version !== 0 && isNetwork && more.length === 0) return undefined;
  return `expected an address such as 127.0.0.1, or a network such as 10.0.0.0/8, not ${JSON.stringify(text)}`;
}
