import { describe, expect, it } from 'vitest';
import { caseCount, fc } from '../cases.js';
import { RangeArena } from '../../engine/core/arena.js';
import { BatchBuilder } from '../../engine/columns/batch-builder.js';
import { gatherBatch, sliceBatch, takeRows, wholeBatches } from '../../engine/columns/take.js';
import { columnValue, type Column, type RecordBatch } from '../../engine/columns/column.js';
import type {
  ColumnBuilder,
  IntColumnBuilder,
  StringColumnBuilder,
} from '../../engine/columns/column-builder.js';
import { rowGroupBytesMax, rowGroupRowsMax } from '../../engine/core/limits.js';
import {
  headerBytes,
  packBatch,
  packedBytes,
  packStepBytes,
  packSteps,
  unpackBatch,
} from '../../engine/columns/packed-batch.js';
import { batchFromRows, type Value } from '../model/rows.js';
import { makeSchema } from '../../engine/core/schema.js';
import { bitmapBytes } from '../../engine/kernels/bitmap.js';
import { expectEqual } from '../expect-equal.js';
import { anyText } from '../model/any-text.js';

const schema = makeSchema([
  { name: 'time', type: 'time' },
  { name: 'count', type: 'int' },
  { name: 'ratio', type: 'float' },
  { name: 'message', type: 'string' },
]);

function rowsOf(batch: RecordBatch): Value[][] {
  return Array.from({ length: batch.length }, (_, row) =>
    batch.columns.map((column) => columnValue(column, row)),
  );
}

/** The column layout that the scan relies on, as column.ts states it. */
function expectLayout(batch: RecordBatch): void {
  for (const column of batch.columns) {
    expect(column.length).toBe(batch.length);
    if (column.kind === 'bytes') expect(column.offsets.length).toBe(batch.length + 1);
    else if (column.kind !== 'dictionary') expect(column.values.length).toBe(batch.length);
    expectValidity(column);
  }
}

function expectValidity(column: Column): void {
  if (column.validity === null) return;
  expect(column.validity.length).toBe(bitmapBytes(column.length));
  let ones = 0;
  column.validity.forEach((byte, i) => {
    for (let bit = 0; bit < 8; bit++) {
      if ((byte & (1 << bit)) === 0) continue;
      ones++;
      expectEqual(i * 8 + bit < column.length, true, `bit ${bit} of byte ${i}`);
    }
  });
  expect(ones, 'a bitmap only where there is a null').toBeLessThan(column.length);
}

it('packs a batch in steps that each copy a bounded number of bytes', () => {
  const rows = Array.from({ length: 4000 }, (_, row): Value[] => [
    BigInt(row),
    row % 7 === 0 ? null : -1n,
    row + 0.5,
    'x'.repeat(row % 1000),
  ]);
  const batch = sliceBatch(batchFromRows(schema, rows), 100, rows.length);
  const size = packedBytes(batch);
  const wanted = new Uint8Array(size);
  packBatch(batch, wanted, 0);
  expect(rowsOf(unpackBatch(wanted, 0))).toEqual(rows.slice(100));

  const packed = new Uint8Array(size);
  let before = packed.slice();
  let taken = 0;
  const steps = packSteps(batch, packed, 0);
  for (let done = false; !done; taken++) {
    done = steps.next().done === true;
    let changed = 0;
    for (let i = 0; i < size; i++) changed += Number(packed[i] !== before[i]);
    expect(changed).toBeLessThan(packStepBytes + 1024);
    before = packed.slice();
  }
  expect(taken).toBe(Math.ceil(size / packStepBytes));
  expect(Buffer.compare(packed, wanted)).toBe(0);
});

it('packs batches one after another, and carries no value over into the next batch', () => {
  const builder = new BatchBuilder(schema);
  const fill = (rows: number, text: string): void => {
    for (let row = 0; row < rows; row++) {
      (builder.column(0) as IntColumnBuilder).setNumber(row + 1);
      (builder.column(1) as IntColumnBuilder).setBigInt(-1n);
      (builder.column(3) as StringColumnBuilder).setString(text);
      builder.endRow();
    }
  };
  expect(builder.finishPacked()).toBeNull();
  fill(2000, 'long enough');
  const first = builder.finishPacked()!;
  (builder.column(3) as StringColumnBuilder).setString('b');
  builder.endRow();
  builder.endRow();
  const second = unpackBatch(builder.finishPacked()!, 0);
  expect(rowsOf(second)).toEqual([
    [null, null, null, 'b'],
    [null, null, null, null],
  ]);
  const [times] = second.columns;
  // The slot of a null holds 0.
  expect(times?.kind === 'int64' ? [...times.values] : times?.kind).toEqual([0n, 0n]);
  const rows = rowsOf(unpackBatch(first, 0));
  expect(rows.length).toBe(2000);
  expect(rows[1999]).toEqual([2000n, -1n, null, 'long enough']);
});

