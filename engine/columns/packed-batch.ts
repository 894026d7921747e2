import { assert } from '../terms/assert.js';
import type { RangeArrays } from '../memory/array-space.js';
import { copyBytes, copyShifted } from '../kernels/copy.js';
import type { Column, PlainColumn, RecordBatch, Validity } from './column.js';

/**
 * A batch as one piece of memory: what goes to a file of one load, or from thread to thread. It has no format of record: 32-bit
 * words (rows, columns, then for each column its kind, where its validity, its offsets and its values lie, 0 for none, and the
 * bytes of the values), and behind them the columns' arrays as they are, each from a multiple of 8 on.
 */

const kindCodes = { int64: 0, float64: 1, bytes: 2 } as const;
/** Words of a column in the header. */
const columnWords = 5;

function aligned(bytes: number): number {
  return (bytes + 7) & ~7;
}

function plain(column: Column): PlainColumn {
  assert(column.kind !== 'dictionary', 'loading builds plain columns');
  return column;
}

/** Bytes in front of the arrays. */
export function headerBytes(columns: number): number {
  return aligned((2 + columns * columnWords) * 4);
}

function headerOf(target: Uint8Array, at: number, columns: number): Uint32Array {
  return new Uint32Array(target.buffer, target.byteOffset + at, 2 + columns * columnWords);
}

function validityBytes(column: Column, rows: number): number {
  return column.validity === null ? 0 : (rows + 7) >> 3;
}

function valueBytes(column: PlainColumn, rows: number): number {
  return column.kind === 'bytes' ? column.offsets[rows]! - column.offsets[0]! : rows * 8;
}

/** Bytes that `packBatch` writes. The columns must be plain. */
export function packedBytes({ length, columns }: RecordBatch): number {
  let bytes = headerBytes(columns.length);
  for (const column of columns.map(plain)) {
    bytes += aligned(validityBytes(column, length)) + aligned(valueBytes(column, length));
    if (column.kind === 'bytes') bytes += aligned((length + 1) * 4);
  }
  return bytes;
}

/** Bytes that a step of packing copies: a millisecond at the most, also between memories of two kinds, which are copied byte by byte. */
export const packStepBytes = 512 * 1024;

/** Writes the batch to `target` from `at` on, which must be a multiple of 8 in the buffer; there must be `packedBytes`. */
export function packBatch(batch: RecordBatch, target: Uint8Array, at: number): void {
  const steps = packSteps(batch, target, at);
  while (steps.next().done !== true);
}

/** As `packBatch`, in steps of `packStepBytes`, between which other work can be done. The batch must stay as it is until the last one. */
export function* packSteps(batch: RecordBatch, target: Uint8Array, at: number): Generator<undefined, void> {
  let copiedBytes = 0;
  for (const { units, unitBytes, copy } of layOut(batch, target, at)) {
    for (let from = 0; from < units;) {
      if (copiedBytes >= packStepBytes) {
        copiedBytes = 0;
        yield;
      }
      const to = Math.min(units, from + Math.ceil((packStepBytes - copiedBytes) / unitBytes));
      copy(from, to);
      copiedBytes += (to - from) * unitBytes;
      from = to;
    }
  }
}

/** An array of a batch on its way to its place: `copy` copies some of it, from one unit up to another. */
interface ArrayCopy {
  readonly units: number;
  readonly unitBytes: number;
  copy(from: number, to: number): void;
}

