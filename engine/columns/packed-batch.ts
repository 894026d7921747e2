import { assert } from '../core/errors.js';
import type { RangeArena } from '../core/arena.js';
import { copyBytes, copyShifted } from '../kernels/copy.js';
import {
  arraysOf,
  type Column,
  numberColumn,
  type PlainColumn,
  type RecordBatch,
  columnAt,
  columnLayout,
  wordsPerLayout,
} from './column.js';

/**
 * A batch as one contiguous piece of memory, in which it is written to a file of a load or sent to another thread. The piece has 32-bit
 * words (number of rows, number of columns, then the `columnLayout` of each column relative to the piece), followed by the arrays of the
 * columns. Each array begins at a multiple of 8. The format is not versioned and may change: such a file does not outlive the load session
 * that writes it.
 */

/**
 * Bytes copied in one step of packing. A step takes a millisecond at most, even between heap and shared memory, which is copied byte by
 * byte.
 */
export const packStepBytes = 512 * 1024;

function aligned(bytes: number): number {
  return (bytes + 7) & ~7;
}

function plain(column: Column): PlainColumn {
  assert(column.kind !== 'dictionary', 'loading builds plain columns');
  return column;
}

/** Bytes of the words before the arrays. */
export function headerBytes(columns: number): number {
  return aligned((2 + columns * wordsPerLayout) * 4);
}

/** Writes the words before the arrays. The columns must already be at their final addresses. */
function writeHeader({ length, columns }: RecordBatch, target: Uint8Array, at: number): void {
  const base = target.byteOffset + at;
  const header = new Uint32Array(target.buffer, base, 2 + columns.length * wordsPerLayout);
  header.set([length, columns.length]);
  columns.forEach((column, i) => header.set(columnLayout(column, base), 2 + i * wordsPerLayout));
}

function validityBytes(column: Column, rows: number): number {
  return column.validity === null ? 0 : (rows + 7) >> 3;
}

/** Number of bytes that `packBatch` writes. The columns must be plain. */
export function packedBytes({ length, columns }: RecordBatch): number {
  let bytes = headerBytes(columns.length);
  for (const column of columns.map(plain)) {
    bytes += aligned(validityBytes(column, length));
    if (column.kind !== 'bytes') bytes += length * 8;
    else bytes += aligned((length + 1) * 4) + aligned(column.offsets[length]! - column.offsets[0]!);
  }
  return bytes;
}

/**
 * Writes a batch to `target` from `at` on, which must be a multiple of 8 in the buffer. `target` must have room for `packedBytes` bytes.
 */
export function packBatch(batch: RecordBatch, target: Uint8Array, at: number): void {
  const steps = packSteps(batch, target, at);
  while (steps.next().done !== true);
}

/** An array that has to be copied. `copy` copies its elements [from, to). */
interface ArrayCopy {
  readonly units: number;
  readonly unitBytes: number;
  copy(from: number, to: number): void;
}

/**
 * Like `packBatch`, in steps of `packStepBytes` bytes, so that other work can be done in between. The batch must not change before the last
 * step.
 */
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

/** Writes the words before the arrays, and returns the copies that are still to be made. */
function layOut({ length, columns }: RecordBatch, target: Uint8Array, at: number): ArrayCopy[] {
  const { buffer } = target;
  const copies: ArrayCopy[] = [];
  let end = target.byteOffset + at + headerBytes(columns.length);
  const placeFor = (bytes: number): number => {
    end += aligned(bytes);
    return end - aligned(bytes);
  };
  const copied = (array: Uint8Array): Uint8Array => {
    const units = array.length;
    const placed = new Uint8Array(buffer, placeFor(units), units);
    copies.push({ units, unitBytes: 1, copy: (from, to) => copyBytes(array, from, to, placed, from) });
    return placed;
  };
  const rebased = (offsets: Uint32Array): Uint32Array => {
    const units = length + 1;
    const placed = new Uint32Array(buffer, placeFor(units * 4), units);
    const shift = -offsets[0]!;
    const copy: ArrayCopy['copy'] = (from, to) => copyShifted(offsets, from, to, shift, placed, from);
    copies.push({ units, unitBytes: 4, copy });
    return placed;
  };
  const placed = columns.map(plain).map((column): PlainColumn => {
    const bits = column.validity?.subarray(0, validityBytes(column, length));
    const validity = bits === undefined ? null : copied(bits);
    if (column.kind === 'bytes') {
      const offsets = rebased(column.offsets);
      const bytes = copied(column.bytes.subarray(column.offsets[0], column.offsets[length]));
      return { kind: 'bytes', length, offsets, bytes, validity };
    }
    const { values } = column;
    const { byteOffset } = copied(new Uint8Array(values.buffer, values.byteOffset, length * 8));
    return numberColumn(column.kind, length, buffer, byteOffset, validity);
  });
  writeHeader({ length, columns: placed }, target, at);
  return copies;
}

/**
 * Packs a batch whose arrays are in `space` without moving them: the range of `space` becomes the packed batch. The first `headerBytes`
 * bytes of the space must be unused, and it must contain nothing else. Returns false where an array is elsewhere. Strings must begin at
 * offset 0.
 */
export function packInPlace({ length, columns }: RecordBatch, space: RangeArena): boolean {
  const placed = columns.map(plain).map((column): PlainColumn => {
    if (column.validity === null) return column;
    const validity = space.take(validityBytes(column, length));
    validity.set(column.validity.subarray(0, validity.length));
    return { ...column, validity };
  });
  const isPlaced = placed
    .flatMap(arraysOf)
    .every((array) => array.byteLength === 0 || space.placeOf(array) >= 0);
  if (isPlaced) writeHeader({ length, columns: placed }, space.range, 0);
  return isPlaced;
}

/** The batch that `packBatch` or `packInPlace` has packed, from offset `from` of `packed` on. Its columns are views of `packed`. */
export function unpackBatch(packed: Uint8Array, from: number): RecordBatch {
  const { buffer } = packed;
  const base = packed.byteOffset + from;
  const [length = 0, count = 0] = new Uint32Array(buffer, base, 2);
  const words = new Uint32Array(buffer, base, 2 + count * wordsPerLayout);
  const columns = Array.from({ length: count }, (_, i) =>
    columnAt(buffer, words, 2 + i * wordsPerLayout, base),
  );
  return { length, columns };
}
