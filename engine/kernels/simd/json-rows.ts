import { writeJsonRows as writePlainRows } from '../json-rows.js';
import type { JsonColumn, JsonOutput } from '../json-rows.js';
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
