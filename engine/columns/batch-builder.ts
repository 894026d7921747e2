import { heap, type Arena, type RangeArena } from '../memory/arena.js';
import { assert } from '../terms/assert.js';
import { rowGroupBytesMax, rowGroupRowsMax } from '../terms/limits.js';
import type { Schema } from '../terms/schema.js';
import type { RecordBatch } from './column.js';
import {
  expectedGrowth,
  firstRowsDefault,
  makeColumnBuilder,
  StringColumnBuilder,
  type BuilderState,
  type ColumnBuilder,
} from './column-builder.js';
import { packBatch, packedBytes, packInPlace } from './packed-batch.js';
import { plainColumn } from './take.js';

/**
 * Builds record batches column by column: bytes and offsets, never row objects.
 *
 * A row is made by setting columns, in any order and any number of times (the last one wins), then `endRow`;
 * columns that were not set are null. `finish` gives the batch and starts anew with the same column builders, so
 * writers may keep references to them. The batch keeps the arrays: it may be longer in memory than its rows.
 */
export class BatchBuilder {
  readonly schema: Schema;
  readonly #columns: readonly ColumnBuilder[];
  readonly #strings: readonly StringColumnBuilder[];
  readonly #state: BuilderState;
  readonly #fixedBytes: number;

  /** @param usual what a batch has in the end, where that is known; null where nobody knows */
  constructor(schema: Schema, usual: BuilderState['usual'] = null) {
    this.schema = schema;
    this.#state = { rows: 0, arena: heap, firstRows: firstRowsDefault, usual };
    this.#columns = schema.fields.map((field) => makeColumnBuilder(field.type, this.#state));
    this.#strings = this.#columns.filter((column) => column instanceof StringColumnBuilder);
    this.#fixedBytes = (this.#columns.length - this.#strings.length) * 8 + this.#strings.length * 4;
  }

  /** Ended rows. */
  get rows(): number {
    return this.#state.rows;
  }

  /** Decoded size of the ended rows: 8 bytes a number, 4 and its UTF-8 a string. */
  get bytes(): number {
    let bytes = this.#fixedBytes * this.#state.rows;
    for (const column of this.#strings) bytes += column.bytesUsed;
    return bytes;
  }

  /** Memory for rows, used or not. */
  get memoryBytes(): number {
    return this.#columns.reduce((sum, column) => sum + column.memoryBytes, 0);
  }

  /** Whether a row group's rows or bytes are reached. The last row may pass the bound in bytes by its own size. */
  get full(): boolean {
    return this.#state.rows >= rowGroupRowsMax || this.bytes >= rowGroupBytesMax;
  }

  column(index: number): ColumnBuilder {
    const column = this.#columns[index];
    assert(column !== undefined, `no column ${index} in the schema`);
    return column;
  }

  /** Ends the row; columns not set since the last end are null. */
  endRow(): void {
    this.#state.rows++;
  }

  /** Ends `count` rows at once; columns not set are null. */
  endRows(count: number): void {
    this.#state.rows += count;
  }

  /** Drops what was set since the last `endRow`. */
  cancelRow(): void {
    for (const column of this.#columns) column.cancelRow();
  }

  /** Adds copies of all rows of a batch, whose columns are those of the schema. */
  append({ length, columns }: RecordBatch): void {
    assert(columns.length === this.#columns.length, 'a batch has a column for each field');
    this.#columns.forEach((column, i) => column.append(plainColumn(columns[i]!)));
    this.endRows(length);
  }

  /** The first `rows` rows, which stay as they are while others are added. A row that was begun and not ended is dropped. */
  take(rows: number): RecordBatch {
    this.cancelRow();
    return { length: rows, columns: this.#columns.map((column) => column.take(rows)) };
  }

  /** Forgets all rows, and begins anew in the same arrays: nobody may read what was built in them any more. */
  clear(): void {
    this.#state.rows = 0;
    for (const column of this.#columns) column.clear();
  }

  /** The ended rows as a batch. A row that was begun and not ended is dropped. */
  finish(): RecordBatch {
    const batch = this.take(this.rows);
    this.#drop();
    return batch;
  }

  /**
   * Calls `use` with the ended rows as a batch, which is valid until `use` is done: then the next batch is built in the same arrays.
   * Nothing may be built meanwhile.
   */
  async lend<T>(use: (batch: RecordBatch) => Promise<T>): Promise<T> {
    try {
      return await use(this.take(this.rows));
    } finally {
      this.clear();
    }
  }

  /**
   * The ended rows as a packed batch; null when there are none. The next batch is built in the same arrays. With `space`, whose first
   * `headerBytes` are still unused, a batch whose arrays all lie there is packed where it lies: then the result is the number of bytes
   * that it takes of the space.
   */
  finishPacked(): Uint8Array | null;
  finishPacked(space: RangeArena | undefined): Uint8Array | number | null;
  finishPacked(space?: RangeArena): Uint8Array | number | null {
    const batch = this.take(this.rows);
    if (batch.length > 0 && space !== undefined && packInPlace(batch, space)) {
      this.#drop();
      return space.usedBytes;
    }
    let packed: Uint8Array | null = null;
    if (batch.length > 0) {
      packed = new Uint8Array(packedBytes(batch));
      packBatch(batch, packed, 0);
    }
    this.clear();
    return packed;
  }

  /**
   * Has `build` make a batch in memory of `arena`, which lasts as long: it ends with `finishPacked`. There must be no row yet.
   * `rowsExpected` are those of the batch before.
   */
  within<T>(arena: Arena, rowsExpected: number, build: () => T): T {
    assert(this.#state.rows === 0, 'a batch is built in one space');
    const set = (memory: Arena, firstRows: number): void => {
      this.#drop();
      this.#state.arena = memory;
      this.#state.firstRows = Math.max(firstRowsDefault, firstRows);
    };
    set(arena, Math.ceil(rowsExpected * expectedGrowth));
    try {
      return build();
    } finally {
      set(heap, firstRowsDefault);
    }
  }

  #drop(): void {
    this.#state.rows = 0;
    for (const column of this.#columns) column.drop();
  }
}
