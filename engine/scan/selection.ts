import { countRange, listRange, andRange, bitmapBytes, flipRange, setRange } from '../kernels/bitmap.js';
import { lowerBound, type RowRange, type ScanUnit, type RowGroupShare } from './plan.js';

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
export function countInRange(selection: Selection, range: Pick<RowRange, 'firstRow' | 'rows'>): number {
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

/** The rows of a share that no predicate has excluded yet. A bitmap is made only once some rows are excluded and some are left. */
export class RemainingRows {
  readonly #rows: number;
  readonly #share: RowGroupShare;
  #bits: Uint8Array | null = null;
  #spare: Uint8Array | null = null;
  #count: number;

  /** @param rows number of rows in the whole row group */
  constructor(rows: number, share: RowGroupShare) {
    this.#rows = rows;
    this.#share = share;
    this.#count = share.endRow - share.firstRow;
  }

  /** Number of remaining rows. */
  get count(): number {
    return this.#count;
  }

  /** The share, and the number of rows in the whole row group. */
  get span(): { readonly rows: number; readonly firstRow: number; readonly endRow: number } {
    return { rows: this.#rows, firstRow: this.#share.firstRow, endRow: this.#share.endRow };
  }

  /** One bit for each row of the row group; null while all rows of the share remain. */
  get bits(): Uint8Array | null {
    return this.#bits;
  }

  /** The rows that predicates are evaluated on: [from, to), where `from` is a multiple of 8. */
  get range(): { readonly from: number; readonly to: number } {
    return { from: this.#share.firstRow & ~7, to: this.#share.endRow };
  }

  /** A bitmap to write the matches of a predicate to, for `keep`. The bits within the range are undefined, the others are 0. */
  room(): Uint8Array {
    const room = this.#spare ?? new Uint8Array(bitmapBytes(this.#rows));
    this.#spare = null;
    return room;
  }

  /** Keeps only rows that match. `matches` has the bits of the range; it belongs to this object afterwards. */
  keep(matches: Uint8Array): void {
    const { from, to } = this.range;
    if (this.#bits === null) {
      const { firstRow } = this.#share;
      if (from < firstRow) matches[from >> 3]! &= 0xff << (firstRow & 7);
      this.#bits = matches;
    } else {
      andRange(this.#bits, matches, from, to);
      if (matches.length === this.#bits.length) this.#spare = matches;
    }
    this.#count = countRange(this.#bits, this.#share.firstRow, to);
  }

  /** Keeps only rows for which `isMatch` holds. It is called once for each remaining row. */
  keepEach(isMatch: (row: number) => boolean): void {
    const bits = this.#allBits();
    const rows = new Uint32Array(this.#count);
    listRange(bits, this.#share.firstRow, this.#share.endRow, rows, 0);
    for (const row of rows) {
      if (isMatch(row)) continue;
      bits[row >> 3]! &= ~(1 << (row & 7));
      this.#count--;
    }
  }

  /** Excludes all rows. */
  clear(): void {
    this.#count = 0;
  }

  /** A copy of the remaining rows that can be narrowed independently. */
  copy(): RemainingRows {
    const copy = new RemainingRows(this.#rows, this.#share);
    copy.#bits = this.#bits === null ? null : this.#bits.slice();
    copy.#count = this.#count;
    return copy;
  }

  /** Excludes the rows that `copy` still has. */
  takeAway(copy: RemainingRows): void {
    if (copy.#count > 0) this.exclude(copy.#allBits().slice());
  }

  /** Excludes the rows whose bits are set. The bits belong to this object afterwards. */
  exclude(bits: Uint8Array): void {
    const { from, to } = this.range;
    flipRange(bits, from, to);
    this.keep(bits);
  }

  /** The remaining rows. */
  selection(): Selection {
    return this.#count === 0 ? { kind: 'none' } : { kind: 'bits', bits: this.#allBits() };
  }

  #allBits(): Uint8Array {
    if (this.#bits === null) {
      this.#bits = this.room();
      setRange(this.#bits, this.#share.firstRow, this.#share.endRow);
    }
    return this.#bits;
  }
}
