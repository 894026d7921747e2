import { isUtf8 } from 'node:buffer';
import { FormatError } from '../parquet/format.js';
import type { FieldType } from '../core/schema.js';
import {
  bytesText,
  dateText,
  decimalText,
  geometryJson,
  hexText,
  intervalText,
  numberJson,
  timeOfDayText,
  timestampText,
  uuidText,
} from './value-texts.js';

/** What stored values mean, in terms that Parquet and Arrow share. Plain data that is sent to threads. */
export type StoredType =
  | { readonly kind: 'null' | 'boolean' | 'bytes' | 'binary' | 'UUID' | 'interval' | 'geometry' | 'nested' }
  | { readonly kind: 'int'; readonly bits: number; readonly isSigned: boolean }
  | { readonly kind: 'float'; readonly bits: number }
  | { readonly kind: 'decimal'; readonly precision: number; readonly scale: number }
  /** Days in 32 bits, or milliseconds in 64. */
  | { readonly kind: 'date'; readonly bits: number }
  /** Ticks, `perSecond` of which make a second: since midnight, since the epoch, or in a span of time. */
  | { readonly kind: 'time of day' | 'timestamp' | 'duration'; readonly perSecond: number };

/**
 * How stored values are converted. `ticks` are integers since the epoch: `perMs` of them make a millisecond, or each is `ms`
 * milliseconds. Times are rounded down to milliseconds. A time without a zone is taken as UTC.
 */
export type ForeignValues =
  | { readonly kind: 'same' }
  | { readonly kind: 'ticks'; readonly perMs: number; readonly ms: number }
  /** Converted to text: unsigned 64-bit integers, decimals, UUIDs, times of day, intervals. */
  | { readonly kind: 'text' }
  /** Bytes taken as UTF-8 text: each invalid sequence becomes U+FFFD. */
  | { readonly kind: 'bytes' }
  /** Nested values, written as JSON. */
  | { readonly kind: 'json' };

/** A field type, and how stored values are converted to it. */
interface StoredField {
  readonly type: FieldType;
  readonly values: ForeignValues;
}

/** A value as its type defines it: a time is still a bigint of ticks, and strings are bytes. */
export type LeafValue = boolean | number | bigint | Uint8Array;

/** How values are written as text. */
export interface ValueFormat {
  readonly text: (value: LeafValue) => string;
  /** Whether the text is valid JSON; otherwise it is written as a JSON string. */
  readonly isJson: boolean;
}

const dayMs = 86_400_000;
/** A double represents exactly every integer of up to 15 decimal digits, and every power of ten up to 10^22. */
const exactDigitsMax = 15;
const exactPowerMax = 22;
/** A signed 64-bit integer holds every integer of up to 18 decimal digits. */
const int64DigitsMax = 18;

/** The field type that holds values of a stored type without loss where there is one, else `string`; and how they are converted to it. */
export function fieldOf(stored: StoredType): StoredField {
  switch (stored.kind) {
    case 'boolean':
      return { type: 'bool', values: { kind: 'same' } };
    case 'int':
    case 'float':
      return { type: stored.kind, values: { kind: 'same' } };
    case 'decimal': {
      const { precision, scale } = stored;
      if (scale === 0 && precision <= int64DigitsMax) return { type: 'int', values: { kind: 'same' } };
      const isExact = precision <= exactDigitsMax && scale >= 0 && scale <= exactPowerMax;
      return isExact
        ? { type: 'float', values: { kind: 'same' } }
        : { type: 'string', values: { kind: 'text' } };
    }
    case 'date':
      return { type: 'time', values: { kind: 'ticks', perMs: 1, ms: stored.bits === 32 ? dayMs : 1 } };
    case 'timestamp': {
      const { perSecond } = stored;
      const length = perSecond === 1 ? { perMs: 1, ms: 1000 } : { perMs: perSecond / 1000, ms: 1 };
      return { type: 'time', values: { kind: 'ticks', ...length } };
    }
    case 'null':
    case 'bytes':
      return { type: 'string', values: { kind: 'bytes' } };
    case 'binary':
    case 'UUID':
    case 'interval':
    case 'time of day':
    case 'duration':
      return { type: 'string', values: { kind: 'text' } };
    case 'geometry':
    case 'nested':
      return { type: 'string', values: { kind: 'json' } };
  }
}

/** The format of values of a stored type that is not nested. */
export function formatOf(stored: StoredType): ValueFormat {
  const ofBytes = (text: (bytes: Uint8Array) => string, isJson = false): ValueFormat => ({
    text: (value) => text(value as Uint8Array),
    isJson,
  });
  const ofInteger = (text: (value: bigint) => string, isJson = false): ValueFormat => ({
    text: (value) => text(value as bigint),
    isJson,
  });
  switch (stored.kind) {
    case 'float':
      return { text: (value) => numberJson(value as number), isJson: true };
    case 'decimal':
      return ofInteger((value) => decimalText(value, stored.scale), true);
    case 'date':
      return ofInteger((value) => dateText(stored.bits === 32 ? value : dayOf(value)));
    case 'time of day':
      return ofInteger((ticks) => timeOfDayText(ticks, BigInt(stored.perSecond)));
    case 'timestamp':
      return ofInteger((ticks) => timestampText(ticks, BigInt(stored.perSecond)));
    case 'duration':
      return ofInteger((ticks) => intervalText(0n, 0n, ticks, BigInt(stored.perSecond)));
    case 'bytes':
      return ofBytes(bytesText);
    case 'binary':
      return ofBytes((bytes) => (isUtf8(bytes) ? bytesText : hexText)(bytes));
    case 'UUID':
      return ofBytes(uuidText);
    case 'interval':
      return ofBytes(storedInterval);
    case 'geometry':
      return ofBytes(geometryJson, true);
    default:
      return { text: String, isJson: true };
  }
}

/** The day of a time in milliseconds since the epoch. */
function dayOf(ms: bigint): bigint {
  const length = BigInt(dayMs);
  return (ms - (((ms % length) + length) % length)) / length;
}

/**
 * Text of an interval. By its length: months; days and milliseconds; Parquet's months, days and milliseconds, which have no sign; or
 * months, days and nanoseconds.
 */
function storedInterval(bytes: Uint8Array): string {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  const int = (at: number): bigint => BigInt(view.getInt32(at, true));
  const unsigned = (at: number): bigint => BigInt(view.getUint32(at, true));
  switch (bytes.length) {
    case 4:
      return intervalText(int(0), 0n, 0n, 1000n);
    case 8:
      return intervalText(0n, int(0), int(4), 1000n);
    case 12:
      return intervalText(unsigned(0), unsigned(4), unsigned(8), 1000n);
    case 16:
      return intervalText(int(0), int(4), view.getBigInt64(8, true), 1_000_000_000n);
    default:
      throw new FormatError(`intervals of ${bytes.length} bytes`, 0);
  }
}

/** Length of a tick, as in `ForeignValues`. */
interface TickLength {
  readonly perMs: number;
  readonly ms: number;
}

/** Converts ticks to milliseconds, rounded down. */
export function ticksToMs(ticks: bigint, { perMs, ms }: TickLength): bigint {
  const per = BigInt(perMs);
  const whole = ticks / per;
  const isBetween = whole * per !== ticks;
  return (ticks < 0n && isBetween ? whole - 1n : whole) * BigInt(ms);
}