it('packs a batch in the memory in which it was built if there is room, and never overwrites it afterwards', () => {
  const builder = new BatchBuilder(schema);
  const build = (space: RangeArena, rows: number, expected: number): Uint8Array | number | null =>
    builder.within(space.take, expected, () => {
      for (let row = 0; row < rows; row++) {
        if (row % 3 !== 1) (builder.column(0) as IntColumnBuilder).setNumber(row + 1);
        if (row % 5 !== 2) (builder.column(3) as StringColumnBuilder).setString(`text ${row}`);
        builder.endRow();
      }
      return builder.finishPacked(space);
    });
  const wanted = (rows: number): unknown[][] =>
    Array.from({ length: rows }, (_, row) => [
      row % 3 === 1 ? null : BigInt(row + 1),
      null,
      null,
      row % 5 === 2 ? null : `text ${row}`,
    ]);
  const spaceOf = (sizeBytes: number): RangeArena => {
    const space = new RangeArena(new Uint8Array(new SharedArrayBuffer(sizeBytes)));
    space.take(headerBytes(schema.fields.length));
    return space;
  };
  const first = spaceOf(1024 * 1024);
  const packedBytes = build(first, 3000, 0) as number;
  expect(packedBytes).toBe(first.usedBytes);
  // Arrays that are large enough from the start are not moved and leave no unused gaps.
  const second = spaceOf(1024 * 1024);
  expect(build(second, 3000, 3000)).toBeLessThan(packedBytes);
  // A batch that does not fit is packed into memory of its own.
  expect(rowsOf(unpackBatch(build(spaceOf(64 * 1024), 3000, 3000) as Uint8Array, 0))).toEqual(wanted(3000));
  expect(build(spaceOf(64 * 1024), 0, 0)).toBeNull();
  for (const { range, usedBytes } of [first, second]) {
    expect(rowsOf(unpackBatch(range.subarray(0, usedBytes), 0))).toEqual(wanted(3000));
  }
});

const int64 = fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n });
const rowArbitrary: fc.Arbitrary<Value[]> = fc.tuple(
  fc.option(int64),
  fc.option(int64),
  fc.option(fc.double({ noNaN: true, noDefaultInfinity: true })),
  fc.option(anyText({ maxLength: 200 })),
);
const rowsArbitrary = fc.array(rowArbitrary, { maxLength: 40 });
const sparseRows = fc.array(
  fc.oneof(
    { weight: 5, arbitrary: rowArbitrary },
    { weight: 1, arbitrary: fc.constant([null, null, null, null]) },
  ),
  { maxLength: 1500, size: 'max' },
);

function message(builder: BatchBuilder): StringColumnBuilder {
  const column = builder.column(3);
  if (column.kind !== 'string') throw new Error('not a string column');
  return column;
}

function count(builder: BatchBuilder): IntColumnBuilder {
  const column = builder.column(1);
  if (column.kind !== 'int') throw new Error('not an int column');
  return column;
}

