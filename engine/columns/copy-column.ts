import type { Room } from '../memory/room.js';
import type { Column, DictionaryColumn, NumberColumn, PlainColumn } from './column.js';

/** A column with arrays of its own in memory that `room` gives. */
export function copyColumn(column: PlainColumn, room: Room): PlainColumn;
export function copyColumn(column: Column, room: Room): Column;
export function copyColumn(column: Column, room: Room): Column {
  const validity = column.validity === null ? null : copyArray(column.validity, room);
  switch (column.kind) {
    case 'int64':
      return { ...column, values: copyArray(column.values, room), validity };
    case 'float64':
      return { ...column, values: copyArray(column.values, room), validity };
    case 'bytes':
      return {
        ...column,
        offsets: copyArray(column.offsets, room),
        bytes: copyArray(column.bytes, room),
        validity,
      };
    case 'dictionary': {
      const codes = copyArray(column.codes, room);
      return { ...column, codes, values: copyColumn(column.values, room), validity };
    }
  }
}

function copyArray<A extends NumberColumn['values'] | Uint32Array | DictionaryColumn['codes']>(
  array: A,
  room: Room,
): A {
  const { byteLength, length } = array;
  const copy = room(byteLength);
  copy.set(new Uint8Array(array.buffer, array.byteOffset, byteLength));
  const OfItsType = array.constructor as new (
    buffer: ArrayBufferLike,
    byteOffset: number,
    length: number,
  ) => A;
  return new OfItsType(copy.buffer, copy.byteOffset, length);
}
