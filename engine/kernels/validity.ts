/**
 * Definition levels of a flat optional column (https://parquet.apache.org/docs/file-format/nulls/): one bit per row in Parquet's
 * RLE/bit-packing hybrid. Packed levels have the same bytes as the bitmaps in memory (least significant bit first, 1 = present).
 */
import { addBits, countRange, setRange } from './bitmap.js';

/** The number of runs of equal bits in the first `rows` bits. */
export function countRuns(bits: Uint8Array, rows: number): number {
  let runs = rows === 0 ? 0 : 1;
  for (let row = 1; row < rows; row++) {
    const before = (bits[(row - 1) >> 3]! >> ((row - 1) & 7)) & 1;
    if (((bits[row >> 3]! >> (row & 7)) & 1) !== before) runs++;
  }
  return runs;
}

/** Maximum bytes that `encodeLevels` writes for `rows` rows. */
export function levelBytesMax(rows: number): number {
  return 8 + ((rows + 7) >> 3);
}

/** Maximum bytes of an RLE run of up to 64 Ki rows: three for its length and one for its value. */
const runBytesMax = 4;

/**
 * Encodes the levels of `rows` rows to `target`. `bits` is null when every row is present. Writes RLE runs, unless these might take more
 * bytes than one packed run. Returns the number of bytes written.
 */
export function encodeLevels(bits: Uint8Array | null, rows: number, target: Uint8Array): number {
  if (bits === null) return writeRun(rows, 1, target, 0);
  const packedBytes = (rows + 7) >> 3;
  if (countRuns(bits, rows) * runBytesMax > packedBytes) {
    const at = writeVarint((packedBytes << 1) | 1, target, 0);
    target.set(bits.subarray(0, packedBytes), at);
    return at + packedBytes;
  }
  let at = 0;
  let row = 0;
  while (row < rows) {
    const value = (bits[row >> 3]! >> (row & 7)) & 1;
    let end = row + 1;
    while (end < rows && ((bits[end >> 3]! >> (end & 7)) & 1) === value) end++;
    at = writeRun(end - row, value, target, at);
    row = end;
  }
  return at;
}

function writeRun(rows: number, value: number, target: Uint8Array, at: number): number {
  at = writeVarint(rows << 1, target, at);
  target[at++] = value;
  return at;
}

/** Writes an unsigned number below 2^32 as a varint to `target` from offset `at` on. Returns the offset after it. */
export function writeVarint(value: number, target: Uint8Array, at: number): number {
  while (value >= 128) {
    target[at++] = (value & 127) | 128;
    value >>>= 7;
  }
  target[at++] = value;
  return at;
}

/**
 * Decodes the levels of `rows` rows from source[at, end) into `bits`, which must be all zeros and have room for them. Ignores what a run
 * has beyond the last row. Returns the number of present rows, or -1 when the input is malformed.
 */
export function decodeLevels(
  source: Uint8Array,
  at: number,
  end: number,
  rows: number,
  bits: Uint8Array,
): number {
  let row = 0;
  while (row < rows) {
    let header = 0;
    let factor = 1;
    let byte = 128;
    while (byte >= 128) {
      if (at >= end || factor > 0x10000000) return -1;
      byte = source[at++]!;
      header += (byte & 127) * factor;
      factor *= 128;
    }
    const length = Math.floor(header / 2);
    if (length === 0) return -1;
    if (header % 2 === 0) {
      if (at >= end || source[at]! > 1) return -1;
      const runEnd = Math.min(rows, row + length);
      if (source[at++] === 1) setRange(bits, row, runEnd);
      row = runEnd;
      continue;
    }
    const bytes = Math.min(length, (rows - row + 7) >> 3);
    if (bytes > end - at) return -1;
    addBits(bits, row, source, at, bytes);
    at = Math.min(end, at + length);
    row += bytes * 8;
  }
  // Up to seven bits after the last row may have been written: clear them. Writes beyond the end of the array have no effect.
  bits[rows >> 3]! &= (1 << (rows & 7)) - 1;
  bits[(rows >> 3) + 1] = 0;
  return countRange(bits, 0, rows);
}
