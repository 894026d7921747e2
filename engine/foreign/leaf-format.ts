import { wkbToGeojson } from 'hyparquet/src/wkb.js';
import { FormatError, physicalType } from '../parquet/format.js';
import {
  bytesText,
  dateText,
  decimalText,
  halfFloat,
  intervalText,
  numberJson,
  signedInteger,
  timeOfDayText,
  timestampText,
  uuidText,
} from './value-texts.js';
import type { LeafType } from './parquet-schema.js';
import type { BytesColumn, Column, DictionaryColumn, NumberColumn } from '../columns/column.js';
import type { ColumnBuilder } from '../columns/column-builder.js';
import { assert } from '../core/errors.js';
import { int64Max, int64Min } from '../core/limits.js';
import type { ForeignColumn } from './foreign-file.js';
import { ticksToMs } from './decode-parquet.js';

/** A value as the Parquet type defines it: a time is still a bigint of ticks, and strings are bytes. */
export type LeafValue = boolean | number | bigint | Uint8Array;

/** How the values of a leaf are read and written as text. */
export interface LeafFormat {
  readonly read: (values: Column, i: number) => LeafValue;
  readonly text: (value: LeafValue) => string;
  /** Whether the text is valid JSON; otherwise it is written as a JSON string. */
  readonly isJson: boolean;
}

const perSecond = { MILLIS: 1000n, MICROS: 1_000_000n, NANOS: 1_000_000_000n } as const;
const dayNanos = 86_400n * perSecond.NANOS;
/** The Julian day number of 1970-01-01. */
const epochJulianDay = 2_440_588n;

/** The format of a leaf. An annotation that does not fit the physical type is ignored, as in `columnTypeOf`. */
export function leafFormatOf(leaf: LeafType): LeafFormat {
  switch (leaf.type) {
    case physicalType.boolean:
      return {
        read: (values, i) => (values as DictionaryColumn).codes[i] !== 0,
        text: String,
        isJson: true,
      };
    case physicalType.int32:
    case physicalType.int64:
      return integerFormat(leaf);
    case physicalType.int96:
      return {
        read: (values, i) => int96Nanos(bytesAt(values, i)),
        text: (value) => timestampText(value as bigint, perSecond.NANOS),
        isJson: false,
      };
    case physicalType.float:
    case physicalType.double:
      return { read: numberAt, text: (value) => numberJson(value as number), isJson: true };
    default:
      return bytesFormat(leaf);
  }
}

function integerFormat({ type, annotation }: LeafType): LeafFormat {
  const bits = type === physicalType.int32 ? 32 : 64;
  const isUnsigned = annotation.kind === 'integer' && !annotation.isSigned;
  const read = isUnsigned
    ? (values: Column, i: number): bigint => BigInt.asUintN(bits, integerAt(values, i))
    : integerAt;
  const asText = (text: (value: bigint) => string): LeafFormat => ({
    read,
    text: (value) => text(value as bigint),
    isJson: false,
  });
  switch (annotation.kind) {
    case 'date':
      if (bits === 32) return asText(dateText);
      break;
    case 'timestamp':
      if (bits === 64) return asText((value) => timestampText(value, perSecond[annotation.unit]));
      break;
    case 'time of day':
      return asText((value) => timeOfDayText(value, perSecond[annotation.unit]));
    case 'decimal':
      return { ...asText((value) => decimalText(value, annotation.scale)), isJson: true };
    default:
  }
  return { read, text: String, isJson: true };
}

