import { assertNever } from '../../terms/assert.js';
import type { FieldType } from '../../terms/schema.js';
import type { Column, PlainColumn, Validity } from '../../columns/column.js';
import {
  jsonBool,
  jsonFloat64,
  jsonInt64,
  jsonString,
  nullJsonColumn,
  type JsonColumn,
} from '../../kernels/json-rows.js';
import type { WrittenFields } from './written-fields.js';

/**
 * The kernel's descriptions of columns that queries have used before. While a column is in the buffer pool, it is always the same object.
 */
const known = new WeakMap<Column, JsonColumn>();

/** Describes the columns of an answer's fields for the kernel. */
export function jsonColumns(columns: readonly Column[], { fields, schema }: WrittenFields): JsonColumn[] {
  return columns.map((column, i) => jsonColumn(column, schema.fields[fields[i]!]!.type));
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
