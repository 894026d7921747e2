import { assert } from './assert.js';
import type { RecordBatch } from './column.js';
import {
  FloatColumnBuilder,
  IntColumnBuilder,
  StringColumnBuilder,
  type RowCount,
} from './column-builder.js';
import type { ColumnBuilder } from './column-builder.js';
import { rowGroupBytesMax, rowGroupRowsMax } from './limits.js';
import { packBatch, packedBytes } from './packed-batch.js';
import type { Schema } from './schema.js';

/**
 * Builds record batches column by column: bytes and offsets, never row objects.
 *
 * A row is made by setting columns, in any order and any number of times (the last one wins), then `endRow`;
 * columns that were not set are null. `finish` gives the batch and starts anew with the same column builders, so
 * whoever writes into them may hold on to them. The batch keeps the arrays: it may be longer in memory than its rows.
 */
export class BatchBuilder {
  readonly schema: Schema;
  readonly #columns: readonly ColumnBuilder[];
  readonly #strings: readonly StringColumnBuilder[];
  readonly #count: RowCount = { rows: 0 };
  readonly #fixedBytes: number;

  constructor(schema: Schema) {
    this.schema = schema;
    this.#columns = schema.fields.map((field) => makeColumnBuilder(field.type, this.#count));
    this.#strings = this.#columns.filter((column) => column instanceof StringColumnBuilder);
    this.#fixedBytes = (this.#columns.length - this.#strings.length) * 8 + this.#strings.length * 4;
  }

  /** Ended rows. */
  get rows(): number {
    return this.#count.rows;
  }

  /** Decoded size of the ended rows: 8 bytes a number, 4 and its UTF-8 a string. */
  get bytes(): number {
    let bytes = this.#fixedBytes * this.#count.rows;
    for (const column of this.#strings) bytes += column.bytesUsed;
    return bytes;
  }

  /** Whether a row group's rows or bytes are reached. The last row may pass the bound in bytes by its own size. */
  get full(): boolean {
    return this.#count.rows >= rowGroupRowsMax || this.bytes >= rowGroupBytesMax;
  }

  column(index: number): ColumnBuilder {
    const column = this.#columns[index];
    assert(column !== undefined, `no column ${index} in the schema`);
    return column;
  }

  /** Ends the row; columns not set since the last end are null. */
  endRow(): void {
    this.#count.rows++;
  }

  /** Ends `count` rows at once; columns not set are null. */
  endRows(count: number): void {
    this.#count.rows += count;
  }

  /** Drops what was set since the last `endRow`. */
  cancelRow(): void {
    for (const column of this.#columns) column.cancelRow();
  }

  /** The ended rows as a batch. A row that was begun and not ended is dropped. */
  finish(): RecordBatch {
    const batch = this.#view();
    for (const column of this.#columns) column.drop();
    return batch;
  }

  /** As `finish`, packed, so that the next batch is built in the same arrays; null when there are no rows. */
  finishPacked(): Uint8Array | null {
    const batch = this.#view();
    let packed: Uint8Array | null = null;
    if (batch.length > 0) {
      packed = new Uint8Array(packedBytes(batch));
      packBatch(batch, packed, 0);
    }
    for (const column of this.#columns) column.clear();
    return packed;
  }

  #view(): RecordBatch {
    this.cancelRow();
    const length = this.#count.rows;
    const columns = this.#columns.map((column) => column.view());
    this.#count.rows = 0;
    return { length, columns };
  }
}

function makeColumnBuilder(type: Schema['fields'][number]['type'], count: RowCount): ColumnBuilder {
  switch (type) {
    case 'int':
    case 'time':
      return new IntColumnBuilder(count);
    case 'float':
      return new FloatColumnBuilder(count);
    case 'string':
      return new StringColumnBuilder(count);
  }
}
