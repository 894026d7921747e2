import { createHash } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { describe, expect, it, onTestFinished } from 'vitest';
import { type AttachRound, ArchiveAttaching } from '../../agents/archive/archive-attaching.js';
import { ArchiveImport, type ImportStatus } from '../../agents/archive/archive-import.js';
import { WakeUp } from '../../agents/collect/logs/wake-up.js';
import { parseAgentFile } from '../../agents/definition/agent-file.js';
import { EqualFiles } from '../../agents/sources/source-cursor.js';
import { loadFiles } from '../../agents/load/load.js';
import { openerOf } from '../../agents/sources/opened-file.js';
import type { AgentStore } from '../../engine/archive/agent-store.js';
import type { Archive } from '../../engine/archive/archive.js';
import { openCompressor } from '../../engine/parquet/compression.js';
import type { Query } from '../../engine/scan/query.js';
import type { ObjectStorage } from '../../engine/objects/object-storage.js';
import { objectBlockBytes } from '../../engine/core/limits.js';
import { makeSchema } from '../../engine/core/schema.js';
import { WorkerPool } from '../../engine/workers/worker-pool.js';
import { answer, openOn } from '../engine/store/memory-archive.js';
import { parquetBytes } from '../foreign/write-parquet.js';
import { MemoryDirectory } from '../storage-doubles/memory-directory.js';
import { storageOf } from './object-storage.js';
import { S3Server } from './s3-server.js';

const day = Date.UTC(2025, 0, 1);
const nowMs = Date.UTC(2025, 5, 1);
const columns = makeSchema([
  { name: 'time', type: 'time' },
  { name: 'n', type: 'int' },
  { name: 'message', type: 'string' },
]);

/** Text that hardly compresses. */
function noise(seed: number): string {
  return createHash('sha512').update(`${seed}`).digest('base64');
}

/** Rows from `from` on as a Parquet object, one per minute. */
function objectOf(from: number, rows: number, rowGroupRows = rows): Uint8Array {
  const values = Array.from({ length: rows }, (_, i) => [
    BigInt(day + 60_000 * (from + i)),
    BigInt(from + i),
    `message ${from + i} ${noise(from + i)}`,
  ]);
  return parquetBytes(columns, values, { rowGroupRows, pageBytes: 100_000 });
}

interface Lake {
  readonly server: S3Server;
  readonly folder: string;
  readonly directory: MemoryDirectory;
  archive: Archive;
  store: AgentStore;
  objects: ObjectStorage;
  /** Lists the archive once. */
  look(policy?: string): Promise<AttachRound>;
  /** Reopens the archive, with or without its cached blocks of objects. */
  reopen(keeps: boolean): Promise<void>;
  numbers(query?: Partial<Query>): Promise<number[]>;
}

const agentFile = (policy: string): string =>
  `archive: { path: 's3://logs/web/**/*.parquet'${policy} }\n` +
  'fields: [{ name: time, type: time, unit: ms }, { name: n, type: int }, { name: message, index: true }, { name: day }]\n';

async function lake(): Promise<Lake> {
  const server = await S3Server.start();
  const folder = mkdtempSync(join(tmpdir(), 'logstrata-lake-'));
  const directory = new MemoryDirectory();
  const definition = parseAgentFile(agentFile(''), join(folder, 'web.yaml'));
  const open = async (keeps: boolean): Promise<Pick<Lake, 'archive' | 'store' | 'objects'>> => {
    if (!keeps) rmSync(join(folder, 'objects'), { recursive: true, force: true });
    const objects = storageOf(server, folder);
    const archive = await openOn(directory, () => nowMs, undefined, { objects });
    return { archive, objects, store: await archive.agent('web', definition.schema) };
  };
  const made: Lake = {
    server,
    folder,
    directory,
    ...(await open(true)),
    look: (policy = '') => {
      const own = parseAgentFile(agentFile(policy), join(folder, 'web.yaml'));
      const attaching = new ArchiveAttaching({
        definition: own,
        archive: own.archive!,
        store: made.store,
        dataFolder: undefined,
        objects: made.objects,
        log: { info: () => {}, warn: () => {}, error: () => {} },
        now: () => nowMs,
        redefine: () => Promise.reject(new Error('the fields are listed')),
      });
      return attaching.round(new AbortController().signal);
    },
    reopen: async (keeps) => {
      await made.archive.close();
      await made.objects.close();
      Object.assign(made, await open(keeps));
    },
    numbers: async (query = {}) => {
      const text = await answer(made.store, { limit: 100_000, ...query });
      return text
        .split('\n')
        .filter((line) => line !== '')
        .map((line) => (JSON.parse(line) as { n: number }).n);
    },
  };
  onTestFinished(async () => {
    await made.archive.close();
    await made.objects.close();
    await server.stop();
    rmSync(folder, { recursive: true, force: true });
  });
  return made;
}

