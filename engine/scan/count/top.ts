import type { FieldType } from '../../terms/schema.js';
import { compareValues } from './value-bytes.js';
import type { ValueTable } from './value-table.js';

/** The numbers of the `top` most frequent values, by descending count and then ascending value. */
export function mostFrequent(table: ValueTable, top: number, type: FieldType): number[] {
  const { counts } = table;
  const isBefore = (one: number, other: number): boolean => {
    const more = counts[one]! - counts[other]!;
    if (more !== 0) return more > 0;
    return compareValues(table.valueOf(one), table.valueOf(other), type) < 0;
  };
  const best: number[] = [];
  for (let value = 0; value < counts.length; value++) {
    if (best.length === top && (top === 0 || !isBefore(value, best[top - 1]!))) continue;
    if (best.length === top) best.pop();
    best.splice(placeOf(value, best, isBefore), 0, value);
  }
  return best;
}

/** The index at which a value has to be inserted to keep the order. */
function placeOf(
  value: number,
  ordered: readonly number[],
  isBefore: (one: number, other: number) => boolean,
): number {
  let low = 0;
  let high = ordered.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (isBefore(ordered[middle]!, value)) low = middle + 1;
    else high = middle;
  }
  return low;
}
