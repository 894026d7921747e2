import { andRange, bitmapBytes, countRange, flipRange, listRange, setRange } from '../../kernels/bitmap.js';
import type { RowGroupShare } from '../plan/plan.js';
import type { Selection } from './selection.js';

/** Gives a bitmap of so many bytes, all zeros. */
export type AllocateBitmap = (sizeBytes: number) => Uint8Array;

/** The rows of a share that no predicate has excluded yet. A bitmap is made only when some are left and some are not. */
export class RemainingRows {
  readonly #rows: number;
  readonly #share: RowGroupShare;
  readonly #makeRoom: AllocateBitmap;
  #bits: Uint8Array | null = null;
  #spare: Uint8Array | null = null;
  #count: number;

  /**
   * @param rows of the whole row group
   * @param makeRoom is asked for two bitmaps at most
   */
  constructor(
    rows: number,
    share: RowGroupShare,
    makeRoom: AllocateBitmap = (sizeBytes) => new Uint8Array(sizeBytes),
  ) {
    this.#rows = rows;
    this.#share = share;
    this.#makeRoom = makeRoom;
    this.#count = share.endRow - share.firstRow;
  }

  get count(): number {
    return this.#count;
  }

  /** Where predicates are to be evaluated: all rows in [from, to), `from` a multiple of 8. */
  get range(): { readonly from: number; readonly to: number } {
    return { from: this.#share.firstRow & ~7, to: this.#share.endRow };
  }

  /** A bitmap for the rows that match a predicate, to be given to `keep`. Its bits within the range are of any value, the others 0. */
  room(): Uint8Array {
    const room = this.#spare ?? this.#makeRoom(bitmapBytes(this.#rows));
    this.#spare = null;
    return room;
  }

  /** Keeps only rows that match: `matches` has the bits of the range, and belongs to this object from here on. */
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

  /** Keeps only rows of which `isMatch` holds, asked one by one. */
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

  /** Keeps none. */
  clear(): void {
    this.#count = 0;
  }

  /** The same rows, to be narrowed down by themselves. */
  copy(): RemainingRows {
    const copy = new RemainingRows(this.#rows, this.#share);
    copy.#bits = this.#bits === null ? null : this.#bits.slice();
    copy.#count = this.#count;
    return copy;
  }

  /** Keeps only the rows that are left of a copy. */
  keepThoseOf(copy: RemainingRows): void {
    if (copy.#count === 0) this.clear();
    else this.keep(copy.#allBits().slice());
  }

  /** Keeps only the rows that are not left of a copy. */
  takeAway(copy: RemainingRows): void {
    if (copy.#count === 0) return;
    const { from, to } = this.range;
    const others = copy.#allBits().slice();
    flipRange(others, from, to);
    this.keep(others);
  }

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
