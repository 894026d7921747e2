import { describe, expect, test } from 'vitest';
import { caseCount, fc } from '../cases.js';
import { type Column, type RecordBatch, columnValue } from '../../engine/columns/column.js';
import { batchFromRows, type Value } from '../model/rows.js';
import type { FieldType, Schema } from '../../engine/core/schema.js';
import { MemoryDirectory } from '../storage-doubles/memory-directory.js';
import { verifySegment } from '../../engine/store/sealed/verify-segment.js';
import { columnOf, openSegment, sealBatches } from './segment-sample.js';
import type { Codec } from '../../engine/parquet/compression.js';
import { anyText } from '../model/any-text.js';

const types: readonly FieldType[] = ['int', 'float', 'string', 'time'];
const schema: Schema = { fields: types.map((type) => ({ name: `f_${type}`, type })) };
const wideSchema: Schema = { fields: [{ name: 'v', type: 'string', index: true }] };

async function readBack(
  batches: readonly RecordBatch[],
  codec: Codec,
  of: Schema = schema,
): Promise<Column[][]> {
  const directory = new MemoryDirectory();
  const entry = await sealBatches(directory, 'a.parquet', of, batches, codec);
  expect(await verifySegment(directory, 'a.parquet', entry, of)).toEqual([]);
  const segment = await openSegment(directory, entry, of);
  const groups: Column[][] = [];
  for (const rowGroup of segment.rowGroups(of)) {
    const open = await rowGroup.open();
    groups.push(await Promise.all(of.fields.map((_, field) => columnOf(open, field))));
  }
  return groups;
}

function valuesOf(column: Column): Value[] {
  return Array.from({ length: column.length }, (_, row) => columnValue(column, row));
}

function expectSame(read: readonly Column[], batch: RecordBatch): void {
  read.forEach((column, field) => {
    expect(column.length).toBe(batch.length);
    expect(valuesOf(column)).toEqual(valuesOf(batch.columns[field]!));
  });
}

const int64 = fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n });
const float = fc.double({ noNaN: true, noDefaultInfinity: true });

/** Values of one column: distinct, repeating or constant, with some, only or no nulls. */
function values(arbitrary: fc.Arbitrary<Value>, rows: number): fc.Arbitrary<Value[]> {
  const pool = (size: number): fc.Arbitrary<Value[]> =>
    fc
      .tuple(
        fc.array(arbitrary, { minLength: 1, maxLength: size }),
        fc.array(fc.nat(), { minLength: rows, maxLength: rows }),
      )
      .map(([few, picks]) => picks.map((pick) => few[pick % few.length]!));
  const present = fc.oneof(fc.array(arbitrary, { minLength: rows, maxLength: rows }), pool(1), pool(20));
  const nulls = fc.oneof(
    fc.constant(() => false),
    fc.constant(() => true),
    fc.nat({ max: 5 }).map((every) => (row: number) => row % (every + 2) === 0),
    fc.nat({ max: rows }).map((from) => (row: number) => row >= from),
  );
  return fc
    .tuple(present, nulls)
    .map(([list, isNull]) => list.map((value, row) => (isNull(row) ? null : value)));
}

const batchOf = fc.integer({ min: 1, max: 700 }).chain((rows) =>
  fc
    .tuple(
      values(fc.oneof(int64, fc.bigInt({ min: -300n, max: 300n })), rows),
      values(float, rows),
      values(fc.oneof(anyText({ maxLength: 40 }), fc.constant('')), rows),
      values(fc.oneof(fc.bigInt({ min: 0n, max: 2n ** 41n }), int64), rows),
    )
    .map((columns) =>
      batchFromRows(
        schema,
        Array.from({ length: rows }, (_, row) => columns.map((list) => list[row]!)),
      ),
    ),
);

