import { countRange } from '../kernels/bitmap.js';
import {
  halvesOf,
  isValid,
  type Float64Column,
  type Int64Column,
  type NumberColumn,
  type PlainColumn,
} from './column.js';

/**
 * Bounds of a column chunk. Pruning may keep too many row groups but never drops a match, so a missing bound means "may match". Bounds are
 * inclusive. Those of strings are compared as unsigned bytes; those of floats are never NaN.
 */
export interface ZoneMap {
  readonly nullCount: number;
  readonly rows: number;
  readonly min: bigint | number | Uint8Array | null;
  readonly max: bigint | number | Uint8Array | null;
}

/** The zone map of no rows, from which `widenZone` starts. */
export const zoneOfNoRows: ZoneMap = { nullCount: 0, rows: 0, min: null, max: null };

/** The zone map of the rows of `zone` together with those of `column`. It gets no bounds for strings. */
export function widenZone({ nullCount, rows, min, max }: ZoneMap, column: PlainColumn): ZoneMap {
  const { length, validity } = column;
  const nulls = validity === null ? 0 : length - countRange(validity, 0, length);
  const widened = { nullCount: nullCount + nulls, rows: rows + length, min, max };
  const extremes = column.kind === 'bytes' ? null : extremeRows(column);
  if (extremes === null || column.kind === 'bytes') return widened;
  const least = column.values[extremes.least]!;
  const greatest = column.values[extremes.greatest]!;
  return {
    ...widened,
    min: min === null || least < (min as typeof least) ? least : min,
    max: max === null || greatest > (max as typeof greatest) ? greatest : max,
  };
}

/** The first rows with the least and with the greatest number, of those that are not null; null where all are. No value may be NaN. */
export function extremeRows(column: NumberColumn): { least: number; greatest: number } | null {
  const { validity, length } = column;
  let first = 0;
  while (first < length && !isValid(validity, first)) first++;
  if (first === length) return null;
  return column.kind === 'int64' ? extremeIntegers(column, first) : extremeFloats(column, first);
}

/** Compares halves, because reading a bigint may allocate. */
function extremeIntegers(
  { values, validity, length }: Int64Column,
  first: number,
): { least: number; greatest: number } {
  const halves = halvesOf(values);
  let least = first;
  let leastHigh = halves[2 * first + 1]!;
  let leastLow = halves[2 * first]! >>> 0;
  let greatest = first;
  let greatestHigh = leastHigh;
  let greatestLow = leastLow;
  for (let row = first + 1; row < length; row++) {
    if (validity !== null && !isValid(validity, row)) continue;
    const high = halves[2 * row + 1]!;
    const low = halves[2 * row]! >>> 0;
    if (high < leastHigh || (high === leastHigh && low < leastLow)) {
      least = row;
      leastHigh = high;
      leastLow = low;
    } else if (high > greatestHigh || (high === greatestHigh && low > greatestLow)) {
      greatest = row;
      greatestHigh = high;
      greatestLow = low;
    }
  }
  return { least, greatest };
}

function extremeFloats(
  { values, validity, length }: Float64Column,
  first: number,
): { least: number; greatest: number } {
  let least = first;
  let greatest = first;
  for (let row = first + 1; row < length; row++) {
    if (validity !== null && !isValid(validity, row)) continue;
    if (values[row]! < values[least]!) least = row;
    if (values[row]! > values[greatest]!) greatest = row;
  }
  return { least, greatest };
}
