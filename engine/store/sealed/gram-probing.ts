import { isBitSet, planProbes } from './gram-filter.js';
import type { GramFilterShape, GramPiece } from './gram-filter.js';

/** A piece of a gram filter, and the bits to look up in it. */
export interface GramLookup {
  readonly piece: GramPiece;
  readonly bits: readonly number[];
}

/**
 * The pieces to look up a text in a gram filter; empty if the filter cannot tell. Pieces with most bits come first, because they are the
 * most likely to have one that is not set.
 */
export function planGramLookups(shape: GramFilterShape, folded: Uint8Array): GramLookup[] {
  const lookups = new Map<number, { piece: GramPiece; bits: number[] }>();
  for (const { piece, bit } of planProbes(shape, folded)) {
    const known = lookups.get(piece.offset);
    if (known === undefined) lookups.set(piece.offset, { piece, bits: [bit] });
    else known.bits.push(bit);
  }
  return [...lookups.values()].sort((a, b) => b.bits.length - a.bits.length);
}

/** Whether all bits are set in the piece that begins at offset `at`. */
export function mayHaveAll({ bits }: GramLookup, bytes: Uint8Array, at: number): boolean {
  return bits.every((bit) => isBitSet(bytes, at * 8 + bit));
}
