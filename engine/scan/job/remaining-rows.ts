import { andRange, bitmapBytes, countRange, flipRange, listRange, setRange } from '../../kernels/bitmap.js';
import type { RowGroupShare } from '../plan/plan.js';
import type { Selection } from './selection.js';

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

  /** Keeps only the rows that `copy` still has. */
  keepThoseOf(copy: RemainingRows): void {
    if (copy.#count === 0) this.clear();
    else this.keep(copy.#allBits().slice());
  }

  /** Excludes the rows that `copy` still has. */
  takeAway(copy: RemainingRows): void {
    if (copy.#count === 0) return;
    const { from, to } = this.range;
    const others = copy.#allBits().slice();
    flipRange(others, from, to);
    this.keep(others);
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
