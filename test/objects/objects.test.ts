import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { readForeignBytes } from '../../engine/foreign/foreign-source.js';
import { runsOf } from '../../engine/objects/block-cache.js';
import type { ObjectSettings, ObjectStorage } from '../../engine/objects/object-storage.js';
import { LogstrataError } from '../../engine/core/errors.js';
import { attemptsMax, objectBlockBytes } from '../../engine/core/limits.js';
import { storageOf } from './object-storage.js';
import { accessKey, S3Server, type SeenRequest } from './s3-server.js';

const key = 'nginx/day=1/a b+ü.parquet';
/** Forty blocks and a half, more than a thread caches in memory, where each byte differs from the one a block before. */
const content = Uint8Array.from({ length: 40.5 * objectBlockBytes }, (_, i) => (i * 7 + (i >> 16)) & 255);

interface Opened {
  readonly server: S3Server;
  readonly storage: ObjectStorage;
  readonly folder: string;
  readonly path: string;
}

async function opened(settings: Partial<ObjectSettings> = {}): Promise<Opened> {
  const server = await S3Server.start();
  const folder = mkdtempSync(join(tmpdir(), 'logstrata-objects-'));
  const storage = storageOf(server, folder, settings);
  onTestFinished(async () => {
    await storage.close();
    await server.stop();
    rmSync(folder, { recursive: true });
  });
  server.put(key, content);
  return { server, storage, folder, path: server.pathOf(key) };
}

/** Reads bytes of the object like threads do: blocks that are not on this machine are found missing. */
async function read(
  { storage, server, path }: Opened,
  at: number,
  length: number,
  planned: readonly { from: number; to: number }[] = [{ from: at, to: at + length }],
): Promise<Uint8Array> {
  const version = { path, bytes: content.length, etag: server.etagOf(key) };
  return storage.withBytes(version, planned, (place) => {
    const target = new Uint8Array(length);
    const bytes = readForeignBytes(place, at, target);
    return Promise.resolve(target.subarray(0, bytes));
  });
}

/** Whether these are the bytes of the object from `at` on; a matcher takes seconds for megabytes. */
function expectSame(bytes: Uint8Array, at: number, length: number): void {
  expect(Buffer.compare(bytes, content.subarray(at, at + length))).toBe(0);
}

const rangesOf = (seen: readonly SeenRequest[]): (number | undefined)[][] =>
  seen.map(({ range }) => [range?.from, range?.to]);
const block = (from: number, to: number): number[] => [from * objectBlockBytes, to * objectBlockBytes];

/** Files of blocks. */
function blockFiles(folder: string): string[] {
  const root = join(folder, 'objects');
  if (!existsSync(root)) return [];
  return readdirSync(root, { recursive: true, encoding: 'utf8' })
    .map((path) => join(root, path))
    .filter((path) => statSync(path).isFile());
}

