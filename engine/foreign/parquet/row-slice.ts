import type { Column, PlainColumn, Validity } from '../../columns/column.js';
import { bitmapBytes, countRange } from '../../kernels/bitmap.js';

/** Returns the rows [from, to) of a column. Shares its memory, except for offsets and bits that have to be shifted. */
export function sliceRows(column: Column, from: number, to: number): Column {
  const rows = { length: to - from, validity: sliceBits(column.validity, from, to) };
  if (column.kind === 'dictionary') return { ...column, ...rows, codes: column.codes.subarray(from, to) };
  return { ...slicePlain(column, from, to), ...rows };
}

function slicePlain(column: PlainColumn, from: number, to: number): PlainColumn {
  switch (column.kind) {
    case 'int64':
      return { ...column, values: column.values.subarray(from, to) };
    case 'float64':
      return { ...column, values: column.values.subarray(from, to) };
    case 'bytes': {
      const offsets = column.offsets.subarray(from, to + 1);
      const begin = offsets[0]!;
      const bytes = column.bytes.subarray(begin, offsets[to - from]);
      return { ...column, bytes, offsets: begin === 0 ? offsets : offsets.map((offset) => offset - begin) };
    }
  }
}

/** The validity bits of the rows; null where all are present. */
function sliceBits(bits: Validity, from: number, to: number): Validity {
  if (bits === null || countRange(bits, from, to) === to - from) return null;
  const slice = new Uint8Array(bitmapBytes(to - from));
  const shift = from & 7;
  const bytes = (to - from + 7) >> 3;
  for (let i = 0, at = from >> 3; i < bytes; i++, at++)
    slice[i] = (bits[at]! >> shift) | ((bits[at + 1] ?? 0) << (8 - shift));
  if (((to - from) & 7) !== 0) slice[bytes - 1]! &= (1 << ((to - from) & 7)) - 1;
  return slice;
}