function bytesFormat({ type, valueBytes, annotation }: LeafType): LeafFormat {
  const read = bytesAt;
  const asText = (text: (bytes: Uint8Array) => string, isJson = false): LeafFormat => ({
    read,
    text: (value) => text(value as Uint8Array),
    isJson,
  });
  const isFixed = type === physicalType.fixedLengthBytes;
  switch (annotation.kind) {
    case 'decimal':
      return {
        read: (values, i) => signedInteger(bytesAt(values, i), 'big'),
        text: (value) => decimalText(value as bigint, annotation.scale),
        isJson: true,
      };
    case 'UUID':
      if (isFixed && valueBytes === 16) return asText(uuidText);
      break;
    case 'float16':
      if (isFixed && valueBytes === 2)
        return {
          read: (values, i) => {
            const bytes = bytesAt(values, i);
            return halfFloat(bytes[0]! + 256 * bytes[1]!);
          },
          text: (value) => numberJson(value as number),
          isJson: true,
        };
      break;
    case 'interval':
      if (isFixed && valueBytes === 12) return asText(parquetInterval);
      break;
    case 'geometry':
      return asText(geometryJson, true);
    default:
  }
  return asText(bytesText);
}

function numberAt(values: Column, i: number): number | bigint {
  return (values as NumberColumn).values[i]!;
}

function integerAt(values: Column, i: number): bigint {
  return numberAt(values, i) as bigint;
}

function bytesAt(values: Column, i: number): Uint8Array {
  const { bytes, offsets } = values as BytesColumn;
  return bytes.subarray(offsets[i], offsets[i + 1]);
}

/**
 * An INT96 timestamp in nanoseconds since the epoch. It stores 8 bytes of nanoseconds of the day, then the Julian day in 4.
 * Spark computes microseconds, which overflow 64 bits for years from 287396 on; this gives the same values.
 */
function int96Nanos(bytes: Uint8Array): bigint {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  const day = BigInt(view.getInt32(8, true)) - epochJulianDay;
  const nanosOfDay = view.getBigInt64(0, true);
  const belowMicro = ((nanosOfDay % 1000n) + 1000n) % 1000n;
  return BigInt.asIntN(64, (day * dayNanos + nanosOfDay - belowMicro) / 1000n) * 1000n + belowMicro;
}

/** Text of an INTERVAL: months, days and milliseconds, each in four bytes. */
function parquetInterval(bytes: Uint8Array): string {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  const [months, days, ms] = [0, 4, 8].map((at) => BigInt(view.getUint32(at, true)));
  return intervalText(months!, days!, ms!, perSecond.MILLIS);
}

/** Converts a geometry, which is stored as WKB, to GeoJSON (RFC 7946). */
function geometryJson(bytes: Uint8Array): string {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  try {
    return JSON.stringify(wkbToGeojson({ view, offset: 0 }));
  } catch (error) {
    throw new FormatError(`a geometry can't be read: ${(error as Error).message}`, 0);
  }
}

/**
 * Returns a function that sets a value of a column that is not nested. It returns the number of invalid UTF-8 sequences that
 * were replaced, and throws `FormatError` for an integer beyond the range of `int`.
 */
export function valueSetter(
  { values }: ForeignColumn,
  textOf: (value: LeafValue) => string,
): (builder: ColumnBuilder, value: LeafValue) => number {
  return (builder, value) => {
    switch (builder.kind) {
      case 'string':
        if (values.kind === 'bytes' && value instanceof Uint8Array)
          return builder.setBytes(value, 0, value.length);
        builder.setString(textOf(value));
        return 0;
      case 'float':
        builder.setNumber(typeof value === 'number' ? value : Number(textOf(value)));
        return 0;
      case 'int': {
        const stored = BigInt(value as boolean | bigint);
        const integer = values.kind === 'ticks' ? ticksToMs(stored, values) : stored;
        if (integer < int64Min || integer > int64Max)
          throw new FormatError(`the integer ${integer} contradicts the bounds in the file`, 0);
        builder.setBigInt(integer);
        return 0;
      }
    }
  };
}

/** Sets a row of a column of JSON; null leaves it null. */
export function setJson(builder: ColumnBuilder, json: string | null): void {
  assert(builder.kind === 'string', 'JSON is text');
  if (json !== null) builder.setString(json);
}
