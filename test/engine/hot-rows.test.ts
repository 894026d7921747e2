import { describe, expect, it } from 'vitest';
import { fc } from '../cases.js';
import { type Column, columnValue, type RecordBatch } from '../../engine/columns/column.js';
import { batchFromRows, type Value } from '../model/rows.js';
import { makeSchema, type Schema } from '../../engine/core/schema.js';
import type { RowGroup } from '../../engine/store/reading/snapshot.js';
import { HotRows } from '../../engine/store/reading/hot-rows.js';
import { datasets, strangeSchema } from '../model/arbitraries.js';
import { makeColumn } from '../model/model-column.js';
import { seededRandom } from '../model/random.js';
import { columnOf, mayContain } from '../parquet/segment-sample.js';
import { bitmapBytes } from '../../engine/kernels/bitmap.js';

async function rowsOf(rowGroup: RowGroup, fields: number): Promise<Value[][]> {
  const open = await rowGroup.open();
  const columns: Column[] = [];
  for (let field = 0; field < fields; field++) columns.push(await columnOf(open, field));
  return valuesOf({ length: rowGroup.rows, columns });
}

function valuesOf(batch: RecordBatch): Value[][] {
  return Array.from({ length: batch.length }, (_, row) =>
    batch.columns.map((column) => columnValue(column, row)),
  );
}

