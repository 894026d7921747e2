import {
  assertNever,
  BatchBuilder,
  type ColumnBuilder,
  type Counters,
  type FieldType,
  type FloatColumnBuilder,
  type IntColumnBuilder,
  type RecordBatch,
  type Schema,
  type StringColumnBuilder,
  valueBytesMax,
} from '../../engine/index.js';
import type { FugoRow, FugoTable } from './fugo-database.js';

/** Rows of a table as columns of an agent, with their cursors. */
export interface FugoBatch {
  readonly batch: RecordBatch;
  readonly cursors: Float64Array;
}

/** Sets a value in a column. Returns false, and sets nothing, where the value can't be read as the column's type. */
type SetValue = (value: number | bigint | Uint8Array) => boolean;

/**
 * Builds batches of rows. A field without a column in the table is null; a value that can't be read as the field's type is
 * null and counted.
 */
export class FugoBatches {
  /** The columns that fields are read from, in the order of a row's values. */
  readonly columns: readonly string[];
  readonly #builder: BatchBuilder;
  readonly #setters: readonly SetValue[];
  #cursors: number[] = [];
  #unreadableValues = 0;
  #replacedBytes = 0;
  #inputBytes = 0;

  constructor(schema: Schema, table: FugoTable) {
    this.#builder = new BatchBuilder(schema);
    const found = schema.fields
      .map(({ name, type }, i) => ({ name, type, column: this.#builder.column(i) }))
      .filter(({ name }) => table.columns.includes(name));
    this.columns = found.map(({ name }) => name);
    this.#setters = found.map(({ type, column }) => this.#setterOf(type, column));
  }

  /** Counters of all rows so far. */
  get counters(): Pick<Counters, 'unreadableValues' | 'replacedBytes' | 'inputBytes'> {
    const unreadableValues = this.#unreadableValues;
    return { unreadableValues, replacedBytes: this.#replacedBytes, inputBytes: this.#inputBytes };
  }

  /** Whether the batch has as many rows as it may have. */
  get isFull(): boolean {
    return this.#builder.full;
  }

  /** Adds a row. Returns false, and adds nothing, where a text is longer than a value may be. */
  add({ cursor, values }: FugoRow): boolean {
    if (values.some((value) => value instanceof Uint8Array && value.length > valueBytesMax)) return false;
    values.forEach((value, i) => {
      if (value === null) return;
      this.#inputBytes += value instanceof Uint8Array ? value.length : 8;
      if (!this.#setters[i]!(value)) this.#unreadableValues++;
    });
    this.#builder.endRow();
    this.#cursors.push(cursor);
    return true;
  }

  /** Returns the rows since the last batch. */
  take(): FugoBatch {
    const cursors = Float64Array.from(this.#cursors);
    this.#cursors = [];
    return { batch: this.#builder.finish(), cursors };
  }

  #setterOf(type: FieldType, column: ColumnBuilder): SetValue {
    switch (type) {
      case 'int':
      case 'time':
        return integerSetter(column as IntColumnBuilder);
      case 'bool':
        return boolSetter(column as IntColumnBuilder);
      case 'float':
        return floatSetter(column as FloatColumnBuilder);
      case 'string':
        return this.#stringSetter(column as StringColumnBuilder);
      default:
        return assertNever(type);
    }
  }

  #stringSetter(column: StringColumnBuilder): SetValue {
    return (value) => {
      if (value instanceof Uint8Array) this.#replacedBytes += column.setBytes(value, 0, value.length);
      else column.setString(String(value));
      return true;
    };
  }
}

/** Sets integers, also those that SQLite stores as floats. */
function integerSetter(column: IntColumnBuilder): SetValue {
  return (value) => {
    if (typeof value === 'bigint') column.setBigInt(value);
    else if (typeof value === 'number' && Number.isSafeInteger(value)) column.setNumber(value);
    else return false;
    return true;
  };
}

/** Sets booleans. SQLite has none: programs store 1 and 0. */
function boolSetter(column: IntColumnBuilder): SetValue {
  return (value) => {
    if (value !== 0 && value !== 1) return false;
    column.setNumber(value);
    return true;
  };
}

/** Sets finite numbers; infinity counts as unreadable. */
function floatSetter(column: FloatColumnBuilder): SetValue {
  return (value) => {
    const number = typeof value === 'bigint' ? Number(value) : value;
    if (typeof number !== 'number' || !Number.isFinite(number)) return false;
    column.setNumber(number);
    return true;
  };
}
