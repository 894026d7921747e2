import { assertNever } from '../../terms/assert.js';
import { columnBytes } from '../../columns/column.js';
import { sharedMemory } from '../../memory/shared-memory.js';
import type { FieldType, Schema } from '../../terms/schema.js';
import type { Column, DictionaryColumn, PlainColumn, Validity } from '../../columns/column.js';
import {
  jsonBool,
  jsonFloat64,
  jsonInt64,
  jsonKeysOf,
  jsonNull,
  jsonRendered,
  jsonString,
  numberBytesMax,
  writeBool,
  writeDouble,
  writeInt64,
  writeString,
} from '../../kernels/json-rows.js';
import type { JsonColumn, JsonKeys } from '../../kernels/json-rows.js';

const none = {
  validity: new Uint8Array(0),
  codes: new Uint8Array(0),
  halves: new Int32Array(0),
  doubles: new Float64Array(0),
  offsets: new Uint32Array(0),
  bytes: new Uint8Array(0),
};

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

/** The columns of a schema's fields as the JSON kernel takes them: `jsonColumn` of each. */
export function jsonColumns(
  columns: readonly Column[],
  { fields }: Schema,
  rowsToWrite: number,
): JsonColumn[] {
  return columns.map((column, i) => jsonColumn(column, fields[i]!.type, rowsToWrite));
}

/**
 * A column as the JSON kernel takes it. The entries of a dictionary that no kernel reaches are rendered beforehand where at
 * least half as many rows are to be written.
 */
function jsonColumn(column: Column, type: FieldType, rowsToWrite: number): JsonColumn {
  if (column.kind === 'dictionary' && rowsToWrite * 2 >= column.values.length && isToRender(column)) {
    const { codes, validity } = column;
    return { ...renderEntries(column.values, type), validity: validity ?? none.validity, codes };
  }
  let written = known.get(column);
  if (written === undefined) {
    written = unrendered(column, type);
    known.set(column, written);
  }
  return written;
}

function unrendered(column: Column, type: FieldType): JsonColumn {
  if (column.kind !== 'dictionary') return plainColumn(column, type, column.validity, none.codes);
  // Without an entry every row is null, and its code stands for nothing.
  if (column.values.length === 0) return { ...none, kind: jsonNull };
  return plainColumn(column.values, type, column.validity, column.codes);
}

function plainColumn(
  column: PlainColumn,
  type: FieldType,
  columnValidity: Validity,
  codes: Uint8Array | Uint16Array,
): JsonColumn {
  const validity = columnValidity ?? none.validity;
  switch (column.kind) {
    case 'int64': {
      const { buffer, byteOffset, length } = column.values;
      const halves = new Int32Array(buffer, byteOffset, length * 2);
      return { ...none, validity, codes, kind: type === 'bool' ? jsonBool : jsonInt64, halves };
    }
    case 'float64':
      return { ...none, validity, codes, kind: jsonFloat64, doubles: column.values };
    case 'bytes':
      return {
        ...none,
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

/** Rendered entries take up to six times their bytes; larger dictionaries are escaped row by row. */
const renderedBytesMax = 16 * 1024 * 1024;

/** Whether rendering pays: a kernel writes an entry about as fast as it copies one that was rendered. */
function isToRender({ codes, values }: DictionaryColumn): boolean {
  if (sharedMemory().holds(codes)) return false;
  return values.length > 0 && columnBytes(values) * 6 <= renderedBytesMax;
}

function renderEntries(values: PlainColumn, type: FieldType): JsonColumn {
  const entries = values.length;
  const offsets = new Uint32Array(entries + 1);
  const bytes = new Uint8Array(renderedBound(values));
  let at = 0;
  const halves =
    values.kind === 'int64'
      ? new Int32Array(values.values.buffer, values.values.byteOffset, entries * 2)
      : none.halves;
  for (let i = 0; i < entries; i++) {
    if (values.kind === 'bytes') {
      at = writeString(values.bytes, values.offsets[i]!, values.offsets[i + 1]!, bytes, at);
    } else if (values.kind === 'float64') {
      at = writeDouble(values.values[i]!, bytes, at);
    } else if (type === 'bool') {
      at = writeBool(halves[2 * i]!, bytes, at);
    } else {
      at = writeInt64(halves[2 * i]! >>> 0, halves[2 * i + 1]!, bytes, at);
    }
    offsets[i + 1] = at;
  }
  return { ...none, kind: jsonRendered, offsets, bytes };
}

/** Bytes that the rendered entries take at most: six for one of a string. */
function renderedBound(values: PlainColumn): number {
  if (values.kind !== 'bytes') return values.length * numberBytesMax;
  return (values.offsets[values.length]! - values.offsets[0]!) * 6 + values.length * 2;
}
