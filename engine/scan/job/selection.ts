import { countRange, listRange } from '../../kernels/bitmap.js';
import { lowerBound } from '../plan/lower-bound.js';
import type { RowRange, ScanUnit } from '../plan/plan.js';

/** The matching rows of a row group. */
export type Selection =
  | { readonly kind: 'none' }
  | { readonly kind: 'all' }
  /** One bit for each row of the row group, least significant bit first. */
  | { readonly kind: 'bits'; readonly bits: Uint8Array }
  /** Ascending row numbers, where that takes less memory. Two bytes each suffice, because a row group has at most 64 Ki rows. */
  | { readonly kind: 'rows'; readonly rows: Uint16Array };

/** Number of matching rows in the ranges. */
export function countSelected(selection: Selection, ranges: readonly RowRange[]): number {
  let count = 0;
  for (const range of ranges) count += countInRange(selection, range);
  return count;
}

/** Number of matching rows in a range. */
export function countInRange(selection: Selection, range: RowRange): number {
  const end = range.firstRow + range.rows;
  switch (selection.kind) {
    case 'none':
      return 0;
    case 'all':
      return range.rows;
    case 'bits':
      return countRange(selection.bits, range.firstRow, end);
    case 'rows':
      return lowerBound(selection.rows, end) - lowerBound(selection.rows, range.firstRow);
  }
}

/**
 * The same rows within the ranges in the form that takes the least memory. A selection is kept until all of the newest matches have been
 * found, which can be many row groups later.
 */
export function compactSelection(
  selection: Selection,
  ranges: readonly RowRange[],
  count: number,
): Selection {
  if (selection.kind !== 'bits' || count * 2 >= selection.bits.byteLength) return selection;
  const rows = new Uint16Array(count);
  let at = 0;
  for (const range of ranges) {
    at = listRange(selection.bits, range.firstRow, range.firstRow + range.rows, rows, at);
  }
  // The ranges ascend by position; in a hot row group their row numbers need not ascend.
  return { kind: 'rows', rows: rows.sort() };
}

/** Writes the matching rows of a range to `rows`, ascending, and returns their number. `rows` must have room for all. */
export function listSelected(selection: Selection, range: RowRange, rows: Uint32Array): number {
  const end = range.firstRow + range.rows;
  switch (selection.kind) {
    case 'none':
      return 0;
    case 'all':
      for (let i = 0; i < range.rows; i++) rows[i] = range.firstRow + i;
      return range.rows;
    case 'bits':
      return listRange(selection.bits, range.firstRow, end, rows, 0);
    case 'rows': {
      const from = lowerBound(selection.rows, range.firstRow);
      const to = lowerBound(selection.rows, end);
      for (let i = from; i < to; i++) rows[i - from] = selection.rows[i]!;
      return to - from;
    }
  }
}

/** Matches of one unit that are part of the answer: `take` of them, after the first `skip`. */
export interface Matches {
  readonly unit: ScanUnit;
  readonly selection: Selection;
  readonly skip: number;
  readonly take: number;
}
