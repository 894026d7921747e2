import { crc32 } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { fc } from '../cases.js';
import { DamageError } from '../../engine/core/errors.js';
import type { FieldType } from '../../engine/core/schema.js';
import type { ReadableFile, WritableFile } from '../../engine/store/disk/directory.js';
import { manifestVersion } from '../../engine/store/manifest/manifest-format.js';
import {
  manifestName,
  publishManifest,
  readNewestManifest,
} from '../../engine/store/manifest/manifest-file.js';
import {
  noCounters,
  nothingRetired,
  type Checkpoint,
  type Manifest,
  type SegmentEntry,
} from '../../engine/store/manifest/manifest.js';
import { MemoryDirectory } from '../storage-doubles/memory-directory.js';

const run = { partition: 498_702, firstOrdinal: 1, firstRow: 0, rows: 4 };

function segment(index: number): SegmentEntry {
  return {
    file: `dt=2026-11-21/${index}.parquet`,
    bytes: 1000 + index,
    rows: 70_000,
    rowGroupRows: [65_536, 4464],
    runs: [
      { partition: 498_700 + index, firstOrdinal: 1, firstRow: 0, rows: 69_000 },
      { partition: 498_701 + index, firstOrdinal: 2 ** 40 - 1000, firstRow: 69_000, rows: 1000 },
    ],
    timeMinMs: -5,
    timeMaxMs: index === 1 ? null : 1_795_219_200_000,
    footerOffset: 900,
    footerBytes: 92,
    footerChecksum: 2 ** 32 - 1,
    schemaVersion: 1,
    codec: index % 2 === 0 ? 'lz4' : 'zstd',
    gramFilterBytes: 64,
    valueFilterBytes: 32,
    summaryBytes: 16,
    headerBytes: 2044,
    replaces: ['hot/é"\n.arrows'],
    ...(index === 1 ? { liveFrom: 498_702, keepUntilMs: 1_795_305_600_000 } : {}),
  };
}

function loaded(offset: number): Checkpoint {
  return {
    headHash: 'cd'.repeat(32),
    headBytes: 1024,
    offset,
    contentHash: 'xxh64:0123456789abcdef',
    endsInLine: false,
    path: '/var/log/loaded.log',
    lastTimeMs: null,
    records: offset,
    rejected: 0,
  };
}

function sample(number: number, segments = 2): Manifest {
  return {
    number,
    agent: 'nginx',
    schemas: [
      {
        version: 1,
        schema: {
          fields: [
            { name: 'time', type: 'time' },
            { name: 'message', type: 'string', index: true, attached: { column: 'Message' } },
            { name: 'text', type: 'string', index: 'full' },
            { name: 'sent', type: 'time', attached: { column: 'sent_s', unit: 's' } },
          ],
        },
      },
    ],
    segments: Array.from({ length: segments }, (_, i) => segment(i)),
    hot: [
      {
        file: 'hot/1.arrows',
        schemaVersion: 1,
        committedBytes: null,
        foldedBytes: 8,
        runs: [],
        createdMs: 1,
      },
      {
        file: 'hot/2.arrows',
        schemaVersion: 1,
        committedBytes: 4096,
        foldedBytes: 4096,
        runs: [run],
        createdMs: 2,
      },
    ],
    attached: [
      { file: 'attached/1.list', bytes: 100, checksum: 7, files: 2, rows: 40, indexes: ['attached/2.index'] },
    ],
    attachedFrom: 498_000,
    nextOrdinals: [
      [498_700, 70_001],
      [498_702, 5],
    ],
    highestPartition: 498_702,
    ordinalsFrom: 2 ** 33 + 1,
    retired: { records: 12, bytes: 345, segments: 1, below: 498_690 },
    checkpoints: [
      {
        headHash: 'ab'.repeat(32),
        headBytes: 1024,
        offset: 5000,
        contentHash: null,
        endsInLine: true,
        path: '/var/log/nginx/access.log',
        lastTimeMs: 1_795_219_200_000,
        records: 10,
        rejected: 1,
      },
    ],
    loads: [
      {
        nowMs: 1_795_219_200_000,
        parts: [
          { from: null, until: loaded(5000), writtenMs: -1 },
          { from: loaded(5000), until: loaded(6000), writtenMs: 7 },
        ],
        runs: [
          { partition: 498_700, firstOrdinal: 1, rows: 69_000, timesSum: 2 ** 32 - 1 },
          { partition: 498_702, firstOrdinal: 4, rows: 1, timesSum: 0 },
        ],
        ...(segments === 1 ? {} : { beyond: { below: 498_701, keepUntilMs: 1_795_305_600_000 } }),
      },
    ],
    rejected: [{ file: 'rejected/1.jsonl', bytes: 10, lines: 1, checksum: 77 }],
    counters: { ...noCounters, records: 140_000, inputBytes: 2 ** 40 },
  };
}