const upTo = (to: number, from = 0): number[] => Array.from({ length: to - from }, (_, i) => from + i);

/** The requests to the server since the last call: the number of each kind, and the bytes sent. */
function asked({ seen }: S3Server): { lists: number; heads: number; reads: number; bytes: number } {
  const all = seen.splice(0);
  const reads = all.filter(({ method, key }) => method === 'GET' && key !== '');
  return {
    lists: all.filter(({ key }) => key === '').length,
    heads: all.filter(({ method }) => method === 'HEAD').length,
    reads: reads.length,
    bytes: reads.reduce((sum, { bytesSent }) => sum + bytesSent, 0),
  };
}

describe('objects that are read in place', () => {
  it('are attached, indexed and answered with few requests', async () => {
    const own = await lake();
    const { server } = own;
    const bytes: number[] = [];
    for (let file = 0; file < 3; file++) {
      const object = objectOf(12_000 * file, 12_000, 6000);
      bytes.push(object.length);
      server.put(`web/day=${file}/a.parquet`, object, day + 1000 * file);
    }
    server.put('web/day=9/_temporary/b.parquet', Buffer.from('no file of Parquet'));
    server.put('web/day=9/c.json', Buffer.from('{}'));
    const all = bytes.reduce((sum, each) => sum + each, 0);
    expect(all).toBeGreaterThan(3_500_000);
    expect(await own.look()).toMatchObject({ attached: 3, rows: 36_000, problems: [], waiting: 0 });
    // The end of each object, and then the time columns of its row groups.
    const attaching = asked(server);
    // Once, the storage is also asked for logs of tables above the objects.
    expect(attaching).toMatchObject({ lists: 1 + 6, heads: 0 });
    expect(attaching.reads).toBeLessThanOrEqual(3 * 4);
    expect(attaching.bytes).toBeLessThan(all / 2);
    // The newest page needs only the last row group of the last object.
    expect(await own.numbers({ limit: 10 })).toEqual(upTo(36_000, 35_990));
    const page = asked(server);
    expect(page.reads).toBeLessThanOrEqual(2);
    expect(page.bytes).toBeLessThan(bytes[2]! / 2);
    expect(await own.numbers({ limit: 10 })).toEqual(upTo(36_000, 35_990));
    expect(asked(server)).toEqual({ lists: 0, heads: 0, reads: 0, bytes: 0 });
    expect(await own.look()).toMatchObject({ attached: 0, moved: 0, problems: [] });
    expect(asked(server)).toMatchObject({ lists: 1, heads: 0, reads: 0 });
    expect((await own.store.indexAttached()).problems).toEqual([]);
    expect(asked(server).bytes).toBeLessThanOrEqual(all);
    expect(await own.numbers()).toEqual(upTo(36_000));
    // With the index, a rare value needs one row group, even if no block of the objects is cached.
    await own.reopen(false);
    const rare: Query['predicates'] = [
      { kind: 'string', field: 2, op: 'exact', value: `message 13001 ${noise(13_001)}` },
    ];
    expect(await own.numbers({ predicates: rare })).toEqual([13_001]);
    const bytesOf = (file: number): number =>
      server.seen
        .filter(({ key }) => key.includes(`day=${file}`))
        .reduce((sum, { bytesSent }) => sum + bytesSent, 0);
    // Only the metadata of the objects that cannot contain the value; of the other one a row group as well.
    for (const file of [0, 2]) expect(bytesOf(file)).toBeLessThanOrEqual(2 * objectBlockBytes);
    expect(bytesOf(1)).toBeLessThan(0.75 * bytes[1]!);
    expect(asked(server).reads).toBeLessThanOrEqual(3 + 2);
    expect((await own.store.verify()).damages).toEqual([]);
    expect(asked(server)).toMatchObject({ heads: 3, reads: 0 });
  });

  it('with many small row groups are searched with few requests, and the newest page reads no more of them', async () => {
    const own = await lake();
    const { server } = own;
    const object = objectOf(0, 20_000, 200);
    expect(object.length).toBeLessThan(4_000_000);
    server.put('web/a.parquet', object, day);
    expect(await own.look()).toMatchObject({ attached: 1, rows: 20_000, problems: [] });
    await own.reopen(false);
    asked(server);
    expect(await own.numbers({ limit: 10 })).toEqual(upTo(20_000, 19_990));
    const page = asked(server);
    expect(page.bytes).toBeLessThan(object.length / 4);
    const text: Query['predicates'] = [{ kind: 'string', field: 2, op: 'like', value: 'message 77 ' }];
    expect(await own.numbers({ predicates: text })).toEqual([77]);
    // A hundred row groups are near enough to be read in one request.
    const search = asked(server);
    expect(search.reads).toBeLessThanOrEqual(8);
    expect(search.bytes).toBeLessThanOrEqual(object.length);
  });

  it('that are written again with the same rows keep their cursors', async () => {
    const own = await lake();
    own.server.put('web/a.parquet', objectOf(0, 100));
    await own.look();
    const before = await answer(own.store, {});
    own.server.put('web/a.parquet', objectOf(0, 100), 1_710_000_000_000);
    expect(await own.look()).toMatchObject({ attached: 0, moved: 1, removed: 0, problems: [] });
    await own.reopen(false);
    expect(await answer(own.store, {})).toBe(before);
    // The same applies under another key.
    own.server.remove('web/a.parquet');
    own.server.put('web/b/c.parquet', objectOf(0, 100), 1_720_000_000_000);
    expect(await own.look()).toMatchObject({ moved: 1, problems: [] });
    expect(await answer(own.store, {})).toBe(before);
  });

  it('that have changed fail the queries that need them until they are replaced', async () => {
    const own = await lake();
    own.server.put('web/a.parquet', objectOf(0, 100));
    own.server.put('web/b.parquet', objectOf(5000, 100));
    await own.look();
    own.server.put('web/a.parquet', objectOf(200, 50));
    await own.reopen(false);
    const path = 's3://logs/web/a.parquet';
    // Before and after the next listing, the storage is asked for the version that was attached.
    for (const look of [false, true]) {
      if (look) expect((await own.look()).problems.map((problem) => problem.path)).toEqual([path]);
      await expect(own.numbers()).rejects.toMatchObject({ code: 'damaged', path });
      expect(await own.numbers({ limit: 5 })).toEqual(upTo(5100, 5095));
    }
    const { damages } = await own.store.verify();
    expect(damages).toMatchObject([{ file: path, records: 100 }]);
    expect(damages[0]!.reason).toContain('its ETag was');
    const round = await own.look(', changed: replace');
    expect(round).toMatchObject({ attached: 1, removed: 1, problems: [] });
    expect(await own.numbers()).toEqual([...upTo(250, 200), ...upTo(5100, 5000)]);
  });

  it('that are missing fail the queries that need them until they are retired', async () => {
    const own = await lake();
    own.server.put('web/a.parquet', objectOf(0, 100));
    own.server.put('web/b.parquet', objectOf(5000, 100));
    await own.look();
    own.server.remove('web/a.parquet');
    await own.reopen(false);
    await expect(own.numbers()).rejects.toThrow('s3://logs/web/a.parquet does not exist any more');
    expect((await own.store.verify()).damages).toMatchObject([{ file: 's3://logs/web/a.parquet' }]);
    // If the listing fails, no object counts as missing.
    own.server.fault = ({ key }) =>
      key === '' ? { kind: 'status', status: 503, code: 'SlowDown' } : undefined;
    const unseen = await own.look(', missing: retire');
    expect(unseen).toMatchObject({ removed: 0, problems: [{ path: 's3://logs/web' }] });
    expect(unseen.problems[0]!.message).toContain('cannot list s3://logs/web/: 503 SlowDown');
    own.server.fault = () => undefined;
    expect((await own.look()).problems).toHaveLength(1);
    expect(await own.look(', missing: retire')).toMatchObject({ removed: 1, problems: [] });
    expect(await own.numbers()).toEqual(upTo(5100, 5000));
  });

  it('of a table are refused, wherever its log is', async () => {
    const logs = [
      'web/_delta_log/00000000000000000000.json',
      'web/t/_delta_log/00000000000000000000.json',
      '_delta_log/00000000000000000000.json',
      'metadata/v1.metadata.json',
      'web/t/metadata/00001-0.metadata.json',
    ];
    for (const log of logs) {
      const own = await lake();
      own.server.put('web/t/a.parquet', objectOf(0, 10));
      own.server.put('web/metadata/notes.txt', Buffer.from('no log'));
      own.server.put('other/_delta_log/00000000000000000000.json', Buffer.from('{}'));
      own.server.put(log, Buffer.from('{}'));
      const place = `s3://logs/${log.slice(0, log.lastIndexOf('/'))}`;
      await expect(own.look()).rejects.toThrow(`${place} is the log of a`);
      own.server.remove(log);
      expect(await own.look()).toMatchObject({ attached: 1, problems: [] });
    }
  });

  it('that cannot be read are named, and the others are attached', async () => {
    const own = await lake();
    own.server.put('web/a.parquet', objectOf(0, 100));
    own.server.put('web/b.parquet', Buffer.from('this is no file of Parquet'), nowMs);
    own.server.put('web/c.parquet', objectOf(200, 100));
    own.server.put('web/line\nend\r/\u2028.parquet', objectOf(400, 100));
    own.server.fault = ({ key }) =>
      key === 'web/c.parquet' ? { kind: 'status', status: 403, code: 'AccessDenied' } : undefined;
    const { attached, problems } = await own.look();
    expect(attached).toBe(2);
    expect(await own.numbers()).toEqual([...upTo(100), ...upTo(500, 400)]);
    const messages = new Map(problems.map(({ path, message }) => [path, message]));
    expect(messages.get('s3://logs/web/b.parquet')).toContain('does not end with "PAR1"');
    expect(messages.get('s3://logs/web/c.parquet')).toContain('403 AccessDenied');
    own.server.fault = () => undefined;
    expect(await own.look()).toMatchObject({ attached: 1 });
  });
});

