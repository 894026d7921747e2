import type { BytesColumn, NumberColumn, PlainColumn } from '../columns/column.js';
import { extremeRows, type ZoneMap } from '../columns/zone-map.js';
import { boundRows } from '../kernels/string-bounds.js';
import { statisticsBytesMax } from '../core/limits.js';
import { typeFacts, type FieldType } from '../core/schema.js';

/** The bounds of a column chunk as the footer stores them: the bytes of the values in PLAIN encoding, but strings without their length. */
export interface Bounds {
  readonly min: Uint8Array;
  readonly max: Uint8Array;
}

/**
 * The bounds of a column without nulls. Null when it has no rows, or when a bound is longer than `statisticsBytesMax`.
 *
 * @param integerBytes bytes of an integer bound: 8, or 1 where the column is stored as bits
 */
export function boundsOf(column: PlainColumn, integerBytes: 1 | 8 = 8): Bounds | null {
  if (column.kind === 'bytes') return column.length === 0 ? null : bytesBounds(column);
  const extremes = extremeRows(column);
  if (extremes === null) return null;
  const min = valueBytes(column, extremes.least, -0).subarray(0, integerBytes);
  return { min, max: valueBytes(column, extremes.greatest, 0).subarray(0, integerBytes) };
}

/** The bytes of a value. Parquet requires −0 as a minimum and +0 as a maximum, because readers may distinguish the two. */
function valueBytes({ values }: NumberColumn, row: number, floatZero: number): Uint8Array {
  const value = values.slice(row, row + 1);
  if (value[0] === 0) value[0] = floatZero;
  return new Uint8Array(value.buffer);
}

function bytesBounds({ offsets, bytes, length }: BytesColumn): Bounds | null {
  const { minRow, maxRow } = boundRows(bytes, offsets, length);
  const min = bytes.slice(offsets[minRow], offsets[minRow + 1]);
  const max = bytes.slice(offsets[maxRow], offsets[maxRow + 1]);
  return min.length > statisticsBytesMax || max.length > statisticsBytesMax ? null : { min, max };
}

/** Decodes an integer bound. */
export function int64Of(bytes: Uint8Array): bigint {
  return new DataView(bytes.buffer, bytes.byteOffset, 8).getBigInt64(0, true);
}

/** Decodes a float bound. */
export function float64Of(bytes: Uint8Array): number {
  return new DataView(bytes.buffer, bytes.byteOffset, 8).getFloat64(0, true);
}

/** Decodes the bounds of a column of a type; null where they can't be decoded. */
export function boundValues(bounds: Bounds | null, type: FieldType): Pick<ZoneMap, 'min' | 'max'> {
  if (bounds === null) return { min: null, max: null };
  const { min, max } = bounds;
  const { column, isBits } = typeFacts[type];
  if (column === 'bytes') return { min, max };
  if (isBits === true) return { min: BigInt(min[0] ?? 0), max: BigInt(max[0] ?? 1) };
  // Ignore a bound with a wrong length: a missing bound rules nothing out.
  if (min.length !== 8 || max.length !== 8) return { min: null, max: null };
  return column === 'float64'
    ? { min: float64Of(min), max: float64Of(max) }
    : { min: int64Of(min), max: int64Of(max) };
}
