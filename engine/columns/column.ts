import { sharedMemory } from '../core/shared-memory.js';

/**
 * The layouts of decoded columns, which are read by scans, produced by codecs and passed on by loading. SIMD kernels work on them: they are
 * plain typed arrays with a slot for every row (that of a null has 0, 0.0, the empty string, or code 0), and a bitmap of the nulls.
 */

/** One bit per row, least significant bit first, 1 = present; null when every row is present. Bits after the last row are 0. */
export type Validity = Uint8Array | null;

/** A column of type `int`, `time` or `bool`. */
export interface Int64Column {
  readonly kind: 'int64';
  readonly length: number;
  /** `length` values: those of `int` and `bool`, or `time` in milliseconds since the epoch. */
  readonly values: BigInt64Array;
  readonly validity: Validity;
}

/** A column of type `float`. It has no NaN and no infinities. */
export interface Float64Column {
  readonly kind: 'float64';
  readonly length: number;
  readonly values: Float64Array;
  readonly validity: Validity;
}

/** A column of type `string`. */
export interface BytesColumn {
  readonly kind: 'bytes';
  readonly length: number;
  /** `length + 1` byte offsets in `bytes`; row i is bytes[offsets[i], offsets[i + 1]). offsets[0] need not be 0. */
  readonly offsets: Uint32Array;
  /** UTF-8. May extend beyond the last offset. */
  readonly bytes: Uint8Array;
  readonly validity: Validity;
}

export type NumberColumn = Int64Column | Float64Column;

export type PlainColumn = NumberColumn | BytesColumn;

/** A column as codes of its distinct values. */
export interface DictionaryColumn {
  readonly kind: 'dictionary';
  readonly length: number;
  /** One code per row: a Uint8Array for up to 256 entries, else a Uint16Array (for at most `dictionaryEntriesMax` entries). */
  readonly codes: Uint8Array | Uint16Array;
  /** The distinct values in any order, without nulls. */
  readonly values: PlainColumn;
  readonly validity: Validity;
}

export type Column = PlainColumn | DictionaryColumn;

/** Rows of one schema: a column for each field, in the order of the schema, each with `length` rows. */
export interface RecordBatch {
  readonly length: number;
  readonly columns: readonly Column[];
}

/** Whether `row` has a value, that is, is not null. */
export function isValid(validity: Validity, row: number): boolean {
  return validity === null || (validity[row >> 3]! & (1 << (row & 7))) !== 0;
}

/** A column of numbers whose values begin at `byteOffset` of `buffer`. */
export function numberColumn(
  kind: NumberColumn['kind'],
  length: number,
  buffer: ArrayBufferLike,
  byteOffset: number,
  validity: Validity,
): NumberColumn {
  return kind === 'int64'
    ? { kind, length, values: new BigInt64Array(buffer, byteOffset, length), validity }
    : { kind, length, values: new Float64Array(buffer, byteOffset, length), validity };
}

/** The 32-bit halves (low, high) of each 8-byte value. Reading a bigint may allocate; reading halves does not. */
export function halvesOf({ buffer, byteOffset, length }: NumberColumn['values']): Int32Array {
  return new Int32Array(buffer, byteOffset, length * 2);
}

/** The arrays that a column consists of. */
export function arraysOf(column: Column): ArrayBufferView<ArrayBufferLike>[] {
  const validity = column.validity === null ? [] : [column.validity];
  switch (column.kind) {
    case 'int64':
    case 'float64':
      return [column.values, ...validity];
    case 'bytes':
      return [column.offsets, column.bytes, ...validity];
    case 'dictionary':
      return [column.codes, ...arraysOf(column.values), ...validity];
  }
}

/** Bytes of the arrays of a column. */
export function columnBytes(column: Column): number {
  return arraysOf(column).reduce((sum, { byteLength }) => sum + byteLength, 0);
}

/** Bytes of the arrays of a batch. */
export function batchBytes({ columns }: RecordBatch): number {
  return columns.reduce((sum, column) => sum + columnBytes(column), 0);
}

// A byte order mark at the start of a value is part of the value.
const decoder = new TextDecoder('utf-8', { ignoreBOM: true });

/** The value of one row: null, bigint (`int`, `time` and `bool`), number or string. It is slow, and meant for rare cases and tests. */
export function columnValue(column: Column, row: number): null | bigint | number | string {
  if (!isValid(column.validity, row)) return null;
  switch (column.kind) {
    case 'int64':
    case 'float64':
      return column.values[row]!;
    case 'bytes':
      return decoder.decode(column.bytes.subarray(column.offsets[row], column.offsets[row + 1]));
    case 'dictionary':
      return columnValue(column.values, column.codes[row]!);
  }
}

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
