import {
  lineKeysOf,
  type LineKeys,
  jsonBool,
  jsonFloat64,
  jsonInt64,
  jsonString,
  lineTable,
  nullJsonColumn,
  type JsonColumn,
  type LineTable,
} from '../kernels/json-rows.js';
import { typeFacts, type Schema, type FieldType } from '../core/schema.js';
import type { AnswerForm, Query } from './query.js';
import { assertNever } from '../core/errors.js';
import type { Column, PlainColumn, Validity } from '../columns/column.js';

/** The fields of an answer in its order, and the keys of their values. */
export interface WrittenFields {
  readonly schema: Schema;
  /** Indices of the fields in the schema. Columns of other fields are not read. */
  readonly fields: readonly number[];
  readonly keys: LineKeys;
  /** Number of keys before those of the fields. Their columns, and those of keys after them, are null. */
  readonly leading?: number;
}

const ofSchemas = new WeakMap<Schema, WrittenFields>();
const ofForms = new WeakMap<AnswerForm, WrittenFields>();

/** The fields of the answer to a query. Returns the same object for the same form and schema, so that tables made from it can be reused. */
export function writtenFields(schema: Schema, { form }: Query): WrittenFields {
  const known = form === undefined ? ofSchemas.get(schema) : ofForms.get(form);
  if (known?.schema === schema) return known;
  const fields = form?.fields ?? schema.fields.map((_, field) => field);
  const names = fields.map((field) => schema.fields[field]!.name);
  const written = { schema, fields, keys: lineKeysOf(names, form?.format) };
  if (form === undefined) ofSchemas.set(schema, written);
  else ofForms.set(form, written);
  return written;
}

/**
 * The kernel's descriptions of columns that queries have used before. While a column is in the buffer pool, it is always the same object.
 */
const known = new WeakMap<Column, JsonColumn>();

/** Approximate bytes of a number, and of what each line has besides keys and values. */
const numberBytes = 12;
const frameBytes = 32;

/** A table that lines are written from. */
export interface WrittenTable {
  readonly table: LineTable;
  /** Approximate length of a line in bytes. */
  readonly lineBytes: number;
}

interface KnownTable extends WrittenTable {
  readonly keys: LineKeys;
  readonly columns: readonly Column[];
}

/** The last table that was made of columns, by the first of them. */
const tables = new WeakMap<Column, KnownTable>();

/** The table of the columns of an answer's fields. */
export function writtenTable(columns: readonly Column[], written: WrittenFields): WrittenTable {
  const { keys, fields, schema, leading = 0 } = written;
  const [first] = columns;
  const known = first === undefined ? undefined : tables.get(first);
  if (known?.keys === keys && columns.every((column, i) => column === known.columns[i])) return known;
  const described = keys.keys.map((_, key) => {
    const column = columns[key - leading];
    return column === undefined
      ? nullJsonColumn
      : jsonColumn(column, schema.fields[fields[key - leading]!]!.type);
  });
  const made = {
    keys,
    columns,
    table: lineTable(keys, described),
    lineBytes: keys.keys.reduce((sum, key) => sum + key.length, frameBytes) + sumOfValues(columns),
  };
  if (first !== undefined) tables.set(first, made);
  return made;
}

function sumOfValues(columns: readonly Column[]): number {
  return columns.reduce((sum, column) => sum + valueBytes(column), 0);
}

/** Approximate length of a value in bytes. */
function valueBytes(column: Column): number {
  if (column.kind === 'dictionary') return valueBytes(column.values);
  if (column.kind !== 'bytes') return numberBytes;
  const { offsets, length } = column;
  return 2 + (offsets[length]! - offsets[0]!) / Math.max(1, length);
}

function jsonColumn(column: Column, type: FieldType): JsonColumn {
  let written = known.get(column);
  if (written === undefined) {
    written = newJsonColumn(column, type);
    known.set(column, written);
  }
  return written;
}

function newJsonColumn(column: Column, type: FieldType): JsonColumn {
  if (column.kind !== 'dictionary') return plainColumn(column, type, column.validity, nullJsonColumn.codes);
  // Without dictionary entries every row is null, and the codes are meaningless.
  if (column.values.length === 0) return nullJsonColumn;
  return plainColumn(column.values, type, column.validity, column.codes);
}

function plainColumn(
  column: PlainColumn,
  type: FieldType,
  columnValidity: Validity,
  codes: Uint8Array | Uint16Array,
): JsonColumn {
  const validity = columnValidity ?? nullJsonColumn.validity;
  switch (column.kind) {
    case 'int64': {
      const { buffer, byteOffset, length } = column.values;
      const halves = new Int32Array(buffer, byteOffset, length * 2);
      const kind = typeFacts[type].isBits === true ? jsonBool : jsonInt64;
      return { ...nullJsonColumn, validity, codes, kind, halves };
    }
    case 'float64':
      return { ...nullJsonColumn, validity, codes, kind: jsonFloat64, doubles: column.values };
    case 'bytes':
      return {
        ...nullJsonColumn,
        validity,
        codes,
        kind: jsonString,
        offsets: column.offsets,
        bytes: column.bytes,
      };
    default:
      return assertNever(column);
  }
}
