import type { BytesColumn, PlainColumn } from '../columns/column.js';
import { boundRows } from '../kernels/string-bounds.js';
import { statisticsBytesMax } from '../terms/limits.js';

/** Bounds of a column chunk as the footer keeps them: the values' bytes in PLAIN encoding, strings without their length. */
export interface Bounds {
  readonly min: Uint8Array;
  readonly max: Uint8Array;
}

/**
 * Bounds of a column that has no nulls; null when it has no rows, or its bounds are too long to keep or no numbers.
 *
 * @param integerBytes as which integers are stored: 8, or 1 for those that are written as bits
 */
export function boundsOf(column: PlainColumn, integerBytes: 1 | 8 = 8): Bounds | null {
  if (column.length === 0) return null;
  switch (column.kind) {
    case 'int64':
      return int64Bounds(column.values.subarray(0, column.length), integerBytes);
    case 'float64':
      return floatBounds(column.values.subarray(0, column.length));
    case 'bytes':
      return bytesBounds(column);
  }
}

function int64Bounds(values: BigInt64Array, integerBytes: number): Bounds {
  let minRow = 0;
  let maxRow = 0;
  const halves = new Int32Array(values.buffer, values.byteOffset, values.length * 2);
  for (let row = 1; row < values.length; row++) {
    if (isLess(halves, row, minRow)) minRow = row;
    else if (isLess(halves, maxRow, row)) maxRow = row;
  }
  const bytesOf = (row: number): Uint8Array => int64Bytes(values[row]!).subarray(0, integerBytes);
  return { min: bytesOf(minRow), max: bytesOf(maxRow) };
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

function bytesBounds({ offsets, bytes, length }: BytesColumn): Bounds | null {
  const { minRow, maxRow } = boundRows(bytes, offsets, length);
  const min = bytes.slice(offsets[minRow], offsets[minRow + 1]);
  const max = bytes.slice(offsets[maxRow], offsets[maxRow + 1]);
  return min.length > statisticsBytesMax || max.length > statisticsBytesMax ? null : { min, max };
}

/** An integer as bounds keep it. */
export function int64Of(bytes: Uint8Array): bigint {
  return new DataView(bytes.buffer, bytes.byteOffset, 8).getBigInt64(0, true);
}

/** A float as bounds keep it. */
export function float64Of(bytes: Uint8Array): number {
  return new DataView(bytes.buffer, bytes.byteOffset, 8).getFloat64(0, true);
}
