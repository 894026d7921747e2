import { assertNever } from '../assert.js';
import { columnBytes } from '../column.js';
import { sharedMemory } from '../kernels/shared-memory.js';
import type { Column, DictionaryColumn, PlainColumn, Validity } from '../column.js';
import {
  jsonFloat64,
  jsonInt64,
  jsonRendered,
  jsonString,
  numberBytesMax,
  writeDouble,
  writeInt64,
  writeString,
} from '../kernels/json-rows.js';
import type { JsonColumn } from '../kernels/json-rows.js';

const noCodes = new Uint8Array(0);
const noHalves = new Int32Array(0);
const noDoubles = new Float64Array(0);
const noOffsets = new Uint32Array(0);
const noBytes = new Uint8Array(0);

/** `,"name":`, which stands before a field's value in every line. */
export function jsonKey(name: string): Uint8Array {
  return new TextEncoder().encode(`,${JSON.stringify(name)}:`);
}

/**
 * A column as the JSON kernel takes it. The entries of a dictionary that no kernel reaches are rendered beforehand where at
 * least half as many rows are to be written.
 */
export function jsonColumn(key: Uint8Array, column: Column, rowsToWrite: number): JsonColumn {
  if (column.kind !== 'dictionary') return plainColumn(key, column, column.validity, noCodes);
  // Without an entry every row is null, and its code stands for nothing.
  if (column.values.length === 0) return allNull(key, column);
  // A kernel writes an entry about as fast as it copies one that was rendered.
  const memory = sharedMemory();
  const isForKernel = memory !== null && memory.kernels !== null && memory.holds(column.codes);
  if (isForKernel || rowsToWrite * 2 < column.values.length || !isRenderable(column)) {
    return plainColumn(key, column.values, column.validity, column.codes);
  }
  return { ...renderEntries(key, column.values), validity: column.validity ?? noBytes, codes: column.codes };
}

function allNull(key: Uint8Array, column: DictionaryColumn): JsonColumn {
  const validity = new Uint8Array((column.length + 7) >> 3);
  const arrays = { halves: noHalves, doubles: noDoubles, offsets: noOffsets, bytes: noBytes };
  return { kind: jsonInt64, key, validity, codes: noCodes, ...arrays };
}

function plainColumn(
  key: Uint8Array,
  column: PlainColumn,
  validity: Validity,
  codes: Uint8Array | Uint16Array,
): JsonColumn {
  const shape = {
    key,
    validity: validity ?? noBytes,
    codes,
    halves: noHalves,
    doubles: noDoubles,
    offsets: noOffsets,
    bytes: noBytes,
  };
  switch (column.kind) {
    case 'int64': {
      const { buffer, byteOffset, length } = column.values;
      return { ...shape, kind: jsonInt64, halves: new Int32Array(buffer, byteOffset, length * 2) };
    }
    case 'float64':
      return { ...shape, kind: jsonFloat64, doubles: column.values };
    case 'bytes':
      return { ...shape, kind: jsonString, offsets: column.offsets, bytes: column.bytes };
    default:
      return assertNever(column);
  }
}

/** Rendered entries take up to six times their bytes; larger dictionaries are escaped row by row. */
const renderedBytesMax = 16 * 1024 * 1024;

function isRenderable(column: DictionaryColumn): boolean {
  return columnBytes(column.values) * 6 <= renderedBytesMax;
}

function renderEntries(key: Uint8Array, values: PlainColumn): JsonColumn {
  const entries = values.length;
  const offsets = new Uint32Array(entries + 1);
  const bytes = new Uint8Array(renderedBound(values));
  let at = 0;
  const halves =
    values.kind === 'int64'
      ? new Int32Array(values.values.buffer, values.values.byteOffset, entries * 2)
      : noHalves;
  for (let i = 0; i < entries; i++) {
    if (values.kind === 'bytes') {
      at = writeString(values.bytes, values.offsets[i]!, values.offsets[i + 1]!, bytes, at);
    } else if (values.kind === 'float64') {
      at = writeDouble(values.values[i]!, bytes, at);
    } else {
      at = writeInt64(halves[2 * i]! >>> 0, halves[2 * i + 1]!, bytes, at);
    }
    offsets[i + 1] = at;
  }
  return {
    kind: jsonRendered,
    key,
    validity: noBytes,
    codes: noCodes,
    halves: noHalves,
    doubles: noDoubles,
    offsets,
    bytes,
  };
}

/** Bytes that the rendered entries take at most: six for one of a string. */
function renderedBound(values: PlainColumn): number {
  if (values.kind !== 'bytes') return values.length * numberBytesMax;
  return (values.offsets[values.length]! - values.offsets[0]!) * 6 + values.length * 2;
}
