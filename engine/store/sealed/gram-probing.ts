import { checkedPiece, isBitSet, pieceStoredBytesMax, planProbes } from './gram-filter.js';
import type { GramFilterShape, GramProbe } from './gram-filter.js';

/** Pieces of a gram filter that are read at once, and the bits of them that a text asks for. */
export interface GramRead {
  /** Offset in the filter. */
  readonly offset: number;
  readonly bytes: number;
  readonly pieces: number;
  readonly probes: readonly GramProbe[];
}

/** So much is read at once: two pieces that lie side by side. A third takes as long to copy as a second read, which is rarely needed. */
const readBytesMax = 2 * pieceStoredBytesMax;

/**
 * What has to be read of a gram filter to look a text up; empty where the filter can't tell. The reads that ask for most bits come first,
 * because they are the likeliest to miss one.
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

/** Whether a filter may have all bits of a read, given the bytes read. A damaged piece rules nothing out: `verify` reports it. */
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
