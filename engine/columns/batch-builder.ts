import { heap, type Arena, type RangeArena } from '../core/arena.js';
import { assert } from '../core/errors.js';
import { rowGroupBytesMax, rowGroupRowsMax, spareHotBytesMax } from '../core/limits.js';
import type { Schema } from '../core/schema.js';
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
 * Builds record batches column by column, as bytes and offsets; there are no row objects.
 *
 * To make a row, set columns in any order and any number of times (the last value wins), then call `endRow`. Columns that were not set are
 * null. `finish` returns the batch and starts over with the same column builders, so that callers may keep references to them. The batch
 * keeps the arrays, which may be longer than its rows need.
 */
export class BatchBuilder {
  readonly schema: Schema;
  readonly #columns: readonly ColumnBuilder[];
  readonly #strings: readonly StringColumnBuilder[];
  readonly #state: BuilderState;
  readonly #fixedBytes: number;
  #isClosed = false;

  /** @param usual rows and bytes of a finished batch, where they are known; else null */
  constructor(schema: Schema, usual: BuilderState['usual'] = null) {
    this.schema = schema;
    this.#state = { rows: 0, arena: heap, firstRows: firstRowsDefault, usual };
    this.#columns = schema.fields.map((field) => makeColumnBuilder(field.type, this.#state));
    this.#strings = this.#columns.filter((column) => column instanceof StringColumnBuilder);
    this.#fixedBytes = (this.#columns.length - this.#strings.length) * 8 + this.#strings.length * 4;
  }

  /** Number of ended rows. */
  get rows(): number {
    return this.#state.rows;
  }

  /** Decoded size of the ended rows: 8 bytes per number; 4 bytes plus the UTF-8 bytes per string. */
  get bytes(): number {
    let bytes = this.#fixedBytes * this.#state.rows;
    for (const column of this.#strings) bytes += column.bytesUsed;
    return bytes;
  }

  /** Bytes of memory for rows, used or not. */
  get memoryBytes(): number {
    return this.#columns.reduce((sum, column) => sum + column.memoryBytes, 0);
  }

  /** Whether the rows or bytes of a row group have been reached. The last row may exceed the bound of bytes by its own size. */
  get full(): boolean {
    return this.#isClosed || this.#state.rows >= rowGroupRowsMax || this.bytes >= rowGroupBytesMax;
  }

  /** Makes the builder count as full, where the rows that come next belong together and there is no room for all of them. */
  close(): void {
    this.#isClosed = true;
  }

  /** The builder of the column of field `index`. */
  column(index: number): ColumnBuilder {
    const column = this.#columns[index];
    assert(column !== undefined, `no column ${index} in the schema`);
    return column;
  }

  /** Ends the row. Columns that were not set since the last end are null. */
  endRow(): void {
    this.#state.rows++;
  }

  /** Ends `count` rows at once. Columns that were not set are null. */
  endRows(count: number): void {
    this.#state.rows += count;
  }

  /** Drops the values set since the last `endRow`. */
  cancelRow(): void {
    for (const column of this.#columns) column.cancelRow();
  }

  /** Appends copies of all rows of a batch with the same columns. */
  append({ length, columns }: RecordBatch): void {
    assert(columns.length === this.#columns.length, 'a batch has a column for each field');
    this.#columns.forEach((column, i) => column.append(plainColumn(columns[i]!)));
    this.endRows(length);
  }

  /** The first `rows` rows. They do not change when further rows are added. An unfinished row is dropped. */
  take(rows: number): RecordBatch {
    this.cancelRow();
    return { length: rows, columns: this.#columns.map((column) => column.take(rows)) };
  }

  /** Forgets all rows and starts over in the same arrays. Batches that were built in them must not be used any more. */
  clear(): void {
    this.#isClosed = false;
    this.#state.rows = 0;
    for (const column of this.#columns) column.clear();
  }

  /** The ended rows as a batch. An unfinished row is dropped. */
  finish(): RecordBatch {
    const batch = this.take(this.rows);
    this.#drop();
    return batch;
  }

  /**
   * Calls `use` with the ended rows as a batch, which is valid until the promise of `use` settles. Then the next batch is built in the same
   * arrays. Nothing may be built meanwhile.
   */
  async lend<T>(use: (batch: RecordBatch) => Promise<T>): Promise<T> {
    try {
      return await use(this.take(this.rows));
    } finally {
      this.clear();
    }
  }

  /**
   * Packs the ended rows. Returns null when there are none. The next batch is built in the same arrays. With `space`, whose first
   * `headerBytes` bytes must be unused, a batch whose arrays are all in that range is packed in place; then the result is the number of
   * bytes that it takes of the space.
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
   * Calls `build` to make a batch in memory of `arena`, which is only used during the call. `build` must end with `finishPacked`. There
   * must be no rows before the call. `rowsExpected` is the number of rows of the last batch.
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
    this.#isClosed = false;
    this.#state.rows = 0;
    for (const column of this.#columns) column.drop();
  }
}

/** Builders with less memory are not kept, because new ones are made quickly. */
const keptBytesMin = 1024 * 1024;
/** Rows and bytes of a hot file when it is sealed. */
const usual = { rows: rowGroupRowsMax, bytes: rowGroupBytesMax };

function typesOf({ fields }: Schema): string {
  return fields.map(({ type }) => type).join();
}

/**
 * Keeps the builders of sealed hot files for later hot files whose fields have the same types. A busy log fills tens of megabytes several
 * times a second. With new memory each time, the garbage collector would run as often, and the operating system would map each page again.
 */
export class SpareBuilders {
  /** The oldest first. */
  readonly #spares: BatchBuilder[] = [];
  #memoryBytes = 0;

  constructor(private readonly bytesMax: number) {}

  get memoryBytes(): number {
    return this.#memoryBytes;
  }

  /**
   * A builder without rows for columns of the schema's types. The caller may return it with `giveBack`. The `schema` of a reused builder may
   * have other field names.
   */
  take(schema: Schema): BatchBuilder {
    const types = typesOf(schema);
    const index = this.#spares.findLastIndex((spare) => typesOf(spare.schema) === types);
    return index < 0 ? new BatchBuilder(schema, usual) : this.#remove(index);
  }

  /** Takes back a builder whose rows are no longer read. Drops the oldest builders when they take too much memory. */
  giveBack(builder: BatchBuilder): void {
    const { memoryBytes } = builder;
    if (memoryBytes < keptBytesMin || memoryBytes > this.bytesMax) return;
    builder.clear();
    this.#spares.push(builder);
    this.#memoryBytes += builder.memoryBytes;
    while (this.#memoryBytes > this.bytesMax) this.#remove(0);
  }

  #remove(index: number): BatchBuilder {
    const [spare] = this.#spares.splice(index, 1);
    this.#memoryBytes -= spare!.memoryBytes;
    return spare!;
  }
}

/** The spare builders of all agents of the process, with one common bound. */
export const spareBuilders = new SpareBuilders(spareHotBytesMax);
