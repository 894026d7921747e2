import { sharedMemory } from '../memory/shared-memory.js';
import { arraysOf, type Column, numberColumn, type PlainColumn } from './column.js';

/** Number of words in the layout of a column. */
export const wordsPerLayout = 10;

/**
 * The addresses of a column's arrays as ten words: the number of rows; address and length of the validity (0 for none); address and bytes
 * per code of the codes (0 for a plain column); kind and number of the values; address of their offsets; address and length of the values.
 * Addresses are in bytes from a base. Many layouts are sent to another thread in one array, which it reads in a fraction of the time that
 * as many objects take.
 */
export type ColumnLayout = Uint32Array;

const kinds: readonly PlainColumn['kind'][] = ['int64', 'float64', 'bytes'];

/** The layout of a column whose arrays are all in one buffer, with addresses relative to `base`. */
export function columnLayout(column: Column, base = 0): ColumnLayout {
  const placeOf = (array: ArrayBufferView): number => (array.byteLength === 0 ? 0 : array.byteOffset - base);
  const { validity } = column;
  const values = column.kind === 'dictionary' ? column.values : column;
  const data = values.kind === 'bytes' ? values.bytes : values.values;
  return Uint32Array.of(
    column.length,
    validity === null ? 0 : placeOf(validity),
    validity === null ? 0 : validity.length,
    column.kind === 'dictionary' ? placeOf(column.codes) : 0,
    column.kind === 'dictionary' ? column.codes.BYTES_PER_ELEMENT : 0,
    kinds.indexOf(values.kind),
    values.length,
    values.kind === 'bytes' ? placeOf(values.offsets) : 0,
    placeOf(data),
    data.byteLength,
  );
}

/** End of the arrays of a column: the memory that contains them must reach up to this address. */
export function layoutEnd(layout: ColumnLayout): number {
  const [rows = 0, validityAt = 0, validityBytes = 0, codesAt = 0, codeBytes = 0] = layout;
  const [, entries = 0, offsetsAt = 0, dataAt = 0, dataBytes = 0] = layout.subarray(5);
  const offsetsEnd = offsetsAt === 0 ? 0 : offsetsAt + (entries + 1) * 4;
  return Math.max(validityAt + validityBytes, codesAt + rows * codeBytes, offsetsEnd, dataAt + dataBytes);
}

/** The column whose layout is at index `at` of `words`, as views of `buffer`. Any thread that has the memory can make them. */
export function columnAt(buffer: ArrayBufferLike, words: Uint32Array, at = 0, base = 0): Column {
  const length = words[at]!;
  const validityBytes = words[at + 2]!;
  const codesAt = base + words[at + 3]!;
  const codeBytes = words[at + 4]!;
  const kind = kinds[words[at + 5]!]!;
  const entries = words[at + 6]!;
  const dataAt = base + words[at + 8]!;
  const validity = validityBytes === 0 ? null : new Uint8Array(buffer, base + words[at + 1]!, validityBytes);
  const own = codeBytes === 0 ? validity : null;
  const values: PlainColumn =
    kind === 'bytes'
      ? {
          kind,
          length: entries,
          offsets: new Uint32Array(buffer, base + words[at + 7]!, entries + 1),
          bytes: new Uint8Array(buffer, dataAt, words[at + 9]!),
          validity: own,
        }
      : numberColumn(kind, entries, buffer, dataAt, own);
  if (codeBytes === 0) return values;
  const codes =
    codeBytes === 1 ? new Uint8Array(buffer, codesAt, length) : new Uint16Array(buffer, codesAt, length);
  return { kind: 'dictionary', length, codes, values, validity };
}

const layouts = new WeakMap<Column, ColumnLayout | null>();

/** The layout by which other threads find a column; null where it is not in the kernels' memory, so that it would have to be copied. */
export function sharedLayout(column: Column): ColumnLayout | null {
  let layout = layouts.get(column);
  if (layout === undefined) {
    const memory = sharedMemory();
    layout = arraysOf(column).every((array) => memory.holds(array)) ? columnLayout(column) : null;
    layouts.set(column, layout);
  }
  return layout;
}
