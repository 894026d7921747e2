import { assertNever } from '../../terms/assert.js';
import type { FieldType, Schema } from '../../terms/schema.js';
import type { Column, PlainColumn, Validity } from '../../columns/column.js';
import {
  jsonBool,
  jsonFloat64,
  jsonInt64,
  jsonKeysOf,
  jsonString,
  nullJsonColumn,
  type JsonColumn,
  type JsonKeys,
} from '../../kernels/json-rows.js';

const keysOfSchemas = new WeakMap<Schema, JsonKeys>();

/** What stands before the values of a schema's fields. */
export function jsonKeys(schema: Schema): JsonKeys {
  let keys = keysOfSchemas.get(schema);
  if (keys === undefined) {
    keys = jsonKeysOf(schema.fields.map(({ name }) => name));
    keysOfSchemas.set(schema, keys);
  }
  return keys;
}

/** Columns as they are written, those that queries have asked for again and again: the pool gives each the same. */
const known = new WeakMap<Column, JsonColumn>();

/** The columns of a schema's fields as the JSON kernel takes them. */
export function jsonColumns(columns: readonly Column[], { fields }: Schema): JsonColumn[] {
  return columns.map((column, i) => jsonColumn(column, fields[i]!.type));
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
  // Without an entry every row is null, and its code stands for nothing.
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
      return { ...nullJsonColumn, validity, codes, kind: type === 'bool' ? jsonBool : jsonInt64, halves };
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
