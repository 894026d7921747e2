import { describe, expect, test } from 'vitest';
import { isWhole } from '../cases.js';
import { wholeBatches } from '../../engine/columns/take.js';
import { columnValue, type Column } from '../../engine/columns/column.js';
import { DamageError } from '../../engine/core/errors.js';
import { batchFromRows, type Value } from '../model/rows.js';
import type { FieldType, Schema } from '../../engine/core/schema.js';
import { MemoryDirectory } from '../storage-doubles/memory-directory.js';
import type { SegmentEntry } from '../../engine/store/manifest/manifest.js';
import { SegmentWriter } from '../../engine/store/sealed/sealed-segment-writer.js';
import { verifySegment, type SegmentDamage } from '../../engine/store/sealed/verify-segment.js';
import {
  fileBytes,
  mixedRows,
  mixedSchema,
  columnOf,
  mayContain,
  noReads,
  openSegment,
  sampleRuns,
  sealBatches,
} from '../parquet/segment-sample.js';
import type { Codec } from '../../engine/parquet/compression.js';
import { expectEqual } from '../expect-equal.js';

function valuesOf(column: Column): Value[] {
  return Array.from({ length: column.length }, (_, row) => columnValue(column, row));
}

function damagesOf(
  directory: MemoryDirectory,
  entry: SegmentEntry,
  schema: Schema,
): Promise<SegmentDamage[]> {
  return verifySegment(directory, entry.file, entry, schema);
}

async function replaceFile(directory: MemoryDirectory, path: string, bytes: Uint8Array): Promise<void> {
  await directory.remove(path);
  const file = await directory.create(path);
  await file.write(0, bytes);
  await file.close();
}

const flipSchema: Schema = {
  fields: [
    { name: 'time', type: 'time' },
    { name: 'level', type: 'string' },
    { name: 'message', type: 'string', index: true },
    { name: 'status', type: 'int' },
    { name: 'nothing', type: 'float' },
  ],
};

