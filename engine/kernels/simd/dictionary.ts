import * as plain from '../dictionary.js';
import { openScratch } from '../../memory/scratch.js';
import { kernelsOver } from '../kernels.js';

/** Below this many rows a call and its copies cost more than the plain twin. */
const kernelRowsMin = 256;

/** As the twin. */
export function numberBytes(
  bytes: Uint8Array,
  offsets: Uint32Array,
  count: number,
  entriesMax: number,
  codes: Uint16Array,
  firstRows: Uint32Array,
): number {
  const start = offsets[0]!;
  const end = offsets[count]!;
  const bits = plain.tableBits(entriesMax);
  const sizeBytes = end - start + count * 6 + 4 + entriesMax * 4 + 2 ** bits * 8;
  const scratch = count < kernelRowsMin ? null : openScratch(sizeBytes);
  if (scratch === null) return plain.numberBytes(bytes, offsets, count, entriesMax, codes, firstRows);
  const codesAt = scratch.room(count * 2);
  const firstRowsAt = scratch.room(entriesMax * 4);
  const tableAt = scratch.room(2 ** bits * 8);
  const offsetsAt = scratch.place(offsets, 0, count + 1);
  const bytesAt = scratch.place(bytes, start, end) - start;
  const kernels = kernelsOver(scratch);
  const distinct = kernels.numberBytes(
    bytesAt,
    offsetsAt,
    count,
    entriesMax,
    codesAt,
    firstRowsAt,
    tableAt,
    bits,
  );
  if (distinct < 0) return -1;
  scratch.take(codesAt, codes, 0, count);
  scratch.take(firstRowsAt, firstRows, 0, distinct);
  return distinct;
}

/** As the twin. */
export function numberWords(
  halves: Int32Array,
  count: number,
  entriesMax: number,
  codes: Uint16Array,
  firstRows: Uint32Array,
): number {
  const bits = plain.tableBits(entriesMax);
  const scratch = count < kernelRowsMin ? null : openScratch(count * 10 + entriesMax * 4 + 2 ** bits * 4);
  if (scratch === null) return plain.numberWords(halves, count, entriesMax, codes, firstRows);
  const valuesAt = scratch.place(halves, 0, count * 2);
  const codesAt = scratch.room(count * 2);
  const firstRowsAt = scratch.room(entriesMax * 4);
  const tableAt = scratch.room(2 ** bits * 4);
  const distinct = kernelsOver(scratch).numberWords(
    valuesAt,
    count,
    entriesMax,
    codesAt,
    firstRowsAt,
    tableAt,
    bits,
  );
  if (distinct < 0) return -1;
  scratch.take(codesAt, codes, 0, count);
  scratch.take(firstRowsAt, firstRows, 0, distinct);
  return distinct;
}
