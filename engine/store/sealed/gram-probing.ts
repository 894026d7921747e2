import { checkedPiece, isBitSet, planProbes } from './gram-filter.js';
import type { GramFilterShape, GramPiece, GramProbe } from './gram-filter.js';

/**
 * Looks a needle up in one gram filter, reading as few pieces of it as possible. The caller reads the piece that is `wanted` and gives
 * it to `take`, until nothing is wanted.
 */
export class GramProbing {
  readonly #probes: readonly GramProbe[];
  readonly #first: number;
  /** Pieces that have been read; null for one that is damaged. */
  readonly #pieces = new Map<number, Uint8Array | null>();
  /** Probes that have been answered, counted from `#first` on. */
  #answered = 0;
  #missed = -1;

  /**
   * @param first the probe to begin with. What tells a needle apart stands at the same place for every filter of a column,
   *   so that the one that ruled out the last row group is likely to rule out the next
   */
  constructor(shape: GramFilterShape, folded: Uint8Array, first: number) {
    this.#probes = planProbes(shape, folded);
    this.#first = first < this.#probes.length ? first : 0;
  }

  /** The probe that was missed; -1 while none was. */
  get missed(): number {
    return this.#missed;
  }

  /** What the filter says once nothing is wanted: false only when the column has no such text. */
  get mayContain(): boolean {
    return this.#missed < 0;
  }

  /** The piece to be read next, or null. */
  wanted(): GramPiece | null {
    while (this.#missed < 0 && this.#answered < this.#probes.length) {
      const index = (this.#first + this.#answered) % this.#probes.length;
      const { piece, bit } = this.#probes[index]!;
      const bitmap = this.#pieces.get(piece.offset);
      if (bitmap === undefined) return piece;
      // A damaged piece can't rule anything out: the answer stays right, and `verify` reports it.
      if (bitmap !== null && !isBitSet(bitmap, bit)) this.#missed = index;
      this.#answered++;
    }
    return null;
  }

  /** Gives the piece that was wanted, as it was read. */
  take(piece: GramPiece, stored: Uint8Array): void {
    this.#pieces.set(piece.offset, checkedPiece(stored, piece));
  }
}
