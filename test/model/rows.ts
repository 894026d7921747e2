import { assert } from '../../engine/core/errors.js';
import { BatchBuilder } from '../../engine/columns/batch-builder.js';
import type { RecordBatch } from '../../engine/columns/column.js';
import type { ColumnBuilder } from '../../engine/columns/column-builder.js';
import type { Schema } from '../../engine/core/schema.js';

export type Value = null | bigint | number | string;

/**
 * Builds a batch from rows. An `int` or `time` takes a bigint or a safe integer, a `float` a number, a `string` a string.
 */
export function batchFromRows(schema: Schema, rows: readonly (readonly Value[])[]): RecordBatch {
  const builder = new BatchBuilder(schema);
  for (const row of rows) {
    assert(
      row.length === schema.fields.length,
      `a row of ${row.length} values for ${schema.fields.length} fields`,
    );
    row.forEach((value, i) => setValue(builder.column(i), value));
    builder.endRow();
  }
  return builder.finish();
}

function setValue(column: ColumnBuilder, value: Value): void {
  if (value === null) {
    column.setNull();
    return;
  }
  switch (column.kind) {
    case 'int':
      assert(
        typeof value === 'bigint' || Number.isSafeInteger(value),
        `${String(value)} is no value of an integer column`,
      );
      column.setBigInt(BigInt(value));
      return;
    case 'float':
      assert(typeof value === 'number', `${String(value)} is no value of a float column`);
      column.setNumber(value);
      return;
    case 'string':
      assert(typeof value === 'string', `${String(value)} is no value of a string column`);
      column.setString(value);
  }
}
