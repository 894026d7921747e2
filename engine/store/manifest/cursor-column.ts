import { assert } from '../../core/errors.js';
import type { OrdinalRun } from './manifest.js';

const twoTo32 = 4294967296;

/**
 * Fills `values` with the positions of the rows from `firstRow` on, in the form of the `_cursor` column: the partition in the high 24 bits,
 * the ordinal in the low 40. The runs are those of the rows from row 0 on. Written as 32-bit halves, because arithmetic on bigints is slow.
 */
export function fillCursors(
  runs: readonly OrdinalRun[],
  firstRow: number,
  values: BigInt64Array | BigUint64Array,
): void {
  const halves = new Int32Array(values.buffer, values.byteOffset, values.length * 2);
  const endRow = firstRow + values.length;
  let runRow = 0;
  for (const { partition, firstOrdinal, rows } of runs) {
    const end = Math.min(endRow, runRow + rows);
    for (let row = Math.max(firstRow, runRow); row < end; row++) {
      const ordinal = firstOrdinal + (row - runRow);
      halves[2 * (row - firstRow)] = ordinal | 0;
      halves[2 * (row - firstRow) + 1] = (partition << 8) | Math.floor(ordinal / twoTo32);
    }
    runRow += rows;
    if (runRow >= endRow) return;
  }
  assert(values.length === 0, 'every row has a position');
}
