import { byteSizeShape, parseByteSize, durationShape, parseDuration, within } from './quantities.js';
import type { YamlSection } from './yaml.js';
import { readerLagMsMax } from '../../engine/index.js';

/** Where old records are shipped, and when: `storage.far` in `config.yaml`. */
export interface FarConfig {
  /** Addresses of ClickHouse's HTTP interface: for each shard, those of its replicas. */
  readonly shards: readonly (readonly string[])[];
  readonly database: string;
  readonly user: string;
  /** Absolute path of a file with the password; null for none. */
  readonly passwordFile: string | null;
  /** Age of a day, counted from its end, at which its records are shipped. */
  readonly afterMs: number;
  /** How long the files stay on this machine after that. */
  readonly keepLocalMs: number;
  /** Limit on the bytes sent per second. */
  readonly bytesPerSecond: number;
}

const dayMs = 86_400_000;
const defaults = { afterMs: 7 * dayMs, keepLocalMs: dayMs, bytesPerSecond: 64 * 1024 * 1024 };

const addressShape = 'an address such as http://clickhouse-1:8123';
const nameShape = 'letters, digits and underscores, beginning with a letter';
const shardsMax = 1000;
const replicasMax = 16;

/** Reads `storage.far`; null where there is none. */
export function readFar(storage: YamlSection | undefined): FarConfig | null {
  const far = storage?.section('far', ['clickhouse', 'after', 'keep_local', 'rate']);
  if (far === undefined) return null;
  const server = far.section('clickhouse', ['url', 'shards', 'database', 'user', 'password_file']);
  if (server === undefined && !far.has('clickhouse'))
    far.missing('clickhouse', 'where the servers are, as url or shards');
  return {
    shards: server === undefined ? [] : readShards(server),
    database: server?.parsed('database', nameShape, parseName) ?? 'logstrata',
    user: server?.text('user') ?? 'default',
    passwordFile: server?.path('password_file') ?? null,
    afterMs: far.duration('after', 0) ?? defaults.afterMs,
    keepLocalMs: far.duration('keep_local', 0) ?? defaults.keepLocalMs,
    bytesPerSecond:
      far.parsed('rate', `${byteSizeShape}, more than 0`, within(parseByteSize, 1)) ??
      defaults.bytesPerSecond,
  };
}

function readShards(server: YamlSection): string[][] {
  const has = { url: server.has('url'), shards: server.has('shards') };
  if (has.url && has.shards) server.problem('shards', 'give either shards or url, not both');
  if (!has.url && !has.shards) server.missing('url', `${addressShape}, or shards for more than one server`);
  if (has.url) return [addressesOf(server, 'url', 1)];
  const shards = server.sections('shards', 'a shard', ['replicas']) ?? [];
  if (has.shards && (shards.length < 1 || shards.length > shardsMax))
    server.problem('shards', `shards must be a list of 1 to ${shardsMax}, each with its replicas`);
  const known = new Set<string>();
  return shards.map((shard) => {
    if (!shard.has('replicas')) shard.missing('replicas', `${addressShape}, or a list of them`);
    const replicas = addressesOf(shard, 'replicas', replicasMax);
    for (const replica of replicas) {
      if (known.has(replica)) shard.problem('replicas', `${replica} is named twice`);
      known.add(replica);
    }
    return replicas;
  });
}

function addressesOf(section: YamlSection, key: string, max: number): string[] {
  const texts = section.texts(key) ?? [];
  if (texts.length > max) section.problem(key, `${key} has ${texts.length} addresses, at most ${max}`);
  return texts.flatMap((text) => {
    const address = parseAddress(text);
    if (address !== undefined) return [address];
    section.problem(key, `${key} must be ${addressShape}, not ${JSON.stringify(text)}`);
    return [];
  });
}

/** Parses an address of scheme, host and port; user and database have keys of their own. */
function parseAddress(text: string): string | undefined {
  if (!/^https?:\/\/[^\s/?#@]+\/?$/i.test(text) || !URL.canParse(text)) return undefined;
  return new URL(text).origin;
}

function parseName(text: string): string | undefined {
  return /^[A-Za-z][A-Za-z0-9_]{0,63}$/.test(text) ? text : undefined;
}

/** For a server that stores nothing itself: the server whose archive it answers from; `server.reader` in `config.yaml`. */
export interface ReaderConfig {
  /** Address of the console of the writing server. */
  readonly writer: string;
  /** Absolute path of a file with a token for it; null for none. */
  readonly tokenFile: string | null;
  /** Absolute path of the CA certificates, PEM, for the writer's certificate; null for those of Node. */
  readonly caFile: string | null;
  /** How long information from the writer about its agents is valid, in milliseconds. */
  readonly lagMs: number;
}

const lagMsDefault = 1000;
const writerShape = 'the address of the console of the server that writes, such as https://logs-1:2112';

/** Reads `server.reader`; null where there is none. */
export function readReader(server: YamlSection): ReaderConfig | null {
  const section = server.section('reader', ['writer', 'token_file', 'ca_file', 'lag']);
  if (section === undefined) return null;
  if (!section.has('writer')) section.missing('writer', writerShape);
  const writer = section.parsed('writer', writerShape, parseAddress) ?? '';
  const caFile = section.path('ca_file') ?? null;
  if (caFile !== null && writer.startsWith('http:'))
    section.problem('ca_file', 'ca_file is for a writer that is asked over https');
  const lagShape = `${durationShape}, at most ${readerLagMsMax / 1000}s`;
  return {
    writer,
    tokenFile: section.path('token_file') ?? null,
    caFile,
    lagMs: section.parsed('lag', lagShape, within(parseDuration, 0, readerLagMsMax)) ?? lagMsDefault,
  };
}
