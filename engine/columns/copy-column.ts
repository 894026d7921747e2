import type { Arena } from '../memory/arena.js';
import type { Column, DictionaryColumn, NumberColumn, PlainColumn } from './column.js';

/** A copy of a column whose arrays are in memory of `arena`. */
export function copyColumn(column: PlainColumn, arena: Arena): PlainColumn;
export function copyColumn(column: Column, arena: Arena): Column;
export function copyColumn(column: Column, arena: Arena): Column {
  const validity = column.validity === null ? null : copyArray(column.validity, arena);
  switch (column.kind) {
    case 'int64':
      return { ...column, values: copyArray(column.values, arena), validity };
    case 'float64':
      return { ...column, values: copyArray(column.values, arena), validity };
    case 'bytes':
      return {
        ...column,
        offsets: copyArray(column.offsets, arena),
        bytes: copyArray(column.bytes, arena),
        validity,
      };
    case 'dictionary': {
      const codes = copyArray(column.codes, arena);
      return { ...column, codes, values: copyColumn(column.values, arena), validity };
    }
  }
}

function copyArray<A extends NumberColumn['values'] | Uint32Array | DictionaryColumn['codes']>(
  array: A,
  arena: Arena,
): A {
  const { byteLength, length } = array;
  const copy = arena(byteLength);
  copy.set(new Uint8Array(array.buffer, array.byteOffset, byteLength));
  const OfItsType = array.constructor as new (
    buffer: ArrayBufferLike,
    byteOffset: number,
    length: number,
  ) => A;
  return new OfItsType(copy.buffer, copy.byteOffset, length);
}
