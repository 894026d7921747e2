import type { BytesColumn, Column } from '../columns/column.js';
import { gatherCodes, gatherWords } from '../kernels/spread.js';
import { countOnes } from '../kernels/validity.js';

/** The two 32-bit halves (low, high) of each 8-byte value: what the kernels compute on. */
export function halvesOf(values: BigInt64Array | Float64Array): Int32Array {
  return new Int32Array(values.buffer, values.byteOffset, values.length * 2);
}

/** The column with its nulls left out: what a page stores. `validity` is null and `length` the number of present rows. */
export function presentValues(column: Column): Column {
  const bits = column.validity;
  if (bits === null) return column;
  const present = countOnes(bits, column.length);
  if (present === column.length) return { ...column, validity: null };
  switch (column.kind) {
    case 'int64': {
      const values = new BigInt64Array(present);
      gatherWords(halvesOf(column.values), bits, column.length, halvesOf(values));
      return { kind: 'int64', length: present, values, validity: null };
    }
    case 'float64': {
      const values = new Float64Array(present);
      gatherWords(halvesOf(column.values), bits, column.length, halvesOf(values));
      return { kind: 'float64', length: present, values, validity: null };
    }
    case 'bytes':
      return presentBytes(column, bits, present);
    case 'dictionary': {
      const codes = column.codes instanceof Uint8Array ? new Uint8Array(present) : new Uint16Array(present);
      gatherCodes(column.codes, bits, column.length, codes);
      return { ...column, codes, length: present, validity: null };
    }
  }
}

function presentBytes(column: BytesColumn, bits: Uint8Array, present: number): BytesColumn {
  const offsets = new Uint32Array(present + 1);
  let at = 0;
  let nullBytes = 0;
  for (let row = 0; row < column.length; row++) {
    if ((bits[row >> 3]! & (1 << (row & 7))) !== 0) offsets[at++] = column.offsets[row]!;
    else nullBytes += column.offsets[row + 1]! - column.offsets[row]!;
  }
  offsets[present] = column.offsets[column.length]!;
  // Where nulls take no bytes, as they should, the present values still stand one behind another.
  if (nullBytes > 0) return withoutNullBytes(column, bits, present);
  return { kind: 'bytes', length: present, offsets, bytes: column.bytes, validity: null };
}

function withoutNullBytes(column: BytesColumn, bits: Uint8Array, present: number): BytesColumn {
  const offsets = new Uint32Array(present + 1);
  const bytes = new Uint8Array(column.offsets[column.length]! - column.offsets[0]!);
  let at = 0;
  let end = 0;
  for (let row = 0; row < column.length; row++) {
    if ((bits[row >> 3]! & (1 << (row & 7))) === 0) continue;
    bytes.set(column.bytes.subarray(column.offsets[row], column.offsets[row + 1]), end);
    end += column.offsets[row + 1]! - column.offsets[row]!;
    offsets[++at] = end;
  }
  return { kind: 'bytes', length: present, offsets, bytes, validity: null };
}
