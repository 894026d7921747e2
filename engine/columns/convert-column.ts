import {
  isValid,
  numberColumn,
  type BytesColumn,
  type Column,
  type DictionaryColumn,
  type Float64Column,
  type Int64Column,
  type PlainColumn,
  type NumberColumn,
} from './column.js';
import { bufferBytes } from '../core/allocator.js';
import type { ZoneMap } from './zone-map.js';
import { typeFacts, type FieldType } from '../core/schema.js';
import { bitmapBytes } from '../kernels/bitmap.js';
import type { Arena } from '../core/arena.js';

/**
 * How a field whose type was changed reads older values: converted where nothing is lost, else as null.
 * - `int` as `float`: integers within ±2^53, which doubles represent exactly; others become null.
 * - any type as `string`: the text that an answer would have. An integer becomes its decimal digits, a float the shortest decimal that
 * reads back the same (−0 becomes `-0`), a time the digits of its milliseconds since the epoch, a bool `true` or `false`.
 * - everything else: null.
 */
export type Conversion = 'none' | 'intToFloat' | 'toString' | 'boolToString' | 'toNull';

/** The conversion of values that were written as `from` and are read as `to`. */
export function conversionOf(from: FieldType, to: FieldType): Conversion {
  if (from === to) return 'none';
  if (to === 'string') return typeFacts[from].isBits === true ? 'boolToString' : 'toString';
  return from === 'int' && to === 'float' ? 'intToFloat' : 'toNull';
}

/** Doubles represent all integers up to this magnitude exactly. */
const exactMax = 2 ** 53;

/** Converts a decoded column to the layout of type `to`. */
export function convertColumn(column: Column, conversion: Conversion, to: FieldType): Column {
  switch (conversion) {
    case 'none':
      return column;
    case 'toNull':
      return nullColumn(to, column.length);
    case 'intToFloat':
    case 'toString':
    case 'boolToString':
      return column.kind === 'dictionary'
        ? convertDictionary(column, conversion)
        : convertPlain(column, conversion);
  }
}

/** The conversions that keep values. */
type Conversions = Exclude<Conversion, 'none' | 'toNull'>;

function convertPlain(column: PlainColumn, conversion: Conversions): PlainColumn {
  if (column.kind === 'bytes') return column;
  if (conversion === 'toString') return textColumn(column, numberText);
  if (conversion === 'boolToString') return textColumn(column, (value) => String(value !== 0n));
  return column.kind === 'int64' ? floatColumn(column) : column;
}

function convertDictionary(column: DictionaryColumn, conversion: Conversions): DictionaryColumn {
  const values = convertPlain(column.values, conversion);
  if (values.validity === null) return { ...column, values };
  // Dictionary entries that can't be converted stay in the dictionary; their rows become null.
  const validity = new Uint8Array(bitmapBytes(column.length));
  for (let row = 0; row < column.length; row++) {
    const isPresent = isValid(column.validity, row) && isValid(values.validity, column.codes[row]!);
    if (isPresent) validity[row >> 3]! |= 1 << (row & 7);
  }
  return { ...column, values: { ...values, validity: null }, validity };
}

function floatColumn(column: Int64Column): Float64Column {
  const { length } = column;
  const values = new Float64Array(length);
  const validity = new Uint8Array(bitmapBytes(length));
  let present = 0;
  for (let row = 0; row < length; row++) {
    if (!isValid(column.validity, row)) continue;
    const value = Number(column.values[row]!);
    // Beyond the bound the conversion to a double rounds. Converting back reveals an integer that rounds to the bound itself.
    const isExact = Math.abs(value) <= exactMax && BigInt(value) === column.values[row]!;
    if (!isExact) continue;
    values[row] = value;
    validity[row >> 3]! |= 1 << (row & 7);
    present++;
  }
  return { kind: 'float64', length, values, validity: present === length ? null : validity };
}

