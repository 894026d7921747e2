import { type BytesColumn, halvesOf, numberColumn, type PlainColumn } from '../columns/column.js';
import { takeColumn } from '../columns/take.js';
import { listRange } from '../kernels/bitmap.js';
import { gatherWords } from '../kernels/spread.js';
import { countRange } from '../kernels/bitmap.js';

/** The column without its nulls, which is what a page stores. Its `validity` is null, and its `length` is the number of present rows. */
export function presentValues(column: PlainColumn): PlainColumn {
  const bits = column.validity;
  if (bits === null) return column;
  const present = countRange(bits, 0, column.length);
  if (present === column.length) return { ...column, validity: null };
  if (column.kind === 'bytes') return presentStrings(column, bits, present);
  const halves = new Int32Array(present * 2);
  gatherWords(halvesOf(column.values), bits, column.length, halves);
  return numberColumn(column.kind, present, halves.buffer, 0, null);
}

function presentStrings(column: BytesColumn, bits: Uint8Array, present: number): PlainColumn {
  const { length } = column;
  const offsets = new Uint32Array(present + 1);
  let at = 0;
  let nullBytes = 0;
  for (let row = 0; row < length; row++) {
    if ((bits[row >> 3]! & (1 << (row & 7))) !== 0) offsets[at++] = column.offsets[row]!;
    else nullBytes += column.offsets[row + 1]! - column.offsets[row]!;
  }
  offsets[present] = column.offsets[length]!;
  // If nulls take no bytes, as they should, the bytes of the present values are contiguous and need not be copied.
  if (nullBytes === 0)
    return { kind: 'bytes', length: present, offsets, bytes: column.bytes, validity: null };
  const rows = new Uint32Array(present);
  listRange(bits, 0, length, rows, 0);
  return takeColumn({ ...column, validity: null }, rows);
}