describe('objects', () => {
  it('are listed in pages, with keys of any characters', async () => {
    const { server, storage } = await opened();
    server.pageKeys = 2;
    const keys = ['nginx/1', 'nginx/2 + %41', 'nginx/3\u0001<&>', 'nginx/ä/4', 'other/5'];
    for (const each of keys) server.put(each, new Uint8Array(3));
    const found: string[] = [];
    for await (const page of storage.list(server.pathOf('nginx/')))
      found.push(...page.map(({ path }) => path));
    const expected = [...keys.slice(0, 4), key].sort().map((each) => server.pathOf(each));
    expect(found).toEqual(expected);
    expect(server.seen).toHaveLength(3);
  });

  it('are read by version with few requests, once, and cached', async () => {
    const some = await opened();
    const { server, folder } = some;
    // Near each other, and far from each other.
    const planned = [
      { from: 10, to: 20 },
      { from: 2 * objectBlockBytes, to: 2 * objectBlockBytes + 1 },
      { from: content.length - 5, to: content.length },
    ];
    expect(await read(some, 10, 10, planned)).toEqual(content.slice(10, 20));
    expect(rangesOf(server.seen).sort()).toEqual([
      block(0, 3),
      [...block(40, 41).slice(0, 1), content.length],
    ]);
    for (const { ifMatch } of server.seen) expect(ifMatch).toBe(server.etagOf(key));
    expect(blockFiles(folder)).toHaveLength(4);
    // Cached bytes are not requested again, by another process either.
    const again = { ...some, storage: storageOf(server, folder) };
    expect(await read(again, 2 * objectBlockBytes, 100)).toEqual(
      content.slice(2 * objectBlockBytes, 2 * objectBlockBytes + 100),
    );
    expect(await read(again, content.length - 5, 50)).toEqual(content.slice(-5));
    expect(server.seen).toHaveLength(2);
    await again.storage.close();
  });

  it('are requested once if several readers need them at the same time', async () => {
    const some = await opened();
    const readings = [0, 1, 2, 1].map((at) => read(some, at * objectBlockBytes, objectBlockBytes));
    for (const [i, bytes] of (await Promise.all(readings)).entries())
      expectSame(bytes, [0, 1, 2, 1][i]! * objectBlockBytes, objectBlockBytes);
    expect(rangesOf(some.server.seen)).toEqual([block(0, 3)]);
  });

  it('are read ahead in growing pieces if the bytes needed are not known beforehand', async () => {
    const some = await opened();
    expectSame(await read(some, 0, content.length, []), 0, content.length);
    expect(rangesOf(some.server.seen)).toEqual([
      block(0, 1),
      block(1, 3),
      block(3, 7),
      block(7, 15),
      block(15, 31),
      [block(31, 32)[0], content.length],
    ]);
  });

  it('are split into requests of limited size, across small gaps', () => {
    expect(runsOf([5, 1, 2, 9, 20])).toEqual([
      { from: 1, to: 10 },
      { from: 20, to: 21 },
    ]);
    const many = Array.from({ length: 200 }, (_, i) => i);
    expect(runsOf(many).map(({ from, to }) => to - from)).toEqual([64, 64, 64, 8]);
  });

  it('take no more of the disk than their limit', async () => {
    const some = await opened({ cacheBytes: 6 * objectBlockBytes });
    for (let at = 0; at < 20; at++) {
      expect(await read(some, at * objectBlockBytes, 10)).toEqual(
        content.slice(at * objectBlockBytes, at * objectBlockBytes + 10),
      );
      expect(blockFiles(some.folder).length).toBeLessThanOrEqual(6);
    }
    expect(some.server.seen).toHaveLength(20);
    // The last blocks are cached, the first ones are not.
    await read(some, 19 * objectBlockBytes, 10);
    expect(some.server.seen).toHaveLength(20);
    await read(some, 0, 10);
    expect(some.server.seen).toHaveLength(21);
    // The blocks that one read needs stay, however many they are.
    expectSame(await read(some, 0, content.length), 0, content.length);
  });

  it('are fetched again if the cached blocks are damaged, cut off or missing', async () => {
    const some = await opened();
    await read(some, 0, 4 * objectBlockBytes);
    const fileOf = (at: number): string => blockFiles(some.folder).find((path) => path.endsWith(`/${at}`))!;
    const [first, second, third, fourth] = [0, 1, 2, 3].map(fileOf);
    const flipped = readFileSync(first!);
    flipped[flipped.length - 1]! ^= 1;
    writeFileSync(fourth!, readFileSync(first!));
    writeFileSync(first!, flipped);
    writeFileSync(second!, readFileSync(second!).subarray(0, 1000));
    rmSync(third!);
    await read(some, 4 * objectBlockBytes, 36 * objectBlockBytes);
    some.server.seen.length = 0;
    expectSame(await read(some, 0, 4 * objectBlockBytes), 0, 4 * objectBlockBytes);
    expect(rangesOf(some.server.seen)).toEqual([block(0, 1), block(1, 2), block(2, 3), block(3, 4)]);
  });

  it('fail with an error if the disk cannot cache anything', async () => {
    const some = await opened();
    const version = { path: some.path, bytes: content.length, etag: some.server.etagOf(key) };
    const reading = some.storage.withBytes(version, [], ({ copy, path }) => {
      rmSync(copy!.folder, { recursive: true, force: true });
      return Promise.reject(new LogstrataError('absent', 'of the test', { path, offset: 0 }));
    });
    await expect(reading).rejects.toMatchObject({ code: 'io', path: some.path });
    expect(some.server.seen).toHaveLength(attemptsMax);
  });
});

