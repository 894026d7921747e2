import { RecordBatchReader, tableFromIPC } from 'apache-arrow';
import { describe, expect, it } from 'vitest';
import { fc } from '../cases.js';
import { columnValue, type RecordBatch } from '../../engine/columns/column.js';
import { positionFromInt64, type Position } from '../../engine/core/cursor.js';
import { DamageError } from '../../engine/core/errors.js';
import { batchFromRows, type Value } from '../model/rows.js';
import { makeSchema, type Schema } from '../../engine/core/schema.js';
import { decodeBatch, encodeBatch } from '../../engine/store/hot/batch-codec.js';
import { type OrdinalRun, noCounters } from '../../engine/store/manifest/manifest.js';
import {
  HotSegmentWriter,
  readHotSegment,
  scanHotSegment,
  type HotBatchMeta,
} from '../../engine/store/hot/hot-segment-file.js';
import { MemoryDirectory } from '../storage-doubles/memory-directory.js';
import { datasets, strangeSchema } from '../model/arbitraries.js';
import { makeColumn } from '../model/model-column.js';
import { seededRandom } from '../model/random.js';

const schema: Schema = makeSchema([
  { name: 'time', type: 'time' },
  { name: 'status', type: 'int' },
  { name: 'ratio', type: 'float' },
  { name: 'message', type: 'string' },
]);

const path = 'hot/1.arrows';

function rowsOf(batch: RecordBatch): Value[][] {
  return Array.from({ length: batch.length }, (_, row) =>
    batch.columns.map((column) => columnValue(column, row)),
  );
}

function sampleRows(batch: number, count: number): Value[][] {
  return Array.from({ length: count }, (_, i) => [
    BigInt(1_795_219_200_000 + batch * 1000 + i),
    i % 3 === 0 ? null : BigInt(batch * 100 + i),
    i % 4 === 0 ? null : i / 7,
    i % 5 === 0 ? null : `line ${batch}/${i} – größe`,
  ]);
}

const meta = (batch: number): HotBatchMeta => ({
  checkpoints: [
    {
      headHash: 'logstrata:crc32=ffffffff;bytes=000000000001;offset=000000000000001',
      headBytes: 10,
      offset: batch * 100,
      contentHash: null,
      endsInLine: false,
      path: '/var/log/größe.log',
      lastTimeMs: -1.5,
      records: 5,
      rejected: 0,
    },
  ],
  rejected: batch === 0 ? null : { file: 'rejected/1.jsonl', bytes: batch, lines: 1, checksum: 5 },
  counters: { ...noCounters, records: 5, inputBytes: 100 },
});

const runsOf = (batch: number, rows: number): OrdinalRun[] => [
  { partition: 498_672, firstOrdinal: 1 + batch * (rows - 2), rows: rows - 2 },
  { partition: 2 ** 24 - 1, firstOrdinal: 2 ** 40 - 1000 + batch * 2, rows: 2 },
];

interface Written {
  readonly directory: MemoryDirectory;
  /** Length of the file after the schema, and after each batch. */
  readonly ends: number[];
}

async function write(batches: number, rows = 5): Promise<Written> {
  const directory = new MemoryDirectory();
  await directory.makeDirectory('hot');
  const writer = await HotSegmentWriter.create(directory, path, schema);
  const ends = [writer.bytes];
  for (let i = 0; i < batches; i++) {
    await writer.append(batchFromRows(schema, sampleRows(i, rows)), runsOf(i, rows), meta(i));
    ends.push(writer.bytes);
  }
  await writer.close();
  await directory.syncDirectory('hot');
  return { directory, ends };
}

async function content(directory: MemoryDirectory): Promise<Uint8Array> {
  const file = await directory.openRead(path);
  return file.read(0, await file.size());
}

async function replace(directory: MemoryDirectory, bytes: Uint8Array): Promise<void> {
  const file = await directory.openWrite(path);
  await file.truncate(bytes.length);
  await file.write(0, bytes);
  await file.close();
}

