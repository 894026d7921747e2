import { assert } from '../../core/errors.js';
import type { Run } from '../manifest/manifest.js';

const twoTo32 = 4294967296;

/**
 * Fills `values` with the positions of the rows from `firstRow` on, in the form of the `_cursor` column: the partition in the high 24 bits,
 * the ordinal in the low 40. The runs must cover these rows.
 */
export function fillCursors(runs: readonly Run[], firstRow: number, values: BigInt64Array): void {
  const halves = new Int32Array(values.buffer, values.byteOffset, values.length * 2);
  const endRow = firstRow + values.length;
  let filled = firstRow;
  for (const run of runs) {
    if (run.firstRow + run.rows <= filled) continue;
    if (run.firstRow >= endRow) break;
    assert(run.firstRow <= filled, 'the runs of a segment cover every row');
    const end = Math.min(endRow, run.firstRow + run.rows);
    for (let row = filled; row < end; row++) {
      const ordinal = run.firstOrdinal + (row - run.firstRow);
      halves[2 * (row - firstRow)] = ordinal | 0;
      halves[2 * (row - firstRow) + 1] = (run.partition << 8) | Math.floor(ordinal / twoTo32);
    }
    filled = end;
  }
  assert(filled === endRow, 'the runs of a segment cover every row');
}
