import { openScratch, scratchBytes } from '../core/scratch.js';
import { kernelsOver } from './kernels.js';

/** The rows with the least and with the greatest string. */
export interface BoundRows {
  readonly minRow: number;
  readonly maxRow: number;
}

/**
 * Finds the first row with the least and the first row with the greatest of `rows` strings (at least one), compared as unsigned bytes. Row
 * r is bytes[offsets[r], offsets[r + 1]).
 */
export function boundRows(bytes: Uint8Array, offsets: Uint32Array, rows: number): BoundRows {
  const start = offsets[0]!;
  const end = offsets[rows]!;
  const scratch = openScratch(scratchBytes(bytes, end - start) + scratchBytes(offsets, rows + 1) + 8);
  const bytesAt = scratch.place(bytes, start, end) - start;
  const offsetsAt = scratch.place(offsets, 0, rows + 1);
  const foundAt = scratch.reserve(8);
  kernelsOver(scratch).boundRows(bytesAt, offsetsAt, rows, foundAt);
  const { buffer, byteOffset } = scratch.view(foundAt, 8);
  const [minRow, maxRow] = new Uint32Array(buffer, byteOffset, 2);
  return { minRow: minRow!, maxRow: maxRow! };
}
