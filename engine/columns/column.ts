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
