import { assert } from './assert.js';
import { copyBytes, copyShifted } from './kernels/simd/copy.js';
import type { Column, PlainColumn, RecordBatch, Validity } from './column.js';

/**
 * A batch as one piece of memory, exactly as large as its rows: what goes to a file of one load, or from thread to thread.
 * It has no format of record: 32-bit words (rows, columns, then for each column its kind, the bytes of its validity, 0 for
 * none, and of its values), and then the columns' arrays as they are, each from a multiple of 8 on.
 */

const kindCodes = { int64: 0, float64: 1, bytes: 2 } as const;

function aligned(bytes: number): number {
  return (bytes + 7) & ~7;
}

function plain(column: Column): PlainColumn {
  assert(column.kind !== 'dictionary', 'loading builds plain columns');
  return column;
}

function headerBytes(columns: number): number {
  return aligned((2 + columns * 3) * 4);
}

function validityBytes(column: Column, rows: number): number {
  return column.validity === null ? 0 : (rows + 7) >> 3;
}

function valueBytes(column: PlainColumn, rows: number): number {
  return column.kind === 'bytes' ? column.offsets[rows]! - column.offsets[0]! : rows * 8;
}

/** Bytes that the batch takes. Its columns must be plain. */
export function packedBytes({ length, columns }: RecordBatch): number {
  let bytes = headerBytes(columns.length);
  for (const column of columns.map(plain)) {
    bytes += aligned(validityBytes(column, length)) + aligned(valueBytes(column, length));
    if (column.kind === 'bytes') bytes += aligned((length + 1) * 4);
  }
  return bytes;
}

/** Writes the batch to `target` from `at` on, which must be a multiple of 8 in the buffer; there must be `packedBytes`. */
export function packBatch({ length, columns }: RecordBatch, target: Uint8Array, at: number): void {
  const header = new Uint32Array(target.buffer, target.byteOffset + at, 2 + columns.length * 3);
  header[0] = length;
  header[1] = columns.length;
  let end = at + headerBytes(columns.length);
  const put = (array: Uint8Array): void => {
    copyBytes(array, 0, array.length, target, end);
    end += aligned(array.length);
  };
  columns.map(plain).forEach((column, i) => {
    const words = [kindCodes[column.kind], validityBytes(column, length), valueBytes(column, length)];
    header.set(words, 2 + i * 3);
    if (column.validity !== null) put(column.validity.subarray(0, (length + 7) >> 3));
    if (column.kind === 'bytes') {
      const { offsets, bytes } = column;
      const words = new Uint32Array(target.buffer, target.byteOffset + end, length + 1);
      copyShifted(offsets, 0, length + 1, -offsets[0]!, words, 0);
      end += aligned((length + 1) * 4);
      put(bytes.subarray(offsets[0], offsets[length]));
    } else {
      const { buffer, byteOffset } = column.values;
      put(new Uint8Array(buffer, byteOffset, length * 8));
    }
  });
}

/** The batch that `packBatch` wrote. Its columns are views of `packed`. */
export function unpackBatch(packed: Uint8Array, from: number): RecordBatch {
  const start = packed.byteOffset + from;
  const { buffer } = packed;
  const counts = new Uint32Array(buffer, start, 2);
  const rows = counts[0]!;
  const count = counts[1]!;
  const words = new Uint32Array(buffer, start, 2 + count * 3);
  let at = start + headerBytes(count);
  const take = (bytes: number): number => {
    at += aligned(bytes);
    return at - aligned(bytes);
  };
  const columns: PlainColumn[] = [];
  for (let i = 0; i < count; i++) {
    const kind = words[2 + i * 3]!;
    const bitmapBytes = words[3 + i * 3]!;
    const bytesOfValues = words[4 + i * 3]!;
    const validity: Validity =
      bitmapBytes === 0 ? null : new Uint8Array(buffer, take(bitmapBytes), bitmapBytes);
    if (kind === kindCodes.bytes) {
      const offsets = new Uint32Array(buffer, take((rows + 1) * 4), rows + 1);
      const bytes = new Uint8Array(buffer, take(bytesOfValues), bytesOfValues);
      columns.push({ kind: 'bytes', length: rows, offsets, bytes, validity });
    } else if (kind === kindCodes.float64) {
      const values = new Float64Array(buffer, take(bytesOfValues), rows);
      columns.push({ kind: 'float64', length: rows, values, validity });
    } else {
      const values = new BigInt64Array(buffer, take(bytesOfValues), rows);
      columns.push({ kind: 'int64', length: rows, values, validity });
    }
  }
  return { length: rows, columns };
}
