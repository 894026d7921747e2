import { describe, expect, it } from 'vitest';
import { fc } from '../cases.js';
import {
  plainColumn,
  sliceBatch,
  takeRows,
  gatherBatch,
  gatheredBytesMax,
  type RowSlices,
} from '../../engine/columns/take.js';
import { columnValue, type DictionaryColumn, type RecordBatch } from '../../engine/columns/column.js';
import { batchFromRows, type Value } from '../model/rows.js';
import { makeSchema } from '../../engine/core/schema.js';
import { anyText } from '../model/any-text.js';

const schema = makeSchema([
  { name: 'time', type: 'time' },
  { name: 'took', type: 'float' },
  { name: 'text', type: 'string' },
]);

const value = {
  time: fc.option(fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n })),
  // Without -0, which the dictionaries below would treat as 0.
  took: fc.option(fc.double({ noNaN: true, noDefaultInfinity: true }).map((number) => number + 0)),
  text: fc.option(fc.oneof(anyText({ maxLength: 5 }), fc.constant('long '.repeat(30)))),
};
const rowOf = fc.tuple(value.time, value.took, value.text).map((row): Value[] => row);

function valuesOf(batch: RecordBatch): Value[][] {
  return Array.from({ length: batch.length }, (_, row) =>
    batch.columns.map((column) => columnValue(column, row)),
  );
}

/** A dictionary of the same values, with nulls at code 0. */
function withDictionary(batch: RecordBatch): RecordBatch {
  const rows = valuesOf(batch);
  const columns = batch.columns.map((column, i): DictionaryColumn => {
    const distinct = [...new Set(rows.map((row) => row[i]!).filter((each) => each !== null))];
    const entries = batchFromRows(
      schema,
      distinct.map((each) => schema.fields.map((_, field) => (field === i ? each : null))),
    );
    const codes = Uint16Array.from(rows, (row) => Math.max(0, distinct.indexOf(row[i]!)));
    const values = plainColumn(entries.columns[i]!);
    return { kind: 'dictionary', length: rows.length, codes, values, validity: column.validity };
  });
  return { length: batch.length, columns };
}

/** Checks that the slot of every null is zero or empty. */
function expectEmptyNulls(batch: RecordBatch): void {
  for (const column of batch.columns.map(plainColumn)) {
    for (let row = 0; row < column.length; row++) {
      if (columnValue(column, row) !== null) continue;
      const slot = columnValue({ ...column, validity: null }, row);
      expect([0n, 0, '']).toContain(slot);
    }
  }
}

describe('rows of many pages', () => {
  it('are joined as if they were picked one by one', () => {
    const pages = fc.array(fc.tuple(fc.array(rowOf, { minLength: 1, maxLength: 40 }), fc.boolean()), {
      minLength: 1,
      maxLength: 4,
    });
    const cuts = fc.array(fc.tuple(fc.nat(), fc.nat(), fc.nat()), { minLength: 1, maxLength: 12 });
    fc.assert(
      fc.property(pages, cuts, fc.boolean(), (contents, picks, odd) => {
        const batches = contents.map(([rows, isDictionary]) => {
          const batch = batchFromRows(schema, rows);
          return isDictionary ? withDictionary(batch) : batch;
        });
        const slices = picks.map(([page, from, count]) => {
          const index = page % batches.length;
          const { length } = batches[index]!;
          const start = from % length;
          return { page: index, from: start, to: start + 1 + (count % (length - start)) };
        });
        const asNumbers: RowSlices = {
          rows: slices.reduce((sum, { from, to }) => sum + to - from, 0),
          pages: batches,
          pageOf: Uint32Array.from(slices, ({ page }) => page),
          fromOf: Uint32Array.from(slices, ({ from }) => from),
          toOf: Uint32Array.from(slices, ({ to }) => to),
        };
        const wanted = slices.flatMap(({ page, from, to }) => contents[page]![0].slice(from, to));
        const gathered = gatherBatch(asNumbers, schema);
        expect(valuesOf(gathered)).toEqual(wanted);
        expectEmptyNulls(gathered);
        for (const [field, { type }] of schema.fields.entries()) {
          const column = gathered.columns[field]!;
          const bytes = column.kind === 'bytes' ? column.offsets[column.length]! : 0;
          expect(gatheredBytesMax(asNumbers, field, type)).toBeGreaterThanOrEqual(8 * column.length + bytes);
        }
        const batch = withDictionary(batchFromRows(schema, wanted));
        const { length } = batch;
        expectEmptyNulls({ length, columns: batch.columns.map(plainColumn) });
        expectEmptyNulls(sliceBatch(batch, odd ? 1 : 0, length));
        expectEmptyNulls(takeRows(batch, Uint32Array.of(length - 1, 0)));
      }),
    );
  });
});