describe('damage', () => {
  test.each(['lz4', 'zstd'] as const)(
    'every flipped byte is found, and never leads to a wrong answer (%s)',
    async (codec: Codec) => {
      const directory = new MemoryDirectory();
      const rows = Array.from({ length: 40 }, (_, i): Value[] => [
        1767225600000 + i * 10,
        i % 3 === 0 ? 'warn' : 'info',
        `request ${(i * 2654435761) >>> 0} done`,
        i % 4 === 0 ? null : i * 1_000_003,
        null,
      ]);
      const batches = [batchFromRows(flipSchema, rows), batchFromRows(flipSchema, rows.slice(0, 9))];
      const entry = await sealBatches(directory, 'a.parquet', flipSchema, batches, codec);
      expect(entry.gramFilterBytes).toBeGreaterThan(0);
      expect(await damagesOf(directory, entry, flipSchema)).toEqual([]);
      const right = batches.map((batch) => batch.columns.map(valuesOf));
      const bytes = await fileBytes(directory, 'a.parquet');
      const needle = new TextEncoder().encode('request');
      // Only some bytes of the header are flipped: one checksum covers all of it, and no answer depends on it.
      const isHeader = (at: number): boolean => at >= 4 && at < 4 + entry.headerBytes!;
      for (let at = 0; at < bytes.length; at += isHeader(at) ? 29 : isWhole ? 1 : 5) {
        const flipped = bytes.slice();
        flipped[at]! ^= 1 << (at & 7);
        await replaceFile(directory, 'a.parquet', flipped);
        const damages = await damagesOf(directory, entry, flipSchema);
        if (damages.length === 0) expect.fail(`no damage was found where byte ${at} is flipped`);
        const segment = await openSegment(directory, entry, flipSchema);
        for (const [group, rowGroup] of segment.rowGroups(flipSchema).entries()) {
          try {
            const open = await rowGroup.open();
            expectEqual(await mayContain(rowGroup, 2, needle), true, `byte ${at}`);
            for (let field = 0; field < flipSchema.fields.length; field++) {
              const read = await columnOf(open, field).catch((error: unknown) => error);
              if (read instanceof Error) expect(read).toBeInstanceOf(DamageError);
              else expectEqual(valuesOf(read as Column), right[group]![field], `byte ${at}`);
            }
          } catch (error) {
            if (!(error instanceof DamageError)) throw error;
          }
        }
      }
    },
    60_000,
  );

  test('affects only the row group and the column that it lies in', async () => {
    const directory = new MemoryDirectory();
    const batch = batchFromRows(mixedSchema, mixedRows(500));
    const entry = await sealBatches(directory, 'a.parquet', mixedSchema, [batch, batch], 'lz4');
    const bytes = await fileBytes(directory, 'a.parquet');
    const segment = await openSegment(directory, entry, mixedSchema);
    const { chunks } = (await segment.footer()).footer.rowGroups[1]!;
    // Column 0 of the file is _cursor, so the chunk of field n is number n + 1.
    const message = chunks[4]!;
    bytes[message.offset + message.bytes - 1]! ^= 0x10;
    await replaceFile(directory, 'a.parquet', bytes);
    const [good, bad] = segment.rowGroups(mixedSchema);
    const badGroup = await bad!.open();
    await expect(columnOf(badGroup, 3)).rejects.toMatchObject({
      code: 'damaged',
      path: 'a.parquet',
      rowGroup: 1,
      column: 'message',
      offset: message.offset,
    });
    expect((await columnOf(badGroup, 2)).length).toBe(500);
    expect((await columnOf(await good!.open(), 3)).length).toBe(500);
    expect(await damagesOf(directory, entry, mixedSchema)).toMatchObject([
      { rowGroup: 1, column: 'message', offset: message.offset, costs: 'rowGroup' },
    ]);
  });

  test('is reported for a file that is cut, longer, missing or of another segment', async () => {
    const directory = new MemoryDirectory();
    const batch = batchFromRows(mixedSchema, mixedRows(50));
    const entry = await sealBatches(directory, 'a.parquet', mixedSchema, [batch], 'zstd');
    const bytes = await fileBytes(directory, 'a.parquet');
    for (const length of [0, 3, 100, bytes.length - 9, bytes.length - 1]) {
      await replaceFile(directory, 'a.parquet', bytes.slice(0, length));
      expect(await damagesOf(directory, entry, mixedSchema)).toContainEqual(
        expect.objectContaining({ costs: 'segment' }),
      );
      const [rowGroup] = (await openSegment(directory, entry, mixedSchema)).rowGroups(mixedSchema);
      await expect(rowGroup!.open()).rejects.toBeInstanceOf(DamageError);
    }
    await replaceFile(directory, 'a.parquet', Buffer.concat([bytes, Buffer.from('x')]));
    expect(await damagesOf(directory, entry, mixedSchema)).toMatchObject([
      { offset: bytes.length, costs: 'nothing' },
    ]);
    await directory.remove('a.parquet');
    expect(await damagesOf(directory, entry, mixedSchema)).toMatchObject([{ costs: 'segment' }]);
    const [gone] = (await openSegment(directory, entry, mixedSchema)).rowGroups(mixedSchema);
    await expect(gone!.open()).rejects.toMatchObject({ code: 'not_found' });
    await sealBatches(directory, 'a.parquet', mixedSchema, [batch, batch], 'zstd');
    const [other] = (await openSegment(directory, entry, mixedSchema)).rowGroups(mixedSchema);
    await expect(other!.open()).rejects.toBeInstanceOf(DamageError);
  });

  test('is reported for positions that differ from those of the manifest', async () => {
    const directory = new MemoryDirectory();
    const batch = batchFromRows(mixedSchema, mixedRows(1500));
    const entry = await sealBatches(directory, 'a.parquet', mixedSchema, [batch], 'lz4');
    const runs = entry.runs.map((run, i) => (i === 1 ? { ...run, firstOrdinal: run.firstOrdinal + 1 } : run));
    expect(await damagesOf(directory, { ...entry, runs }, mixedSchema)).toMatchObject([
      { rowGroup: 0, column: '_cursor', costs: 'rowGroup' },
    ]);
  });
});

