import { checkedPiece, isBitSet, pieceStoredBytesMax, planProbes } from './gram-filter.js';
import type { GramFilterShape, GramProbe } from './gram-filter.js';

/** Adjacent pieces of a gram filter that are read at once, and the bits to look up in them. */
export interface GramRead {
  /** Offset in the filter. */
  readonly offset: number;
  readonly bytes: number;
  readonly pieces: number;
  readonly probes: readonly GramProbe[];
}

/** Maximum length of a read: two adjacent pieces. Copying a third takes as long as a second read, which is rarely needed. */
const readBytesMax = 2 * pieceStoredBytesMax;

/**
 * The reads to look up a text in a gram filter; empty if the filter cannot tell. Reads with most bits come first, because they are the most
 * likely to find one that is not set.
 */
export function planGramReads(shape: GramFilterShape, folded: Uint8Array): GramRead[] {
  const probes = planProbes(shape, folded).sort((a, b) => a.piece.offset - b.piece.offset);
  const reads: GramRead[] = [];
  for (const probe of probes) {
    const { offset, storedBytes } = probe.piece;
    const last = reads.at(-1);
    const isNear = last !== undefined && offset + storedBytes - last.offset <= readBytesMax;
    if (isNear) reads.pop();
    const from = isNear ? last.offset : offset;
    const bytes = offset + storedBytes - from;
    const together = isNear ? [...last.probes, probe] : [probe];
    reads.push({ offset: from, bytes, pieces: bytes / storedBytes, probes: together });
  }
  return reads.sort((a, b) => b.probes.length - a.probes.length);
}

/** Whether all bits of a read are set in `stored`, the bytes read. A damaged piece rules nothing out; `verify` reports it. */
export function mayHaveAll({ offset, probes }: GramRead, stored: Uint8Array): boolean {
  let checked = -1;
  let bitmap: Uint8Array | null = null;
  for (const { piece, bit } of probes) {
    if (piece.offset !== checked) {
      const from = piece.offset - offset;
      bitmap = checkedPiece(stored.subarray(from, from + piece.storedBytes), piece);
      checked = piece.offset;
    }
    if (bitmap !== null && !isBitSet(bitmap, bit)) return false;
  }
  return true;
}