describe('BatchBuilder', () => {
  it('returns the values that were set, in the column layout of the scan', () => {
    fc.assert(
      fc.property(rowsArbitrary, (rows) => {
        const batch = batchFromRows(schema, rows);
        expectLayout(batch);
        expect(rowsOf(batch)).toEqual(rows);
      }),
    );
  });

  it('grows over many rows', () => {
    fc.assert(
      fc.property(sparseRows, (rows) => {
        const batch = batchFromRows(schema, rows);
        expectLayout(batch);
        expect(rowsOf(batch)).toEqual(rows);
      }),
      { numRuns: caseCount(20) },
    );
  });

  it('sets columns that a row leaves out to null, and keeps the last value set for a column of a row', () => {
    const builder = new BatchBuilder(schema);
    count(builder).setNumber(1);
    count(builder).setNumber(-2);
    message(builder).setString('first');
    message(builder).setString('än');
    builder.endRow();
    builder.endRow();
    message(builder).setString('text');
    message(builder).setNull();
    count(builder).setNull();
    count(builder).setNumber(7);
    builder.endRow();
    const batch = builder.finish();
    expectLayout(batch);
    expect(rowsOf(batch)).toEqual([
      [null, -2n, null, 'än'],
      [null, null, null, null],
      [null, 7n, null, null],
    ]);
  });

  it('has no bitmap where a null was overwritten', () => {
    const builder = new BatchBuilder(schema);
    count(builder).setNull();
    count(builder).setNumber(3);
    builder.endRow();
    expect(builder.finish().columns[1]!.validity).toBe(null);
  });

  it('drops a row that was cancelled, and a row that was never ended', () => {
    const builder = new BatchBuilder(schema);
    for (const text of ['a', 'b', 'c']) {
      message(builder).setString(text);
      count(builder).setNumber(5);
      if (text === 'b') builder.cancelRow();
      else builder.endRow();
    }
    builder.endRow();
    message(builder).setString('never ended');
    const batch = builder.finish();
    expectLayout(batch);
    expect(rowsOf(batch)).toEqual([
      [null, 5n, null, 'a'],
      [null, 5n, null, 'c'],
      [null, null, null, null],
    ]);
    expect(builder.rows).toBe(0);
    expect(builder.bytes).toBe(0);
  });

  it('begins a new batch after finish without changing the previous batch', () => {
    const builder = new BatchBuilder(schema);
    message(builder).setString('one');
    builder.endRow();
    const first = builder.finish();
    message(builder).setString('two');
    builder.endRow();
    expect(rowsOf(first)).toEqual([[null, null, null, 'one']]);
    expect(rowsOf(builder.finish())).toEqual([[null, null, null, 'two']]);
    expect(builder.finish().length).toBe(0);
  });

  it('lends a batch, and afterwards builds the next one in the same arrays', async () => {
    const builder = new BatchBuilder(schema);
    const lend = (texts: readonly string[]): Promise<ArrayBufferLike> => {
      for (const text of texts) {
        message(builder).setString(text);
        builder.endRow();
      }
      return builder.lend(async (batch) => {
        await Promise.resolve();
        expect(rowsOf(batch)).toEqual(texts.map((text) => [null, null, null, text]));
        const column = batch.columns[3]!;
        return column.kind === 'bytes' ? column.bytes.buffer : new ArrayBuffer(0);
      });
    };
    const first = await lend(['one', 'and two']);
    expect(await lend(['three'])).toBe(first);
    await expect(builder.lend(() => Promise.reject(new Error('full')))).rejects.toThrow('full');
    expect(await lend(['four', 'five'])).toBe(first);
  });

  it('stores NaN and infinities as null', () => {
    const rows = [NaN, Infinity, -Infinity, -0, 1e308].map((ratio): Value[] => [null, null, ratio, null]);
    const values = rowsOf(batchFromRows(schema, rows)).map((row) => row[2]);
    expect(values).toEqual([null, null, null, -0, 1e308]);
  });

  it('stores integers with every digit', () => {
    const numbers = [
      0,
      -1,
      4294967295,
      4294967296,
      -4294967297,
      Number.MAX_SAFE_INTEGER,
      Number.MIN_SAFE_INTEGER,
    ];
    const builder = new BatchBuilder(schema);
    for (const number of numbers) {
      count(builder).setNumber(number);
      builder.endRow();
    }
    expect(rowsOf(builder.finish()).map((row) => row[1])).toEqual(numbers.map(BigInt));
  });

  it('replaces bytes that are not UTF-8 as the WHATWG decoder does, and counts them', () => {
    const bad = fc
      .uint8Array({ maxLength: 12 })
      .map((bytes) => bytes.map((byte) => (byte & 3 ? byte | 0x80 : byte)));
    fc.assert(
      fc.property(fc.array(fc.oneof(bad, fc.uint8Array({ maxLength: 150 })), { maxLength: 5 }), (values) => {
        const builder = new BatchBuilder(schema);
        for (const bytes of values) {
          const source = Uint8Array.from([120, ...bytes, 0x80]);
          const text = new TextDecoder('utf-8', { ignoreBOM: true }).decode(bytes);
          const replaced = message(builder).setBytes(source, 1, bytes.length + 1);
          const genuine = Buffer.from(bytes).toString('latin1').split('\u00ef\u00bf\u00bd').length - 1;
          expect(replaced).toBe(text.split('\ufffd').length - 1 - genuine);
          builder.endRow();
        }
        const column = builder.finish().columns[3]!;
        if (column.kind !== 'bytes') throw new Error('not bytes');
        const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });
        const texts = values.map((_, i) =>
          decoder.decode(column.bytes.subarray(column.offsets[i], column.offsets[i + 1])),
        );
        expect(texts).toEqual(
          values.map((bytes) => new TextDecoder('utf-8', { ignoreBOM: true }).decode(bytes)),
        );
      }),
    );
  });

  it('replaces an unpaired surrogate by U+FFFD', () => {
    const builder = new BatchBuilder(schema);
    message(builder).setString('a\ud800b');
    builder.endRow();
    expect(rowsOf(builder.finish())[0]![3]).toBe('a\ufffdb');
  });

  it('is full at the maximum number of rows of a row group', () => {
    const builder = new BatchBuilder(schema);
    for (let row = 0; row < rowGroupRowsMax; row++) {
      expect(builder.full).toBe(false);
      builder.endRow();
    }
    expect(builder.full).toBe(true);
    const batch = builder.finish();
    expectLayout(batch);
    expect(builder.full).toBe(false);
  });

  it('is full at the maximum number of bytes of a row group', () => {
    const builder = new BatchBuilder(schema);
    const megabyte = Buffer.alloc(1024 * 1024, 'x');
    let rows = 0;
    while (!builder.full) {
      message(builder).setBytes(megabyte, 0, megabyte.length);
      builder.endRow();
      rows++;
    }
    expect(rows).toBe(rowGroupBytesMax / megabyte.length);
    expect(builder.bytes).toBeGreaterThanOrEqual(rowGroupBytesMax);
  });
});

