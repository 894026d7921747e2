import { writeJsonRows as writePlainRows } from '../json-rows.js';
import type { JsonColumn, JsonOutput } from '../json-rows.js';
import { bufferBytes } from '../allocator.js';
import { openScratch, scratchBytes } from '../scratch.js';
import { sharedMemory } from '../shared-memory.js';
import type { Kernels } from '../wasm.js';

/** Puts an array into the kernels' memory and gives its address. */
export type Place = (array: Uint8Array | Uint16Array | Int32Array | Uint32Array | Float64Array) => number;

const wordsPerColumn = 8;

/** Columns as the kernel takes them: eight words each, to be placed in turn. */
export function kernelJsonColumns(columns: readonly JsonColumn[], place: Place): Uint32Array {
  const words = new Uint32Array(columns.length * wordsPerColumn);
  const placeAny: Place = (array) => (array.length === 0 ? 0 : place(array));
  columns.forEach((column, i) => {
    // Empty strings have no bytes, and need an address all the same only to be added to.
    const data = placeAny(
      column.doubles.length > 0 ? column.doubles : column.halves.length > 0 ? column.halves : column.bytes,
    );
    words.set(
      [
        column.kind,
        place(column.key),
        column.key.length,
        placeAny(column.validity),
        placeAny(column.codes),
        column.codes.BYTES_PER_ELEMENT,
        data,
        placeAny(column.offsets),
      ],
      i * wordsPerColumn,
    );
  });
  return words;
}

/** Where the kernel finds what the twin is given. */
export interface KernelJsonRows {
  readonly kernels: Kernels;
  readonly columnsAt: number;
  readonly rowsAt: number;
  /** Address of the output's bytes, which are a view of the kernels' memory and followed by slack. */
  readonly outputAt: number;
}

/** As the twin, for columns, rows and output that lie in the kernels' memory. */
export function writeJsonRows(
  placed: KernelJsonRows,
  columns: readonly JsonColumn[],
  fixedBytes: number,
  rows: Uint32Array,
  from: number,
  to: number,
  partition: number,
  ordinalOfRow0: number,
  output: JsonOutput,
): number {
  const { kernels, columnsAt, rowsAt, outputAt } = placed;
  const cursorOfRow0 = (BigInt(partition) << 40n) + BigInt(ordinalOfRow0);
  const atMax = outputAt + output.bytes.length;
  let i = from;
  while (i < to) {
    i = kernels.writeJsonRows(
      columnsAt,
      columns.length,
      fixedBytes,
      rowsAt,
      i,
      to,
      cursorOfRow0,
      outputAt + output.at,
      atMax,
    );
    output.at = (kernels.jsonEnd() >>> 0) - outputAt;
    if (i === to) break;
    // Either there is no room, as the twin finds too, or the row has a double that only the twin can write.
    const next = writePlainRows(columns, fixedBytes, rows, i, i + 1, partition, ordinalOfRow0, output);
    if (next === i) break;
    i = next;
  }
  return i;
}

/** Arrays that may be copied for each call: keys, bitmaps of columns that are null throughout. */
const copiedBytesMax = 64 * 1024;
/** Rows of one call, of which a list is copied. */
const rowsOfCallMax = 4096;

/** Columns that lie in the kernels' memory, all but what is quickly copied. */
export interface ReachableColumns {
  readonly columns: readonly JsonColumn[];
  /** The most bytes of a line without its strings. */
  readonly fixedBytes: number;
  /** What `bytesToCopy` has said. */
  readonly copiedBytes: number;
}

/** Bytes that each call copies of the columns; null where that is too much, or kernels can't run. */
export function bytesToCopy(columns: readonly JsonColumn[]): number | null {
  if ((sharedMemory()?.kernels ?? null) === null) return null;
  let sizeBytes = bufferBytes(columns.length * wordsPerColumn * 4);
  for (const { key, validity, codes, halves, doubles, offsets, bytes } of columns) {
    for (const array of [key, validity, codes, halves, doubles, offsets, bytes]) {
      const copied = scratchBytes(array, array.length);
      if (copied > 0) sizeBytes += bufferBytes(copied);
    }
  }
  return sizeBytes <= copiedBytesMax ? sizeBytes : null;
}

/** As the twin. */
export function writeRowsByKernel(
  from: ReachableColumns,
  rows: Uint32Array,
  first: number,
  to: number,
  partition: number,
  ordinalOfRow0: number,
  output: JsonOutput,
): number {
  const { columns, fixedBytes, copiedBytes } = from;
  let next = first;
  while (next < to) {
    const end = Math.min(to, next + rowsOfCallMax);
    const room = output.bytes.length - output.at;
    const scratch = openScratch(copiedBytes + (end - next) * 4 + room);
    if (scratch === null) {
      return writePlainRows(columns, fixedBytes, rows, next, to, partition, ordinalOfRow0, output);
    }
    const words = kernelJsonColumns(columns, (array) => scratch.place(array, 0, array.length));
    const columnsAt = scratch.place(words, 0, words.length);
    const rowsAt = scratch.place(rows, next, end) - next * 4;
    const outputAt = scratch.room(room);
    const lines: JsonOutput = { bytes: scratch.view(outputAt, room), at: 0 };
    const placed = { kernels: scratch.kernels, columnsAt, rowsAt, outputAt };
    next = writeJsonRows(placed, columns, fixedBytes, rows, next, end, partition, ordinalOfRow0, lines);
    output.bytes.set(lines.bytes.subarray(0, lines.at), output.at);
    output.at += lines.at;
    if (next < end) break;
  }
  return next;
}
