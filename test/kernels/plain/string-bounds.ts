import type { BoundRows } from '../../../engine/kernels/string-bounds.js';

/**
 * Finds the first minimum and the first maximum of `rows` strings, at least one, in the order of unsigned bytes. Row r is
 * bytes[offsets[r], offsets[r + 1]).
 */
export function boundRows(bytes: Uint8Array, offsets: Uint32Array, rows: number): BoundRows {
  let minRow = 0;
  let maxRow = 0;
  for (let row = 1; row < rows; row++) {
    if (compareRows(bytes, offsets, row, minRow) < 0) minRow = row;
    else if (compareRows(bytes, offsets, row, maxRow) > 0) maxRow = row;
  }
  return { minRow, maxRow };
}

/** Negative, zero or positive in the order of unsigned bytes. */
function compareRows(bytes: Uint8Array, offsets: Uint32Array, a: number, b: number): number {
  const startA = offsets[a]!;
  const startB = offsets[b]!;
  const lengthA = offsets[a + 1]! - startA;
  const lengthB = offsets[b + 1]! - startB;
  const shared = Math.min(lengthA, lengthB);
  for (let k = 0; k < shared; k++) {
    const difference = bytes[startA + k]! - bytes[startB + k]!;
    if (difference !== 0) return difference;
  }
  return lengthA - lengthB;
}