/** The same batch with each column as a dictionary of its distinct values. */
function dictionaryBatch(rows: readonly Value[][]): RecordBatch {
  const columns = schema.fields.map((field, i): Column => {
    const entries = [...new Set(rows.map((row) => row[i]!).filter((value) => value !== null))];
    const values = batchFromRows(
      { fields: [field] },
      entries.map((entry) => [entry]),
    ).columns[0]!;
    if (values.kind === 'dictionary') throw new Error('not plain');
    const codes = Uint16Array.from(rows, (row) => Math.max(0, entries.indexOf(row[i]!)));
    const { validity } = batchFromRows(schema, rows).columns[i]!;
    return { kind: 'dictionary', length: rows.length, codes, values, validity };
  });
  return { length: rows.length, columns };
}

const batchArbitrary = fc
  .tuple(rowsArbitrary, fc.boolean())
  .map(([rows, dictionary]) => (dictionary ? dictionaryBatch(rows) : batchFromRows(schema, rows)));

describe('batches', () => {
  it('takes rows in any order', () => {
    fc.assert(
      fc.property(batchArbitrary, fc.array(fc.nat(), { maxLength: 80 }), (batch, picks) => {
        const indices = Uint32Array.from(batch.length === 0 ? [] : picks.map((pick) => pick % batch.length));
        const taken = takeRows(batch, indices);
        expectLayout(taken);
        const rows = rowsOf(batch);
        expectEqual(
          rowsOf(taken),
          Array.from(indices, (index) => rows[index]),
        );
      }),
    );
  });

  it('slices a batch, and slices of a batch', () => {
    fc.assert(
      fc.property(batchArbitrary, fc.nat(), fc.nat(), fc.nat(), (batch, a, b, c) => {
        const from = a % (batch.length + 1);
        const to = from + (b % (batch.length - from + 1));
        const slice = sliceBatch(batch, from, to);
        expectLayout(slice);
        expectEqual(rowsOf(slice), rowsOf(batch).slice(from, to));
        const inner = c % (slice.length + 1);
        const tail = sliceBatch(slice, inner, slice.length);
        expectEqual(rowsOf(tail), rowsOf(slice).slice(inner));
        const reversed = Uint32Array.from({ length: tail.length }, (_, i) => tail.length - 1 - i);
        expectEqual(rowsOf(takeRows(tail, reversed)), rowsOf(tail).reverse());
      }),
    );
  });

  it('concatenates whole and sliced batches', () => {
    fc.assert(
      fc.property(fc.array(fc.tuple(batchArbitrary, fc.nat()), { maxLength: 5 }), (parts) => {
        const batches = parts.map(([batch, from]) =>
          sliceBatch(batch, from % (batch.length + 1), batch.length),
        );
        const all = gatherBatch(wholeBatches([...batches, ...parts.map(([batch]) => batch)]), schema);
        expectLayout(all);
        expectEqual(rowsOf(all), [...batches.flatMap(rowsOf), ...parts.flatMap(([batch]) => rowsOf(batch))]);
      }),
    );
  });
});

describe('column builders', () => {
  it('are the same objects after finish, so that writers may hold on to them', () => {
    const builder = new BatchBuilder(schema);
    const columns: ColumnBuilder[] = schema.fields.map((_, i) => builder.column(i));
    builder.endRow();
    builder.finish();
    expect(schema.fields.map((_, i) => builder.column(i))).toEqual(columns);
  });
});
