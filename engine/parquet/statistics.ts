import type { BytesColumn, PlainColumn } from '../column.js';
import { statisticsBytesMax } from '../limits.js';

/** Bounds of a column chunk as the footer keeps them: the values' bytes in PLAIN encoding, strings without their length. */
export interface Bounds {
  readonly min: Uint8Array;
  readonly max: Uint8Array;
}

/** Bounds of a column that has no nulls; null when it has no rows, or its bounds are too long to keep or no numbers. */
export function boundsOf(column: PlainColumn): Bounds | null {
  if (column.length === 0) return null;
  switch (column.kind) {
    case 'int64':
      return int64Bounds(column.values.subarray(0, column.length));
    case 'float64':
      return floatBounds(column.values.subarray(0, column.length));
    case 'bytes':
      return bytesBounds(column);
  }
}

function int64Bounds(values: BigInt64Array): Bounds {
  let minRow = 0;
  let maxRow = 0;
  const halves = new Int32Array(values.buffer, values.byteOffset, values.length * 2);
  for (let row = 1; row < values.length; row++) {
    if (isLess(halves, row, minRow)) minRow = row;
    else if (isLess(halves, maxRow, row)) maxRow = row;
  }
  return { min: int64Bytes(values[minRow]!), max: int64Bytes(values[maxRow]!) };
}

function isLess(halves: Int32Array, a: number, b: number): boolean {
  const highA = halves[2 * a + 1]!;
  const highB = halves[2 * b + 1]!;
  return highA < highB || (highA === highB && halves[2 * a]! >>> 0 < halves[2 * b]! >>> 0);
}

function int64Bytes(value: bigint): Uint8Array {
  const bytes = new Uint8Array(8);
  new DataView(bytes.buffer).setBigInt64(0, value, true);
  return bytes;
}

function floatBounds(values: Float64Array): Bounds | null {
  let min = Infinity;
  let max = -Infinity;
  for (let row = 0; row < values.length; row++) {
    const value = values[row]!;
    if (Number.isNaN(value)) return null;
    if (value < min) min = value;
    if (value > max) max = value;
  }
  // Parquet asks for these signs, because readers may order -0 below +0.
  return { min: floatBytes(min === 0 ? -0 : min), max: floatBytes(max === 0 ? 0 : max) };
}

function floatBytes(value: number): Uint8Array {
  const bytes = new Uint8Array(8);
  new DataView(bytes.buffer).setFloat64(0, value, true);
  return bytes;
}

function bytesBounds(column: BytesColumn): Bounds | null {
  const { offsets, bytes } = column;
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  let minRow = 0;
  let maxRow = 0;
  let minPrefix = prefixOf(view, offsets[0]!, offsets[1]!);
  let maxPrefix = minPrefix;
  for (let row = 1; row < column.length; row++) {
    const prefix = prefixOf(view, offsets[row]!, offsets[row + 1]!);
    if (prefix < minPrefix || (prefix === minPrefix && compareRows(column, row, minRow) < 0)) {
      minRow = row;
      minPrefix = prefix;
    } else if (prefix > maxPrefix || (prefix === maxPrefix && compareRows(column, row, maxRow) > 0)) {
      maxRow = row;
      maxPrefix = prefix;
    }
  }
  const min = bytes.slice(offsets[minRow], offsets[minRow + 1]);
  const max = bytes.slice(offsets[maxRow], offsets[maxRow + 1]);
  return min.length > statisticsBytesMax || max.length > statisticsBytesMax ? null : { min, max };
}

/** The first four bytes as a big-endian number: orders as the strings do, but for those that share them. */
function prefixOf(view: DataView, start: number, end: number): number {
  if (end - start >= 4) return view.getUint32(start);
  let prefix = 0;
  for (let k = 0; k < 4; k++) prefix = prefix * 256 + (start + k < end ? view.getUint8(start + k) : 0);
  return prefix;
}

/** Negative, zero or positive in the order of unsigned bytes. */
function compareRows(column: BytesColumn, a: number, b: number): number {
  const { offsets, bytes } = column;
  const startA = offsets[a]!;
  const startB = offsets[b]!;
  const lengthA = offsets[a + 1]! - startA;
  const lengthB = offsets[b + 1]! - startB;
  const shared = Math.min(lengthA, lengthB);
  for (let k = 0; k < shared; k++) {
    const difference = bytes[startA + k]! - bytes[startB + k]!;
    if (difference !== 0) return difference;
  }
  return lengthA - lengthB;
}