describe('hot segment', () => {
  it('reads back every batch with its runs and its commit data', async () => {
    const { directory, ends } = await write(3);
    for (const committed of [null, ends[3]!]) {
      const read = await readHotSegment(directory, path, schema, committed);
      expect(read.endBytes).toBe(ends[3]);
      expect(read.tornBytes).toBe(0);
      expect(read.batches).toHaveLength(3);
      read.batches.forEach((batch, i) => {
        expect(rowsOf(batch.batch)).toEqual(sampleRows(i, 5));
        expect(batch.runs).toEqual(runsOf(i, 5));
        expect(batch.meta).toEqual(meta(i));
        expect([batch.offset, batch.offset + batch.bytes]).toEqual([ends[i], ends[i + 1]]);
      });
    }
  });

  it('is an Arrow stream that other programs can read', async () => {
    const { directory } = await write(3);
    const bytes = await content(directory);
    const table = tableFromIPC(bytes);
    expect(table.schema.fields.map(({ name, type, nullable }) => [name, String(type), nullable])).toEqual([
      ['_cursor', 'Int64', false],
      ['time', 'Timestamp<MILLISECOND, UTC>', true],
      ['status', 'Int64', true],
      ['ratio', 'Float64', true],
      ['message', 'Utf8', true],
    ]);
    expect(table.numRows).toBe(15);
    const expected = [0, 1, 2].flatMap((batch) => sampleRows(batch, 5));
    expect(Array.from(table.getChild('message')!)).toEqual(expected.map((row) => row[3]));
    expect(Array.from(table.getChild('status')!)).toEqual(expected.map((row) => row[1]));
    expect(Array.from(table.getChild('ratio')!)).toEqual(expected.map((row) => row[2]));
    expect(Array.from(table.getChild('time')!, Number)).toEqual(expected.map((row) => Number(row[0])));
    const cursors = Array.from(table.getChild('_cursor')!, positionFromInt64);
    const positions = [0, 1, 2].flatMap((batch) =>
      runsOf(batch, 5).flatMap(({ partition, firstOrdinal, rows }) =>
        Array.from({ length: rows }, (_, i): Position => ({ partition, ordinal: firstOrdinal + i })),
      ),
    );
    expect(cursors).toEqual(positions);
    expect([...RecordBatchReader.from(bytes)].map((batch) => batch.numRows)).toEqual([5, 5, 5]);
  });

  it('reads on from the end of an earlier read, and only the bytes after it', async () => {
    const { directory, ends } = await write(3);
    const before = directory.bytesRead;
    const rest = await readHotSegment(directory, path, schema, null, ends[2]!);
    expect(rest.batches.map(({ batch }) => rowsOf(batch))).toEqual([sampleRows(2, 5)]);
    expect(rest.endBytes).toBe(ends[3]);
    expect(directory.bytesRead - before).toBe(ends[3]! - ends[2]!);
    const nothing = await readHotSegment(directory, path, schema, ends[3]!, ends[3]);
    expect(nothing).toEqual({ batches: [], endBytes: ends[3], tornBytes: 0 });
    const committed = await readHotSegment(directory, path, schema, ends[1]!);
    expect(committed.batches).toHaveLength(1);
    expect(committed.tornBytes).toBe(ends[3]! - ends[1]!);
  });

  it('continues after a restart, cutting off a torn tail', async () => {
    const { directory, ends } = await write(2);
    const bytes = await content(directory);
    await replace(directory, bytes.subarray(0, bytes.length - 9));
    const { endBytes, tornBytes } = await readHotSegment(directory, path, schema, null);
    expect([endBytes, tornBytes]).toEqual([ends[1], ends[2]! - ends[1]! - 9]);
    const writer = await HotSegmentWriter.reopen(directory, path, schema, endBytes);
    expect(await directory.size(path)).toBe(endBytes);
    await writer.append(batchFromRows(schema, sampleRows(7, 4)), runsOf(7, 4), meta(7));
    const read = await readHotSegment(directory.crash('lost'), path, schema, writer.bytes);
    expect(read.batches.map(({ batch }) => rowsOf(batch))).toEqual([sampleRows(0, 5), sampleRows(7, 4)]);
    await replaceAndRefuse(endBytes);
  });

  async function replaceAndRefuse(endBytes: number): Promise<void> {
    const { directory } = await write(1);
    const bytes = await content(directory);
    await replace(directory, bytes.subarray(0, bytes.length - 1));
    await expect(HotSegmentWriter.reopen(directory, path, schema, endBytes)).rejects.toBeInstanceOf(
      DamageError,
    );
  }

  it('treats every cut as a torn batch, or as damage if the bytes were committed', async () => {
    const { directory, ends } = await write(3, 3);
    const bytes = await content(directory);
    for (let cut = 0; cut < bytes.length; cut++) {
      await replace(directory, bytes.subarray(0, cut));
      await expect(readHotSegment(directory, path, schema, bytes.length)).rejects.toMatchObject({
        code: 'damaged',
        message: expect.stringContaining(path),
      });
      if (cut < ends[0]!) {
        await expect(readHotSegment(directory, path, schema, null)).rejects.toMatchObject({ offset: 0 });
        continue;
      }
      const whole = ends.filter((end) => end <= cut).length - 1;
      const read = await readHotSegment(directory, path, schema, null);
      expect(read.batches).toHaveLength(whole);
      expect([read.endBytes, read.tornBytes]).toEqual([ends[whole], cut - ends[whole]!]);
    }
  });

  it('finds every flipped bit, and tells damage from a torn tail by a valid batch after it', async () => {
    const { directory, ends } = await write(3, 3);
    const bytes = await content(directory);
    for (let at = 0; at < bytes.length; at++) {
      const flipped = bytes.slice();
      flipped[at]! ^= 1 << (at % 8);
      await replace(directory, flipped);
      const bad = ends.findIndex((end) => at < end);
      const offset = bad === 0 ? 0 : ends[bad - 1]!;
      await expect(readHotSegment(directory, path, schema, bytes.length)).rejects.toMatchObject({ offset });
      if (bad === 3) {
        const read = await readHotSegment(directory, path, schema, null);
        expect([read.batches.length, read.endBytes]).toEqual([2, ends[2]]);
      } else {
        await expect(readHotSegment(directory, path, schema, null)).rejects.toMatchObject({ offset });
      }
    }
  });

  it('names the records between which the damage lies, and still returns the intact ones', async () => {
    const { directory, ends } = await write(3);
    const bytes = await content(directory);
    bytes.fill(0, ends[1]! + 100, ends[1]! + 200);
    await replace(directory, bytes);
    const scanned = await scanHotSegment(directory, path, schema, { committedBytes: null, foldedBytes: 0 });
    expect(scanned.batches.map(({ batch }) => rowsOf(batch))).toEqual([sampleRows(0, 5), sampleRows(2, 5)]);
    expect(scanned.endBytes).toBe(ends[3]);
    expect(scanned.damages).toEqual([
      {
        offset: ends[1],
        bytes: ends[2]! - ends[1]!,
        reason: 'a batch is incomplete',
        after: { partition: 2 ** 24 - 1, ordinal: 2 ** 40 - 999 },
        before: { partition: 498_672, ordinal: 7 },
      },
    ]);
    await expect(readHotSegment(directory, path, schema, null)).rejects.toThrow(
      'between record fffffffffffffc19 and record 079bf00000000007',
    );
  });

  it('does not mistake the bytes of a batch inside a record for a batch', async () => {
    const { directory, ends } = await write(1);
    const batch = (await content(directory)).subarray(ends[0]!, ends[1]!);
    const bytes = await content(directory);
    const torn = new Uint8Array(ends[1]! + 8 + batch.length);
    torn.set(bytes.subarray(0, ends[1]!));
    torn.set(batch, ends[1]! + 8);
    await replace(directory, torn);
    const read = await readHotSegment(directory, path, schema, null);
    expect([read.batches.length, read.endBytes, read.tornBytes]).toEqual([1, ends[1], 8 + batch.length]);
  });

  it('refuses a file that was written with other fields', async () => {
    const { directory } = await write(1);
    const other = makeSchema([...schema.fields.slice(0, 3), { name: 'message', type: 'int' }]);
    await expect(readHotSegment(directory, path, other, null)).rejects.toThrow('it has the fields');
  });

  it('is unusable after a failed write or sync, and intact up to its last batch', async () => {
    for (const step of [1, 2]) {
      for (let seed = 0; seed < 20; seed++) {
        const { directory, ends } = await write(1);
        const writer = await HotSegmentWriter.reopen(directory, path, schema, ends[1]!);
        directory.setFaults({ failAtOperation: directory.mutations + step, seed });
        const batch = batchFromRows(schema, sampleRows(1, 5));
        await expect(writer.append(batch, runsOf(1, 5), meta(1))).rejects.toMatchObject({ code: 'io' });
        expect(writer.bytes).toBe(ends[1]);
        await expect(writer.append(batch, runsOf(1, 5), meta(1))).rejects.toMatchObject({
          code: 'closed',
          offset: ends[1],
        });
        await writer.close();
        const after = directory.crash({ seed });
        expect((await readHotSegment(after, path, schema, writer.bytes)).batches).toHaveLength(1);
      }
    }
  });

  it('holds every acknowledged batch after a crash at any step, and possibly the batch being written', async () => {
    for (let step = 1; step <= 4; step++) {
      for (let seed = 0; seed < 25; seed++) {
        const { directory, ends } = await write(1);
        const writer = await HotSegmentWriter.reopen(directory, path, schema, ends[1]!);
        directory.setFaults({ crashAtOperation: directory.mutations + step });
        let acknowledged = 1;
        try {
          for (let i = 1; i <= 2; i++) {
            await writer.append(batchFromRows(schema, sampleRows(i, 5)), runsOf(i, 5), meta(i));
            acknowledged++;
          }
        } catch {
          expect(directory.crashed).toBe(true);
        }
        const read = await readHotSegment(directory.crash({ seed }), path, schema, null);
        expect([acknowledged, acknowledged + 1]).toContain(read.batches.length);
        read.batches.forEach(({ batch }, i) => expect(rowsOf(batch)).toEqual(sampleRows(i, 5)));
      }
    }
  });

  it('refuses a batch that is too large before writing anything', async () => {
    const directory = new MemoryDirectory();
    const strings = makeSchema([{ name: 'message', type: 'string' }]);
    const writer = await HotSegmentWriter.create(directory, 'f', strings);
    const before = directory.mutations;
    const bytes = new Uint8Array(150 * 1024 * 1024);
    const offsets = Uint32Array.of(0, bytes.length, bytes.length);
    const column = { kind: 'bytes', length: 2, offsets, bytes, validity: null } as const;
    const values = {
      kind: 'dictionary',
      length: 2,
      codes: Uint8Array.of(0, 0),
      values: column,
      validity: null,
    } as const;
    const runs = [{ partition: 5, firstOrdinal: 1, rows: 2 }];
    await expect(writer.append({ length: 2, columns: [values] }, runs, meta(0))).rejects.toMatchObject({
      code: 'limit',
    });
    expect(directory.mutations).toBe(before);
    await writer.append(batchFromRows(strings, [['small'], [null]]), runs, meta(0));
    expect((await readHotSegment(directory, 'f', strings, null)).batches).toHaveLength(1);
  });

  it('stores any values, in any column layout', async () => {
    await fc.assert(
      fc.asyncProperty(datasets(40), fc.nat(), async (dataset, seed) => {
        const random = seededRandom(seed);
        const { records } = dataset;
        const columns = strangeSchema.fields.map((field, i) =>
          makeColumn(
            field.type,
            records.map(({ values }) => values[i]!),
            random,
          ),
        );
        const runs: OrdinalRun[] = records.map(({ position }) => ({
          partition: position.partition,
          firstOrdinal: position.ordinal,
          rows: 1,
        }));
        const directory = new MemoryDirectory();
        const writer = await HotSegmentWriter.create(directory, 'f', strangeSchema);
        const batch = { length: records.length, columns };
        await writer.append(batch, runs, meta(1));
        const [read] = (await readHotSegment(directory, 'f', strangeSchema, writer.bytes)).batches;
        expect(rowsOf(read!.batch)).toEqual(rowsOf(batch));
        expect(read!.runs).toEqual(runs);
        expect(rowsOf(decodeBatch(strangeSchema, encodeBatch(strangeSchema, batch)))).toEqual(rowsOf(batch));
      }),
    );
  });
});

describe('encodeBatch and decodeBatch', () => {
  it('refuses bytes that are not exactly one whole batch', () => {
    const bytes = encodeBatch(schema, batchFromRows(schema, sampleRows(0, 4)));
    expect(rowsOf(decodeBatch(schema, bytes))).toEqual(sampleRows(0, 4));
    const shifted = new Uint8Array(bytes.length + 3);
    shifted.set(bytes, 3);
    expect(rowsOf(decodeBatch(schema, shifted.subarray(3)))).toEqual(sampleRows(0, 4));
    for (let at = 0; at < bytes.length; at += 7) {
      const flipped = bytes.slice();
      flipped[at]! ^= 4;
      expect(() => decodeBatch(schema, flipped)).toThrow(DamageError);
      expect(() => decodeBatch(schema, bytes.subarray(0, at))).toThrow(DamageError);
    }
    const other = makeSchema(schema.fields.slice(1));
    expect(() => decodeBatch(other, bytes)).toThrow(DamageError);
  });
});