describe('reading', () => {
  test('returns the bounds of every column', async () => {
    const schema: Schema = {
      fields: [
        { name: 't', type: 'time' },
        { name: 'i', type: 'int' },
        { name: 'f', type: 'float' },
        { name: 's', type: 'string' },
        { name: 'n', type: 'string' },
        { name: 'long', type: 'string' },
      ],
    };
    const directory = new MemoryDirectory();
    const rows: Value[][] = [
      [5, -(2n ** 63n), 0, 'b', null, 'x'.repeat(300)],
      [3, null, -0, 'é', null, 'y'],
      [null, 2n ** 63n - 1n, 2.5, 'Ba', null, null],
    ];
    const entry = await sealBatches(directory, 'a.parquet', schema, [batchFromRows(schema, rows)], 'lz4');
    expect(entry).toMatchObject({ rows: 3, rowGroupRows: [3], timeMinMs: 3, timeMaxMs: 5, codec: 'lz4' });
    const [rowGroup] = (await openSegment(directory, entry, schema)).rowGroups(schema);
    expect(rowGroup).toMatchObject({ rows: 3, index: 0, hot: false, timeMinMs: 3, timeMaxMs: 5 });
    const open = await rowGroup!.open();
    const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);
    expect(open.zone(0)).toEqual({ nullCount: 1, rows: 3, min: 3n, max: 5n });
    expect(open.zone(1)).toEqual({ nullCount: 1, rows: 3, min: -(2n ** 63n), max: 2n ** 63n - 1n });
    expect(open.zone(2)).toEqual({ nullCount: 0, rows: 3, min: -0, max: 2.5 });
    expect(open.zone(3)).toEqual({ nullCount: 0, rows: 3, min: bytes('Ba'), max: bytes('é') });
    expect(open.zone(4)).toEqual({ nullCount: 3, rows: 3, min: null, max: null });
    expect(open.zone(5)).toEqual({ nullCount: 1, rows: 3, min: null, max: null });
  });

  test('reads only the requested bytes, and once for concurrent requests', async () => {
    const directory = new MemoryDirectory();
    const batch = batchFromRows(mixedSchema, mixedRows(5000));
    const entry = await sealBatches(directory, 'a.parquet', mixedSchema, [batch], 'lz4');
    const segment = await openSegment(directory, entry, mixedSchema);
    const open = await segment.rowGroups(mixedSchema)[0]!.open();
    const counters = noReads();
    const columns = await Promise.all([1, 1, 1].map((field) => columnOf(open, field, counters)));
    const chunk = (await segment.footer()).footer.rowGroups[0]!.chunks[2]!;
    expect(counters).toEqual({
      bytesRead: chunk.bytes,
      columnsDecoded: 1,
      columnsCached: 2,
      gramPiecesRead: 0,
      valuePiecesRead: 0,
    });
    for (const column of columns) expect(valuesOf(column)).toEqual(valuesOf(columns[0]!));
    segment.close();
    await columnOf(open, 1, counters);
    expect(counters.columnsDecoded).toBe(2);
  });

  test('reads fields that were added, removed or given another type', async () => {
    const was: Schema = {
      fields: [
        { name: 'i', type: 'int' },
        { name: 'j', type: 'int' },
        { name: 'f', type: 'float' },
        { name: 's', type: 'string' },
        { name: 't', type: 'time' },
        { name: 'gone', type: 'string' },
      ],
    };
    const directory = new MemoryDirectory();
    const integers = [2n ** 53n, 2n ** 53n + 1n, -(2n ** 63n), 7n, null];
    const floats = [-0, 0.1, 1e21, 5e-324, null];
    const rows = integers.map((value, i): Value[] => [
      value,
      i,
      floats[i]!,
      `text ${i}`,
      1767225600000 + i,
      'x',
    ]);
    const entry = await sealBatches(directory, 'a.parquet', was, [batchFromRows(was, rows)], 'lz4');
    const segment = await openSegment(directory, entry, was);
    const read = async (name: string, type: FieldType): Promise<[Value[], unknown]> => {
      const schema: Schema = { fields: [{ name, type }] };
      const open = await segment.rowGroups(schema)[0]!.open();
      return [valuesOf(await columnOf(open, 0)), open.zone(0)];
    };
    const nulls = { nullCount: 5, rows: 5, min: null, max: null };
    expect(await read('i', 'float')).toEqual([[2 ** 53, null, null, 7, null], null]);
    expect(await read('j', 'float')).toEqual([[0, 1, 2, 3, 4], { nullCount: 0, rows: 5, min: 0, max: 4 }]);
    expect(await read('i', 'string')).toEqual([
      ['9007199254740992', '9007199254740993', '-9223372036854775808', '7', null],
      { nullCount: 1, rows: 5, min: null, max: null },
    ]);
    expect((await read('f', 'string'))[0]).toEqual(['-0', '0.1', '1e+21', '5e-324', null]);
    expect((await read('t', 'string'))[0]).toEqual([
      '1767225600000',
      '1767225600001',
      '1767225600002',
      '1767225600003',
      '1767225600004',
    ]);
    for (const [name, type] of [
      ['s', 'int'],
      ['f', 'int'],
      ['t', 'int'],
      ['i', 'time'],
      ['new', 'string'],
    ] as const) {
      expect(await read(name, type)).toEqual([[null, null, null, null, null], nulls]);
    }
  });

  test('converts dictionaries entry by entry', async () => {
    const was: Schema = { fields: [{ name: 'i', type: 'int' }] };
    const is: Schema = { fields: [{ name: 'i', type: 'float' }] };
    const directory = new MemoryDirectory();
    const rows = Array.from({ length: 60 }, (_, i): Value[] => [[1n, null, 2n ** 60n + 1n, 4n][i % 4]!]);
    const entry = await sealBatches(directory, 'a.parquet', was, [batchFromRows(was, rows)], 'lz4');
    const open = await (await openSegment(directory, entry, was)).rowGroups(is)[0]!.open();
    const column = await columnOf(open, 0);
    expect(column.kind).toBe('dictionary');
    expect(valuesOf(column).slice(0, 5)).toEqual([1, null, null, 4, 1]);
  });
});