async function published(...numbers: number[]): Promise<MemoryDirectory> {
  const directory = new MemoryDirectory();
  await directory.makeDirectory('nginx');
  for (const number of numbers) await publishManifest(directory, 'nginx', sample(number));
  return directory;
}

async function overwrite(
  directory: MemoryDirectory,
  path: string,
  position: number,
  bytes: Uint8Array,
): Promise<void> {
  const file = await directory.openWrite(path);
  await file.write(position, bytes);
  await file.close();
}

const newestPath = (number: number): string => `nginx/manifest-${String(number).padStart(16, '0')}`;

describe('publishManifest and readNewestManifest', () => {
  it('reads back the published manifest, and finds none before the first publication', async () => {
    const directory = new MemoryDirectory();
    expect(await readNewestManifest(directory, 'nginx')).toBeUndefined();
    await directory.makeDirectory('nginx');
    expect(await readNewestManifest(directory, 'nginx')).toBeUndefined();
    await publishManifest(directory, 'nginx', sample(1));
    expect(await readNewestManifest(directory, 'nginx')).toEqual(sample(1));
  });

  it('refuses to publish a manifest that could not be read back completely', async () => {
    const directory = await published(1);
    const good = sample(2);
    const [hot] = good.hot;
    const bad: [Partial<Manifest> & Record<string, unknown>, string][] = [
      [{ hot: [{ ...hot!, foldedBytes: -1 }] }, '"foldedBytes" should be a whole number'],
      [{ counters: { ...noCounters, records: NaN } }, '"records" should be a whole number'],
      [{ segments: [{ ...segment(0), footerBytes: 2 ** 60 }] }, '"footerBytes" should be a whole number'],
      [{ comment: 'what no reader knows' }, 'a part of it would be lost'],
      [{ schemas: [{ ...good.schemas[0]!, since: 7 } as never] }, 'a part of it would be lost'],
    ];
    for (const [changes, reason] of bad) {
      const publishing = publishManifest(directory, 'nginx', { ...good, ...changes });
      await expect(publishing).rejects.toMatchObject({ code: 'invalid' });
      await expect(publishing).rejects.toThrow(reason);
    }
    expect(await directory.list('nginx')).toEqual(['manifest-0000000000000001']);
    await publishManifest(directory, 'nginx', { ...good, retired: { ...nothingRetired } });
  });

  it('keeps the last two manifests, and removes leftovers of an interrupted publication', async () => {
    const directory = await published(1, 2, 3);
    await (await directory.create('nginx/manifest-0000000000000009.0badcafe.tmp')).close();
    expect((await readNewestManifest(directory, 'nginx'))!.number).toBe(3);
    await publishManifest(directory, 'nginx', sample(4));
    expect(await directory.list('nginx')).toEqual(['manifest-0000000000000003', 'manifest-0000000000000004']);
  });

  it('reads back any values that the types allow', async () => {
    const count = fc.nat(2 ** 48);
    const types: readonly FieldType[] = ['int', 'float', 'string', 'time'];
    const manifest = fc.record({
      agent: fc.string(),
      fields: fc.array(fc.constantFrom(...types), { minLength: 1, maxLength: 20 }),
      paths: fc.array(fc.string({ unit: 'grapheme' })),
      times: fc.array(fc.option(fc.integer({ min: -(2 ** 52), max: 2 ** 52 }))),
      count,
    });
    await fc.assert(
      fc.asyncProperty(manifest, async ({ agent, fields, paths, times, count: some }) => {
        const written: Manifest = {
          ...sample(1),
          agent,
          schemas: [
            { version: some, schema: { fields: fields.map((type, i) => ({ name: `f${i}`, type })) } },
          ],
          checkpoints: times.map((lastTimeMs, i) => ({
            ...sample(1).checkpoints[0]!,
            lastTimeMs,
            path: paths[i] ?? '',
          })),
          counters: { ...noCounters, inputBytes: some },
        };
        const directory = await published();
        await publishManifest(directory, 'nginx', written);
        expect(await readNewestManifest(directory, 'nginx')).toEqual(written);
      }),
    );
  });

  it('detects every flipped bit and every cut of the newest manifest, and does not fall back to the one before', async () => {
    const directory = await published(1, 2);
    const file = await directory.openRead(newestPath(2));
    const bytes = await file.read(0, await file.size());
    for (let at = 0; at < bytes.length; at++) {
      const flipped = bytes[at]! ^ (1 << (at % 8));
      await overwrite(directory, newestPath(2), at, Uint8Array.of(flipped));
      const failure = await readNewestManifest(directory, 'nginx').catch((error: unknown) => error);
      expect(failure).toBeInstanceOf(DamageError);
      expect(failure).toMatchObject({ path: 'memory:/nginx/manifest-0000000000000002' });
      await overwrite(directory, newestPath(2), at, bytes.subarray(at, at + 1));
    }
    expect(await readNewestManifest(directory, 'nginx')).toEqual(sample(2));
    const writer = await directory.openWrite(newestPath(2));
    for (let length = bytes.length - 1; length >= 0; length--) {
      await writer.truncate(length);
      await expect(readNewestManifest(directory, 'nginx')).rejects.toThrow('logstrata verify');
    }
  });

  it('refuses a manifest whose number differs from that of its file', async () => {
    const directory = await published(1);
    await directory.rename(newestPath(1), newestPath(7));
    await expect(readNewestManifest(directory, 'nginx')).rejects.toThrow('number 1');
  });

  it.each([
    [
      manifestVersion + 1,
      /^manifest \S+ was written by a newer version of logstrata: it has format version \d+, but this version knows \d+$/,
    ],
    [
      manifestVersion - 1,
      /^manifest \S+ was written by a version from before the first release: .*Export the records/,
    ],
  ])('refuses a manifest of format version %d, and says what to do', async (version, message) => {
    const directory = await published();
    const text = '{"anything":"else"}';
    const start = `logstrata-manifest ${version} ${text.length} `;
    const line = `${start}${crc32(text, crc32(start)).toString(16).padStart(8, '0')}\n`;
    const file = await directory.create(newestPath(1));
    await file.write(0, new TextEncoder().encode(line + text));
    await expect(readNewestManifest(directory, 'nginx')).rejects.toMatchObject({
      code: 'unsupported',
      message: expect.stringMatching(message) as string,
    });
  });

  it('reports a conflict to a second writer at whatever step the first one publishes', async () => {
    const directory = await published(1, 2);
    await expect(publishManifest(directory, 'nginx', sample(2))).rejects.toMatchObject({ code: 'conflict' });
    await expect(publishManifest(directory, 'nginx', sample(4))).rejects.toMatchObject({ code: 'conflict' });
    const results = await Promise.allSettled([
      publishManifest(directory, 'nginx', { ...sample(3), agent: 'a' }),
      publishManifest(directory, 'nginx', { ...sample(3), agent: 'b' }),
    ]);
    expect(results.filter(({ status }) => status === 'fulfilled')).toHaveLength(1);
    expect((await directory.list('nginx')).filter((name) => name.endsWith('tmp'))).toEqual([]);
  });

  it('withdraws a manifest whose number was free only because others had already passed it', async () => {
    class OvertakenDirectory extends MemoryDirectory {
      overtaken = 0;
      override async create(path: string): Promise<WritableFile> {
        const first = this.overtaken;
        this.overtaken = 0;
        for (let number = first; first > 0 && number < first + 3; number++)
          await publishManifest(this, 'nginx', sample(number));
        return super.create(path);
      }
    }
    const directory = new OvertakenDirectory();
    await directory.makeDirectory('nginx');
    await publishManifest(directory, 'nginx', sample(1));
    directory.overtaken = 2;
    await expect(publishManifest(directory, 'nginx', sample(2))).rejects.toMatchObject({ code: 'conflict' });
    const manifests = (await directory.list('nginx')).filter((name) => !name.endsWith('tmp'));
    expect(manifests).toEqual([3, 4].map(manifestName));
  });

  it('reads the folder again if the writer removed a manifest before it could be opened', async () => {
    class OvertakenDirectory extends MemoryDirectory {
      overtakings = 3;
      number = 1;
      override async openRead(path: string): Promise<ReadableFile> {
        if (this.overtakings-- > 0) {
          await publishManifest(this, 'nginx', sample(++this.number));
          await publishManifest(this, 'nginx', sample(++this.number));
        }
        return super.openRead(path);
      }
    }
    const directory = new OvertakenDirectory();
    await directory.makeDirectory('nginx');
    await publishManifest(directory, 'nginx', sample(1));
    expect((await readNewestManifest(directory, 'nginx'))!.number).toBe(7);
    expect(directory.counts.get('openRead')).toBe(4);
  });

  it('leaves the old or the new state after a crash at any step', async () => {
    const whole = await published(1, 2);
    const before = whole.mutations;
    await publishManifest(whole, 'nginx', sample(3));
    const steps = whole.mutations - before;
    expect(steps).toBeGreaterThanOrEqual(6);
    for (let step = 1; step <= steps; step++) {
      for (let seed = 0; seed < 12; seed++) {
        const directory = await published(1, 2);
        directory.setFaults({ crashAtOperation: directory.mutations + step, seed });
        const done = await publishManifest(directory, 'nginx', sample(3)).then(
          () => true,
          () => false,
        );
        expect(directory.crashed).toBe(true);
        const mode = seed === 0 ? 'lost' : seed === 1 ? 'kept' : { seed };
        const after = directory.crash(mode);
        const found = await readNewestManifest(after, 'nginx');
        expect(found).toEqual(found!.number === 3 ? sample(3) : sample(2));
        if (done) expect(found!.number).toBe(3);
        await publishManifest(after, 'nginx', sample(found!.number + 1));
        expect((await after.list('nginx')).filter((name) => name.endsWith('tmp'))).toEqual([]);
      }
    }
  });

  it('keeps the old state when the disk is full or fails, and can publish afterwards', async () => {
    const whole = await published(1, 2);
    const before = { mutations: whole.mutations, bytesWritten: whole.bytesWritten };
    await publishManifest(whole, 'nginx', sample(3));
    const bytes = whole.bytesWritten - before.bytesWritten;
    for (const freeBytes of [0, 1, bytes - 1]) {
      const directory = await published(1, 2);
      directory.setFaults({ freeBytes: directory.bytesWritten + freeBytes });
      await expect(publishManifest(directory, 'nginx', sample(3))).rejects.toMatchObject({
        code: 'disk_full',
      });
      directory.setFaults({});
      expect(await readNewestManifest(directory, 'nginx')).toEqual(sample(2));
      expect(await directory.list('nginx')).toHaveLength(2);
      await publishManifest(directory, 'nginx', sample(3));
    }
    for (let step = 1; step <= 4; step++) {
      const directory = await published(1, 2);
      directory.setFaults({ failAtOperation: directory.mutations + step });
      await expect(publishManifest(directory, 'nginx', sample(3))).rejects.toMatchObject({ code: 'io' });
      expect(await readNewestManifest(directory, 'nginx')).toEqual(sample(2));
      await publishManifest(directory, 'nginx', sample(3));
    }
  });

  it('makes a state durable before a reader answers from it', async () => {
    const directory = await published(1);
    directory.setFaults({ failAtOperation: directory.mutations + 5 });
    await expect(publishManifest(directory, 'nginx', sample(2))).rejects.toMatchObject({ code: 'io' });
    const seen = (await readNewestManifest(directory, 'nginx'))!.number;
    expect((await readNewestManifest(directory.crash('lost'), 'nginx'))!.number).toBe(seen);
  });

  it('holds thousands of segments', async () => {
    const directory = await published();
    const many = sample(1, 5000);
    await publishManifest(directory, 'nginx', many);
    expect(await readNewestManifest(directory, 'nginx')).toEqual(many);
  });
});