/** Writes the header of a batch, and says what is to be copied behind it. */
function layOut({ length, columns }: RecordBatch, target: Uint8Array, at: number): ArrayCopy[] {
  const header = headerOf(target, at, columns.length);
  header[0] = length;
  header[1] = columns.length;
  let end = at + headerBytes(columns.length);
  const take = (bytes: number): number => {
    end += aligned(bytes);
    return end - aligned(bytes);
  };
  const copies: ArrayCopy[] = [];
  const put = (array: Uint8Array): number => {
    const place = take(array.length);
    const copy: ArrayCopy['copy'] = (from, to) => copyBytes(array, from, to, target, place + from);
    copies.push({ units: array.length, unitBytes: 1, copy });
    return place - at;
  };
  const putOffsets = (offsets: Uint32Array): number => {
    const place = take((length + 1) * 4);
    const words = new Uint32Array(target.buffer, target.byteOffset + place, length + 1);
    const shift = -offsets[0]!;
    const copy: ArrayCopy['copy'] = (from, to) => copyShifted(offsets, from, to, shift, words, from);
    copies.push({ units: length + 1, unitBytes: 4, copy });
    return place - at;
  };
  columns.map(plain).forEach((column, i) => {
    const { validity } = column;
    const validityAt = validity === null ? 0 : put(validity.subarray(0, validityBytes(column, length)));
    let offsetsAt = 0;
    let valuesAt: number;
    if (column.kind === 'bytes') {
      const { offsets, bytes } = column;
      offsetsAt = putOffsets(offsets);
      valuesAt = put(bytes.subarray(offsets[0], offsets[length]));
    } else {
      const { buffer, byteOffset } = column.values;
      valuesAt = put(new Uint8Array(buffer, byteOffset, length * 8));
    }
    const words = [kindCodes[column.kind], validityAt, offsetsAt, valuesAt, valueBytes(column, length)];
    header.set(words, 2 + i * columnWords);
  });
  return copies;
}

/**
 * Makes the arrays of a batch a packed one where they lie, in a space that began with room for the header and has been given out for
 * nothing else; the space's range is the packed batch then. False where one of them lies elsewhere. Strings must begin at offset 0.
 */
export function packInPlace({ length, columns }: RecordBatch, space: RangeArrays): boolean {
  const header = headerOf(space.range, 0, columns.length);
  const isPlaced = columns.map(plain).every((column, i) => {
    let validityAt = 0;
    if (column.validity !== null) {
      const bits = space.bytes(validityBytes(column, length));
      bits.set(column.validity.subarray(0, bits.length));
      validityAt = space.placeOf(bits);
    }
    const offsetsAt = column.kind === 'bytes' ? space.placeOf(column.offsets) : 0;
    const values = column.kind === 'bytes' ? column.bytes : column.values;
    const valuesAt = values.byteLength === 0 ? 0 : space.placeOf(values);
    const words = [kindCodes[column.kind], validityAt, offsetsAt, valuesAt, valueBytes(column, length)];
    header.set(words, 2 + i * columnWords);
    return validityAt >= 0 && offsetsAt >= 0 && valuesAt >= 0;
  });
  header[0] = length;
  header[1] = columns.length;
  return isPlaced;
}

/** The batch that `packBatch` or `packInPlace` packed. Its columns are views of `packed`. */
export function unpackBatch(packed: Uint8Array, from: number): RecordBatch {
  const start = packed.byteOffset + from;
  const { buffer } = packed;
  const counts = new Uint32Array(buffer, start, 2);
  const rows = counts[0]!;
  const header = headerOf(packed, from, counts[1]!);
  const columns: PlainColumn[] = [];
  for (let at = 2; at < header.length; at += columnWords) {
    const kind = header[at]!;
    const validityAt = header[at + 1]!;
    const valuesAt = start + header[at + 3]!;
    const validity: Validity =
      validityAt === 0 ? null : new Uint8Array(buffer, start + validityAt, (rows + 7) >> 3);
    if (kind === kindCodes.bytes) {
      const offsets = new Uint32Array(buffer, start + header[at + 2]!, rows + 1);
      const bytes = new Uint8Array(buffer, valuesAt, header[at + 4]!);
      columns.push({ kind: 'bytes', length: rows, offsets, bytes, validity });
    } else if (kind === kindCodes.float64) {
      columns.push({
        kind: 'float64',
        length: rows,
        values: new Float64Array(buffer, valuesAt, rows),
        validity,
      });
    } else {
      columns.push({
        kind: 'int64',
        length: rows,
        values: new BigInt64Array(buffer, valuesAt, rows),
        validity,
      });
    }
  }
  return { length: rows, columns };
}
