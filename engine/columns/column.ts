/**
 * The layouts of decoded columns: what the scan reads, what the codecs produce and what loading hands over.
 * They are the layouts of the SIMD kernels: plain typed arrays, dense (a null takes a slot: 0, NaN-free 0.0,
 * the empty string, or code 0), with the nulls in a bitmap beside them.
 */

/** One bit a row, least significant first, 1 = present; null when every row is present. Bytes past the rows are 0. */
export type Validity = Uint8Array | null;

export interface Int64Column {
  readonly kind: 'int64';
  readonly length: number;
  /** `length` values (`int`, or `time` in milliseconds). */
  readonly values: BigInt64Array;
  readonly validity: Validity;
}

export interface Float64Column {
  readonly kind: 'float64';
  readonly length: number;
  readonly values: Float64Array;
  readonly validity: Validity;
}

export interface BytesColumn {
  readonly kind: 'bytes';
  readonly length: number;
  /** `length + 1` byte offsets into `bytes`; row i is bytes[offsets[i], offsets[i + 1]). offsets[0] need not be 0. */
  readonly offsets: Uint32Array;
  /** UTF-8. May be longer than the last offset. */
  readonly bytes: Uint8Array;
  readonly validity: Validity;
}

export type NumberColumn = Int64Column | Float64Column;

export type PlainColumn = NumberColumn | BytesColumn;

export interface DictionaryColumn {
  readonly kind: 'dictionary';
  readonly length: number;
  /** One code a row: Uint8Array up to 256 entries, else Uint16Array (at most `dictionaryEntriesMax` entries). */
  readonly codes: Uint8Array | Uint16Array;
  /** The distinct values, in the order of their first row; no nulls. */
  readonly values: PlainColumn;
  readonly validity: Validity;
}

export type Column = PlainColumn | DictionaryColumn;

/** Rows of one schema: one column a field, in the schema's order, all of `length` rows. */
export interface RecordBatch {
  readonly length: number;
  readonly columns: readonly Column[];
}

/** Whether `row` holds a value; false is null. */
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

/** The two 32-bit halves (low, high) of each 8-byte value: reading a bigint may allocate one. */
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

/** Memory that a column holds on to, in bytes. */
export function columnBytes(column: Column): number {
  return arraysOf(column).reduce((sum, { byteLength }) => sum + byteLength, 0);
}

/** Memory that the columns of a batch hold on to, in bytes. */
export function batchBytes({ columns }: RecordBatch): number {
  return columns.reduce((sum, column) => sum + columnBytes(column), 0);
}

// A byte order mark at the beginning of a value is part of it.
const decoder = new TextDecoder('utf-8', { ignoreBOM: true });

/** The value of one row, for rare paths and tests: null, bigint (int and time), number or string. */
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
