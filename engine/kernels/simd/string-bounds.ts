import * as plain from '../string-bounds.js';
import { openScratch, scratchBytes } from '../../memory/scratch.js';
import { kernelsOver } from '../kernels.js';

/** Below this many rows a call and its copies cost more than the plain twin. */
const kernelRowsMin = 64;

/** As the twin. */
export function boundRows(bytes: Uint8Array, offsets: Uint32Array, rows: number): plain.BoundRows {
  const start = offsets[0]!;
  const end = offsets[rows]!;
  const scratch =
    rows < kernelRowsMin
      ? null
      : openScratch(scratchBytes(bytes, end - start) + scratchBytes(offsets, rows + 1) + 8);
  if (scratch === null) return plain.boundRows(bytes, offsets, rows);
  const bytesAt = scratch.place(bytes, start, end) - start;
  const offsetsAt = scratch.place(offsets, 0, rows + 1);
  const foundAt = scratch.room(8);
  kernelsOver(scratch).boundRows(bytesAt, offsetsAt, rows, foundAt);
  const { buffer, byteOffset } = scratch.view(foundAt, 8);
  const [minRow, maxRow] = new Uint32Array(buffer, byteOffset, 2);
  return { minRow: minRow!, maxRow: maxRow! };
}