/** Lines of text, and their compression. */
function linesOf(from: number, count: number): Buffer {
  return Buffer.from(
    upTo(from + count, from)
      .map((n) => `${new Date(day + 1000 * n).toISOString()} ${n}\n`)
      .join(''),
  );
}

const textFile = [
  "archive: { path: 's3://logs/text/**/*.log*', format: plain, regex: '^(?P<time>\\S+) (?P<n>\\d+)$' }",
  'fields: [{ name: time, timestamp: {} }, { name: n, type: int }, { name: host }]',
  '',
].join('\n');

it('equal objects that are imported are objects of their own, and one that was renamed is known', async () => {
  const own = await lake();
  const { server } = own;
  const definition = parseAgentFile(agentFile(', mode: import'), join(own.folder, 'copies.yaml'));
  const store = await own.archive.agent('copies', definition.schema);
  const openFile = openerOf(own.objects);
  const outcomes = async (...names: string[]): Promise<string[]> => {
    const files = names.map((name) => `s3://logs/web/${name}.parquet`);
    const equals = new EqualFiles(new Set(files), openFile);
    const options = { store, definition, timezone: 'UTC', now: () => nowMs, openFile };
    const summary = await loadFiles({ ...options, files, equals });
    return summary.files.map(({ outcome }) => outcome);
  };
  // All of them have the same ETag.
  const names = ['day=1/a', 'day=1/b', 'day=2/a'];
  for (const name of names) server.put(`web/${name}.parquet`, objectOf(0, 10), day);
  expect(await outcomes(...names)).toEqual(['loaded', 'loaded', 'loaded']);
  expect(await outcomes(...names)).toEqual(['known', 'known', 'known']);
  server.remove('web/day=1/a.parquet');
  server.put('web/day=1/moved.parquet', objectOf(0, 10), day);
  expect(await outcomes('day=1/moved', 'day=1/b', 'day=2/a')).toEqual(['known', 'known', 'known']);
});