describe('HotRows', () => {
  it('keeps for each snapshot the rows that it saw while more rows are appended', async () => {
    await fc.assert(
      fc.asyncProperty(
        datasets(60),
        fc.array(fc.integer({ min: 0, max: 20 }), { minLength: 1 }),
        fc.nat(),
        async (dataset, sizes, seed) => {
          const random = seededRandom(seed);
          const hot = new HotRows(strangeSchema, 'hot/1.arrows');
          const appended: Value[][] = [];
          const snapshots: { rowGroup: RowGroup; rows: number }[] = [];
          let row = 0;
          for (const size of sizes) {
            const records = dataset.records.slice(row, row + size);
            const columns = strangeSchema.fields.map((field, i) =>
              makeColumn(
                field.type,
                records.map(({ values }) => values[i]!),
                random,
              ),
            );
            const runs = records.map(({ position }) => ({
              partition: position.partition,
              firstOrdinal: position.ordinal,
              rows: 1,
            }));
            const batch = { length: records.length, columns };
            appended.push(...valuesOf(batch));
            hot.append(batch, runs);
            row += records.length;
            const rowGroup = hot.rowGroup(strangeSchema, row);
            if (size % 2 === 0) await columnOf(await rowGroup.open(), 0);
            snapshots.push({ rowGroup, rows: row });
          }
          const all = dataset.records.slice(0, row);
          for (const { rowGroup, rows } of snapshots) {
            const expected = appended.slice(0, rows);
            expect(await rowsOf(rowGroup, strangeSchema.fields.length)).toEqual(expected);
            await checkBounds(rowGroup, expected);
          }
          expect(valuesOf(hot.batch())).toEqual(appended);
          const positions = hot.runs().flatMap((run) =>
            Array.from({ length: run.rows }, (_, i) => ({
              partition: run.partition,
              ordinal: run.firstOrdinal + i,
            })),
          );
          expect(positions).toEqual(all.map(({ position }) => position));
        },
      ),
    );
  });

  async function checkBounds(rowGroup: RowGroup, rows: readonly (readonly Value[])[]): Promise<void> {
    const open = await rowGroup.open();
    for (let field = 0; field < strangeSchema.fields.length; field++) {
      const present = rows.map((values) => values[field]!).filter((value) => value !== null);
      const zone = open.zone(field)!;
      expect(zone.nullCount).toBe(rows.length - present.length);
      if (strangeSchema.fields[field]!.type === 'string' || present.length === 0) {
        expect([zone.min, zone.max]).toEqual([null, null]);
      } else {
        expect(present.every((value) => value >= zone.min! && value <= zone.max!)).toBe(true);
        expect(present).toContain(zone.min);
        expect(present).toContain(zone.max);
      }
      const { validity } = await columnOf(open, field);
      expect(validity === null).toBe(zone.nullCount === 0);
      if (validity === null) continue;
      expect(validity.length).toBe(bitmapBytes(rows.length));
      let ones = 0;
      for (const byte of validity) ones += byte.toString(2).replaceAll('0', '').length;
      expect(ones).toBe(present.length);
    }
  }

  it('joins runs that are contiguous in rows and in ordinals', () => {
    const schema = makeSchema([{ name: 'n', type: 'int' }]);
    const hot = new HotRows(schema, 'f');
    const batch = (rows: number): RecordBatch =>
      batchFromRows(
        schema,
        Array.from({ length: rows }, () => [1]),
      );
    hot.append(batch(3), [
      { partition: 5, firstOrdinal: 1, rows: 2 },
      { partition: 6, firstOrdinal: 1, rows: 1 },
    ]);
    const before = hot.runs();
    hot.append(batch(4), [
      { partition: 6, firstOrdinal: 2, rows: 2 },
      { partition: 5, firstOrdinal: 3, rows: 1 },
      { partition: 5, firstOrdinal: 5, rows: 1 },
    ]);
    hot.append(batch(0), []);
    expect(hot.runs()).toEqual([
      { partition: 5, firstOrdinal: 1, firstRow: 0, rows: 2 },
      { partition: 6, firstOrdinal: 1, firstRow: 2, rows: 3 },
      { partition: 5, firstOrdinal: 3, firstRow: 5, rows: 1 },
      { partition: 5, firstOrdinal: 5, firstRow: 6, rows: 1 },
    ]);
    expect(before).toHaveLength(2);
    expect(before[1]!.rows).toBe(1);
    expect(hot.rowCount).toBe(7);
  });

  it('reads rows under another schema: new fields as null, changed fields by lossless conversions only', async () => {
    const stored = makeSchema([
      { name: 'status', type: 'int' },
      { name: 'gone', type: 'string' },
      { name: 'ratio', type: 'float' },
    ]);
    const hot = new HotRows(stored, 'f');
    const rows = [
      [2n ** 53n + 1n, 'x', -0],
      [200n, 'y', 1.5],
      [null, null, null],
    ];
    hot.append(batchFromRows(stored, rows), [{ partition: 1, firstOrdinal: 1, rows: 3 }]);
    const target: Schema = makeSchema([
      { name: 'ratio', type: 'string' },
      { name: 'added', type: 'time' },
      { name: 'status', type: 'float' },
    ]);
    const rowGroup = hot.rowGroup(target, 3);
    expect(await rowsOf(rowGroup, 3)).toEqual([
      ['-0', null, null],
      ['1.5', null, 200],
      [null, null, null],
    ]);
    const open = await rowGroup.open();
    expect(open.zone(1)).toMatchObject({ nullCount: 3, rows: 3 });
    expect(open.zone(2)).toBeNull();
    expect(await mayContain(rowGroup, 0, new Uint8Array(3))).toBe(true);
    expect(await rowsOf(hot.rowGroup(stored, 2), 3)).toEqual(rows.slice(0, 2));
    expect((await hot.rowGroup(stored, 2).open()).zone(0)).toBeNull();
  });

  it('grows beyond every initial capacity', async () => {
    const schema = makeSchema([
      { name: 'n', type: 'int' },
      { name: 'text', type: 'string' },
    ]);
    const hot = new HotRows(schema, 'f');
    const expected: Value[][] = [];
    for (let batch = 0; batch < 6; batch++) {
      const rows = Array.from({ length: 700 }, (_, i): Value[] => [
        BigInt(batch * 1000 + i),
        i % 11 === 0 && batch > 2 ? null : 'x'.repeat(i % 60),
      ]);
      expected.push(...rows);
      const runs = [{ partition: 1, firstOrdinal: 1 + batch * 700, rows: 700 }];
      hot.append(batchFromRows(schema, rows), runs);
    }
    expect(await rowsOf(hot.rowGroup(schema, 4200), 2)).toEqual(expected);
    expect(await rowsOf(hot.rowGroup(schema, 1500), 2)).toEqual(expected.slice(0, 1500));
  });
});