describe('failures of an object storage', () => {
  it('that are temporary are retried, and reported if they last', async () => {
    const some = await opened({ limits: { msMax: 300 } });
    const { server, path } = some;
    const faults = [
      { kind: 'status', status: 503, code: 'SlowDown' },
      { kind: 'cut', after: 1000 },
      { kind: 'stall', after: 100 },
    ] as const;
    let next = 0;
    server.fault = () => faults[next++];
    expect(await read(some, 0, 10)).toEqual(content.slice(0, 10));
    expect(server.seen.map(({ status, bytesSent }) => [status, bytesSent])).toMatchObject([
      [503, expect.any(Number)],
      [206, 1000],
      [206, 100],
      [206, objectBlockBytes],
    ]);
    const expected: [(typeof faults)[number], RegExp][] = [
      [faults[0], /503 SlowDown.*, 4 times$/],
      [faults[1], /, 4 times$/],
      [faults[2], /no complete answer within 0\.3 s, 4 times$/],
    ];
    for (const [fault, message] of expected) {
      server.seen.length = 0;
      server.fault = () => fault;
      const error: unknown = await read(some, 5 * objectBlockBytes, 10).catch((caught: unknown) => caught);
      expect(error).toMatchObject({ code: 'io', path });
      expect((error as Error).message).toMatch(message);
      expect((error as Error).message).toContain(`cannot read ${path}: `);
      expect(server.seen).toHaveLength(4);
    }
  });

  it('that are permanent are reported at once, with a remedy', async () => {
    const some = await opened();
    const { server, storage, path } = some;
    server.fault = () => ({ kind: 'status', status: 403, code: 'AccessDenied' });
    await expect(read(some, 0, 10)).rejects.toThrow(/cannot read .*: 403 AccessDenied: .*s3:GetObject/);
    await expect(storage.stamp(path)).rejects.toThrow(/cannot look at .*: 403 \(.*s3:GetObject/);
    expect(server.seen).toHaveLength(2);
    server.fault = () => undefined;
    await expect(storage.list('s3://elsewhere/a').next()).rejects.toThrow(
      /cannot list s3:\/\/elsewhere\/a: 404 NoSuchBucket/,
    );
    await expect(storage.stamp(server.pathOf('none'))).rejects.toMatchObject({ code: 'not_found' });
  });

  it('include wrong or missing credentials', async () => {
    const some = await opened();
    process.env['AWS_SECRET_ACCESS_KEY'] = 'another';
    onTestFinished(() => {
      process.env['AWS_SECRET_ACCESS_KEY'] = accessKey.secret;
      process.env['AWS_ACCESS_KEY_ID'] = accessKey.id;
    });
    await expect(read(some, 0, 10)).rejects.toThrow(
      /403 SignatureDoesNotMatch: .*secret access key does not belong/,
    );
    delete process.env['AWS_SECRET_ACCESS_KEY'];
    delete process.env['AWS_ACCESS_KEY_ID'];
    const without = storageOf(some.server, some.folder);
    delete process.env['AWS_SECRET_ACCESS_KEY'];
    delete process.env['AWS_ACCESS_KEY_ID'];
    process.env['AWS_EC2_METADATA_DISABLED'] = 'true';
    await expect(without.stamp(some.path)).rejects.toThrow(/CredentialsProviderError: .*AWS_ACCESS_KEY_ID/);
    expect(some.server.seen).toHaveLength(1);
    await without.close();
  });

  it('include a missing server', async () => {
    const some = await opened();
    const nowhere = storageOf({ endpoint: 'http://127.0.0.1:9' }, some.folder);
    await expect(nowhere.stamp(some.path)).rejects.toThrow(/ECONNREFUSED.*s3: endpoint.*, 4 times/);
    await nowhere.close();
  });
});

describe('an object that changes', () => {
  it.each([true, false])(
    'is never mixed with its earlier content (the server supports If-Match: %s)',
    async (goesByIfMatch) => {
      const some = await opened();
      const { server, storage, path } = some;
      server.goesByIfMatch = goesByIfMatch;
      const version = { path, bytes: content.length, etag: server.etagOf(key) };
      const readBlock = (at: number): Promise<number> =>
        storage.withBytes(version, [], (place) => {
          const target = new Uint8Array(1);
          readForeignBytes(place, at * objectBlockBytes, target);
          return Promise.resolve(target[0]!);
        });
      expect(await readBlock(0)).toBe(content[0]);
      server.put(
        key,
        content.map((byte) => byte ^ 255),
      );
      const error: unknown = await readBlock(9).catch((caught: unknown) => caught);
      expect(error).toMatchObject({ code: 'damaged', path });
      expect((error as Error).message).toContain('its ETag differs');
      // Blocks that were fetched before belong to the same version, and are still cached.
      expect(await readBlock(0)).toBe(content[0]);
      server.remove(key);
      await expect(readBlock(9)).rejects.toThrow('does not exist any more');
    },
  );
});