describe('text objects', () => {
  it('are stored once, as a stream', async () => {
    const own = await lake();
    const { server } = own;
    const zstd = await openCompressor('zstd');
    const large = linesOf(0, 60_000);
    expect(large.length).toBeGreaterThan(1_500_000);
    server.put('text/host=a/1.log', large, day);
    server.put('text/host=b/2.log.gz', gzipSync(linesOf(60_000, 1000)), day + 1000);
    server.put('text/host=c/3.log.zst', zstd(linesOf(61_000, 1000), new Uint8Array(0)).slice(), day + 2000);
    const definition = parseAgentFile(textFile, join(own.folder, 'text.yaml'));
    const store = await own.archive.agent('text', definition.schema);
    const workers = new WorkerPool(0);
    const told: string[] = [];
    const importing = (): ArchiveImport =>
      new ArchiveImport({
        definition,
        archive: definition.archive!,
        store,
        dataFolder: undefined,
        objects: own.objects,
        workers,
        log: { info: () => {}, warn: () => {}, error: (_facts, message) => told.push(message) },
        now: () => nowMs,
        timezone: 'UTC',
        redefine: () => Promise.resolve(),
      });
    const runUntil = async (done: (status: ImportStatus) => boolean): Promise<void> => {
      const stop = new AbortController();
      const wakeUp = new WakeUp();
      const imports = importing();
      const running = imports.run(stop.signal, wakeUp);
      await expect.poll(() => done(imports.status())).toBe(true);
      stop.abort();
      wakeUp.call();
      await running;
    };
    /** The stored numbers, each of which should occur once. */
    const stored = async (): Promise<string> => {
      const lines = (await answer(store, { limit: 100_000 })).trimEnd().split('\n');
      const numbers = lines.map((line) => (JSON.parse(line) as { n: number }).n).sort((a, b) => a - b);
      const gap = numbers.findIndex((n, i) => n !== numbers[0]! + i);
      return gap < 0 ? `${numbers[0]} to ${numbers.at(-1)}` : `${numbers[gap - 1]} and then ${numbers[gap]}`;
    };
    // An answer that breaks off within a file is requested again; one that fails permanently fails only that file.
    let cuts = 0;
    server.fault = ({ method, key }) => {
      if (key.endsWith('.zst')) return { kind: 'status', status: 500, code: 'InternalError' };
      return method === 'GET' && key.endsWith('1.log') && ++cuts === 3
        ? { kind: 'cut', after: 1000 }
        : undefined;
    };
    await runUntil(({ filesLeft, files }) => files === 3 && filesLeft === 0);
    expect(await stored()).toBe('0 to 60999');
    expect(told).toHaveLength(1);
    expect(told[0]).toBe('cannot look at s3://logs/text/host=c/3.log.zst: 500, 4 times');
    server.fault = () => undefined;
    asked(server);
    await runUntil(({ filesLeft, files }) => files === 3 && filesLeft === 0);
    expect(await stored()).toBe('0 to 61999');
    // Of stored objects, only the beginning and the end are read.
    const again = asked(server);
    expect(again.bytes).toBeLessThan(large.length / 4);
    expect(JSON.parse(await answer(store, { limit: 1 }))).toMatchObject({ n: 61_999, host: 'c' });
    // An object that is written again with more lines continues where it ended.
    server.put('text/host=a/1.log', Buffer.concat([large, linesOf(62_000, 10)]), day + 5000);
    await runUntil(({ filesLeft, files, records }) => files === 3 && filesLeft === 0 && records === 10);
    expect(await stored()).toBe('0 to 62009');
    await workers.close();
  });
});