describe('sealed segments are read back', () => {
  test.each(['lz4', 'zstd'] as const)('random columns, %s', async (codec) => {
    await fc.assert(
      fc.asyncProperty(fc.array(batchOf, { minLength: 1, maxLength: 3 }), async (batches) => {
        const groups = await readBack(batches, codec);
        expect(groups.length).toBe(batches.length);
        groups.forEach((columns, i) => expectSame(columns, batches[i]!));
      }),
      { numRuns: caseCount(30, 2000) },
    );
  });

  test.each(['lz4', 'zstd'] as const)('without row groups, %s', async (codec) => {
    expect(await readBack([], codec)).toEqual([]);
  });

  test.each(['lz4', 'zstd'] as const)('a full row group of 65536 rows, %s', async (codec) => {
    const rows = Array.from({ length: 65536 }, (_, i): Value[] => [
      BigInt(i) * 0x9e3779b97f4an,
      i % 7 === 0 ? null : i / 8,
      `row ${i} of many`,
      1767225600000 + i * 3,
    ]);
    const batch = batchFromRows(schema, rows);
    const [columns] = await readBack([batch], codec);
    expectSame(columns!, batch);
    expect(columns![2]!.kind).toBe('bytes');
  });

  test('with values at the limits of their types', async () => {
    const integers = [2n ** 63n - 1n, -(2n ** 63n), 0n, -1n, 2n ** 53n + 1n];
    const floats = [-0, 0, 5e-324, 1.7976931348623157e308, -1.5];
    const texts = ['', '\u0000', '😀', 'é'.repeat(70_000), '\u212a\u017f'];
    const batch = batchFromRows(
      schema,
      integers.map((value, i) => [value, floats[i]!, texts[i]!, integers[(i + 1) % 5]!]),
    );
    for (const codec of ['lz4', 'zstd'] as const) {
      const [columns] = await readBack([batch], codec);
      expectSame(columns!, batch);
      expect(Object.is(columnValue(columns![1]!, 0), -0)).toBe(true);
      expect(Object.is(columnValue(columns![1]!, 1), 0)).toBe(true);
    }
  });

  test('with dictionaries at the limits of their code widths', async () => {
    for (const distinct of [1, 2, 3, 255, 256, 257, 4096, 16_000]) {
      const rows = Array.from({ length: 65536 }, (_, i): Value[] => [
        BigInt(i % distinct),
        (i % distinct) / 4,
        i % 11 === 3 ? null : `v${i % distinct}`,
        BigInt(i),
      ]);
      const batch = batchFromRows(schema, rows);
      const [columns] = await readBack([batch], 'lz4');
      for (const field of [0, 1, 2]) {
        const column = columns![field]!;
        expect(column.kind).toBe('dictionary');
        if (column.kind !== 'dictionary') continue;
        expect(column.values.length).toBe(distinct);
        expect(column.codes.BYTES_PER_ELEMENT).toBe(distinct <= 256 ? 1 : 2);
      }
      for (const row of [0, 1, 3, 254, 255, 256, 257, 4095, 4096, 65535]) {
        expect(columns!.map((column) => columnValue(column, row))).toEqual(
          rows[row]!.map((value) => (typeof value === 'number' && value === -0 ? 0 : value)),
        );
      }
    }
  });

  test('with the entries of a dictionary sorted if they are many, else in the order of their first rows', async () => {
    for (const distinct of [256, 257]) {
      const numbers = Array.from({ length: 1024 }, (_, i) => 1000 + ((i * 101) % distinct));
      const batch = batchFromRows(
        schema,
        numbers.map((n): Value[] => [BigInt(n), n / 4, `v${n}`, BigInt(n)]),
      );
      const [columns] = await readBack([batch], 'zstd');
      expectSame(columns!, batch);
      const inOrderOfRows = numbers.slice(0, distinct);
      const wanted = distinct > 256 ? inOrderOfRows.toSorted((a, b) => a - b) : inOrderOfRows;
      const entries = columns!.slice(0, 3).map((column) => {
        if (column.kind !== 'dictionary') throw new Error('not a dictionary');
        return valuesOf(column.values);
      });
      expect(entries[0]).toEqual(wanted.map(BigInt));
      expect(entries[1]).toEqual(wanted.map((n) => n / 4));
      expect(entries[2]).toEqual(wanted.map((n) => `v${n}`));
    }
  });

  test('with 64 Ki distinct values, and with one huge string among small ones', async () => {
    const distinct = batchFromRows(
      wideSchema,
      Array.from({ length: 65536 }, (_, i) => [`${i.toString(16)}-${(i * 2654435761) >>> 0}`]),
    );
    const huge = batchFromRows(wideSchema, [['a'], ['x'.repeat(8 * 1024 * 1024)], [''], [null], ['b']]);
    for (const codec of ['lz4', 'zstd'] as const) {
      const [first, second] = await readBack([distinct, huge], codec, wideSchema);
      expectSame(first!, distinct);
      expect(columnValue(second![0]!, 1)).toBe('x'.repeat(8 * 1024 * 1024));
      expect([0, 2, 3, 4].map((row) => columnValue(second![0]!, row))).toEqual(['a', '', null, 'b']);
    }
  });

  test('with a column that was given as a dictionary, in another order and with unused entries', async () => {
    const entries = batchFromRows(wideSchema, [['unused'], ['b'], ['a'], ['']]).columns[0]!;
    if (entries.kind !== 'bytes') throw new Error('strings come as bytes');
    const codes = Uint8Array.of(2, 1, 2, 3, 0, 1);
    const column: Column = {
      kind: 'dictionary',
      length: 6,
      codes,
      values: entries,
      validity: Uint8Array.of(0b101111),
    };
    const [columns] = await readBack([{ length: 6, columns: [column] }], 'lz4', wideSchema);
    expect(valuesOf(columns![0]!)).toEqual(['a', 'b', 'a', '', null, 'b']);
  });
});