describe('writing', () => {
  test('continues after a pause', async () => {
    const directory = new MemoryDirectory();
    const writer = await SegmentWriter.create(directory, 'a.parquet', mixedSchema, { codec: 'zstd' });
    const batches = [mixedRows(300, 1), mixedRows(200, 2)].map((rows) => batchFromRows(mixedSchema, rows));
    for (const batch of batches) {
      await writer.appendRowGroup(wholeBatches([batch]));
      await writer.pause();
    }
    const written = await writer.finish(sampleRuns(500), 7);
    const entry: SegmentEntry = { ...written, file: 'a.parquet', schemaVersion: 7, replaces: [] };
    expect(entry.bytes).toBe(await directory.size('a.parquet'));
    expect(await damagesOf(directory, entry, mixedSchema)).toEqual([]);
    await writer.abort();
    expect(await directory.list('')).toEqual(['a.parquet']);
  });

  test('leaves no file when it is given up, and does not replace an existing file', async () => {
    const directory = new MemoryDirectory();
    const writer = await SegmentWriter.create(directory, 'a.parquet', mixedSchema, { codec: 'lz4' });
    const batch = batchFromRows(mixedSchema, mixedRows(10));
    await writer.appendRowGroup(wholeBatches([batch]));
    await expect(
      SegmentWriter.create(directory, 'a.parquet', mixedSchema, { codec: 'lz4' }),
    ).rejects.toMatchObject({
      code: 'exists',
    });
    await writer.abort();
    expect(await directory.list('')).toEqual([]);
  });
});

test('on a disk that fails or is full at any step ends in an error and leaves no file', async () => {
  const batch = batchFromRows(mixedSchema, mixedRows(100));
  const seal = async (directory: MemoryDirectory): Promise<void> => {
    const writer = await SegmentWriter.create(directory, 'a.parquet', mixedSchema, { codec: 'lz4' });
    try {
      await writer.appendRowGroup(wholeBatches([batch]));
      await writer.pause();
      await writer.appendRowGroup(wholeBatches([batch]));
      await writer.finish(sampleRuns(200), 1);
    } catch (error) {
      await writer.abort();
      throw error;
    }
  };
  const whole = new MemoryDirectory();
  await seal(whole);
  for (let step = 1; step <= whole.mutations; step++) {
    const directory = new MemoryDirectory({ failAtOperation: step });
    await expect(seal(directory), `step ${step}`).rejects.toMatchObject({ code: 'io' });
    expect(await directory.list('')).toEqual([]);
  }
  const bytes = await whole.size('a.parquet');
  for (let freeBytes = 0; freeBytes < bytes; freeBytes += 97) {
    const directory = new MemoryDirectory({ freeBytes });
    await expect(seal(directory)).rejects.toMatchObject({ code: 'disk_full' });
    expect(await directory.list('')).toEqual([]);
  }
});