const encoder = new TextEncoder();
/** Maximum length of a number's text: 17 digits, signs, a point and an exponent, or 20 characters for an integer. */
const decimalBytesMax = 28;

function numberText(value: bigint | number): string {
  return Object.is(value, -0) ? '-0' : String(value);
}

function textColumn(
  column: Int64Column | Float64Column,
  textOf: (value: bigint | number) => string,
): BytesColumn {
  const { length } = column;
  const offsets = new Uint32Array(length + 1);
  const bytes = new Uint8Array(length * decimalBytesMax);
  let at = 0;
  for (let row = 0; row < length; row++) {
    if (isValid(column.validity, row)) {
      at += encoder.encodeInto(textOf(column.values[row]!), bytes.subarray(at)).written;
    }
    offsets[row + 1] = at;
  }
  return { kind: 'bytes', length, offsets, bytes: bytes.slice(0, at), validity: column.validity };
}

/**
 * Maximum bytes of a converted column of `rows` rows: texts, their offsets, the codes of a dictionary with as many entries, and bitmaps.
 */
export function conversionBytesMax(rows: number): number {
  return (rows + 1) * (decimalBytesMax + 4 + 2) + 2 * bitmapBytes(rows) + 6 * bufferBytes(64);
}

/** A column of nulls. */
export function nullColumn(type: FieldType, length: number): PlainColumn {
  const validity = new Uint8Array(bitmapBytes(length));
  const kind = typeFacts[type].column;
  if (kind !== 'bytes') return numberColumn(kind, length, new ArrayBuffer(length * 8), 0, validity);
  return { kind, length, offsets: new Uint32Array(length + 1), bytes: new Uint8Array(0), validity };
}

/** The zone map of a converted column; null when nothing is known of it. */
export function convertZone(zone: ZoneMap, conversion: Conversion): ZoneMap | null {
  const { nullCount, rows, min, max } = zone;
  switch (conversion) {
    case 'none':
      return zone;
    case 'toNull':
      return { nullCount: rows, rows, min: null, max: null };
    case 'toString':
    case 'boolToString':
      // Decimal texts are not ordered like the numbers.
      return { nullCount, rows, min: null, max: null };
    case 'intToFloat': {
      if (nullCount === rows) return zone;
      if (typeof min !== 'bigint' || typeof max !== 'bigint') return null;
      // Values beyond ±2^53 become null, so neither the null count nor the bounds would be right.
      if (min < BigInt(-exactMax) || max > BigInt(exactMax)) return null;
      return { nullCount, rows, min: Number(min), max: Number(max) };
    }
  }
}

/** A copy of a column whose arrays are in memory of `arena`. */
export function copyColumn(column: PlainColumn, arena: Arena): PlainColumn;
export function copyColumn(column: Column, arena: Arena): Column;
export function copyColumn(column: Column, arena: Arena): Column {
  const validity = column.validity === null ? null : copyArray(column.validity, arena);
  switch (column.kind) {
    case 'int64':
      return { ...column, values: copyArray(column.values, arena), validity };
    case 'float64':
      return { ...column, values: copyArray(column.values, arena), validity };
    case 'bytes':
      return {
        ...column,
        offsets: copyArray(column.offsets, arena),
        bytes: copyArray(column.bytes, arena),
        validity,
      };
    case 'dictionary': {
      const codes = copyArray(column.codes, arena);
      return { ...column, codes, values: copyColumn(column.values, arena), validity };
    }
  }
}

function copyArray<A extends NumberColumn['values'] | Uint32Array | DictionaryColumn['codes']>(
  array: A,
  arena: Arena,
): A {
  const { byteLength, length } = array;
  const copy = arena(byteLength);
  copy.set(new Uint8Array(array.buffer, array.byteOffset, byteLength));
  const OfItsType = array.constructor as new (
    buffer: ArrayBufferLike,
    byteOffset: number,
    length: number,
  ) => A;
  return new OfItsType(copy.buffer, copy.byteOffset, length);
}
