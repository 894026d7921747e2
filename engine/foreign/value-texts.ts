import { wkbToGeojson } from 'hyparquet/src/wkb.js';
import { LogstrataError } from '../core/errors.js';
import { FormatError } from '../parquet/format.js';
import { valueBytesMax } from '../core/limits.js';

/** Converts stored values to text for which there is no field type. */

/** A decimal with all its digits: `decimalText(-5n, 2)` is `-0.05`. */
export function decimalText(unscaled: bigint, scale: number): string {
  if (scale <= 0) return (unscaled * 10n ** BigInt(-scale)).toString();
  const digits = (unscaled < 0n ? -unscaled : unscaled).toString().padStart(scale + 1, '0');
  const point = digits.length - scale;
  return `${unscaled < 0n ? '-' : ''}${digits.slice(0, point)}.${digits.slice(point)}`;
}

/** Quotient rounded down, and the remainder, which is never negative. */
function divided(value: bigint, by: bigint): [quotient: bigint, rest: bigint] {
  const rest = ((value % by) + by) % by;
  return [(value - rest) / by, rest];
}

function twoDigits(value: number): string {
  return String(value).padStart(2, '0');
}

/** The fraction of a second after the point, without trailing zeros: `.5`; empty for zero. */
function fractionText(ticks: bigint, perSecond: bigint): string {
  if (ticks === 0n) return '';
  const digits = ticks.toString().padStart(perSecond.toString().length - 1, '0');
  let end = digits.length;
  while (digits[end - 1] === '0') end--;
  return `.${digits.slice(0, end)}`;
}

/** Text of a time of day, given in ticks since midnight, `perSecond` of which make a second: `01:02:03.5`. */
export function timeOfDayText(ticks: bigint, perSecond: bigint): string {
  const [seconds, rest] = divided(ticks, perSecond);
  const [minutes, second] = divided(seconds, 60n);
  const [hour, minute] = divided(minutes, 60n);
  const clock = [Number(hour), Number(minute), Number(second)].map(twoDigits).join(':');
  return clock + fractionText(rest, perSecond);
}

/** Text of a day, counted from 1970-01-01, as `2024-02-29` (ISO 8601; years outside 0 to 9999 have a sign and at least six digits). */
export function dateText(day: bigint): string {
  // The calendar repeats after 400 years. Years are counted from March here, so that a leap day is the last day of its year.
  const [eras, dayOfEra] = divided(day + 719_468n, 146_097n);
  const d = Number(dayOfEra);
  const yearOfEra = Math.floor(
    (d - Math.floor(d / 1460) + Math.floor(d / 36_524) - Math.floor(d / 146_096)) / 365,
  );
  const dayOfYear = d - (365 * yearOfEra + Math.floor(yearOfEra / 4) - Math.floor(yearOfEra / 100));
  const shifted = Math.floor((5 * dayOfYear + 2) / 153);
  const month = shifted < 10 ? shifted + 3 : shifted - 9;
  const dayOfMonth = dayOfYear - Math.floor((153 * shifted + 2) / 5) + 1;
  const year = BigInt(yearOfEra) + eras * 400n + (month <= 2 ? 1n : 0n);
  return `${yearText(year)}-${twoDigits(month)}-${twoDigits(dayOfMonth)}`;
}

function yearText(year: bigint): string {
  if (year >= 0n && year <= 9999n) return year.toString().padStart(4, '0');
  const digits = (year < 0n ? -year : year).toString().padStart(6, '0');
  return `${year < 0n ? '-' : '+'}${digits}`;
}

/** Text of a time in ticks since the epoch, `perSecond` of which make a second: `2024-02-29T01:02:03.5Z`. */
export function timestampText(ticks: bigint, perSecond: bigint): string {
  const [day, rest] = divided(ticks, 86_400n * perSecond);
  return `${dateText(day)}T${timeOfDayText(rest, perSecond)}Z`;
}

/** Text of an interval as an ISO 8601 duration: `P1Y2M3DT4H5M6.5S`; `PT0S` for an empty one. Each part may be negative. */
export function intervalText(months: bigint, days: bigint, ticks: bigint, perSecond: bigint): string {
  const sign = ticks < 0n ? '-' : '';
  const [seconds, rest] = divided(ticks < 0n ? -ticks : ticks, perSecond);
  const second = `${seconds % 60n}${fractionText(rest, perSecond)}`;
  const part = (value: bigint | string, unit: string): string =>
    String(value) === '0' ? '' : `${value}${unit}`;
  const date = part(months / 12n, 'Y') + part(months % 12n, 'M') + part(days, 'D');
  const time = [part(seconds / 3600n, 'H'), part((seconds / 60n) % 60n, 'M'), part(second, 'S')]
    .map((text) => (text === '' ? '' : sign + text))
    .join('');
  if (date === '' && time === '') return 'PT0S';
  return time === '' ? `P${date}` : `P${date}T${time}`;
}

/** The hexadecimal digits of bytes. */
export function hexText(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString('hex');
}

/** Text of a UUID's 16 bytes: `01234567-89ab-cdef-0123-456789abcdef`. */
export function uuidText(bytes: Uint8Array): string {
  const hex = hexText(bytes);
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join('-');
}

/** Converts a geometry, which is stored as WKB, to GeoJSON (RFC 7946). */
export function geometryJson(bytes: Uint8Array): string {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  try {
    return JSON.stringify(wkbToGeojson({ view, offset: 0 }));
  } catch (error) {
    throw new FormatError(`a geometry can't be read: ${(error as Error).message}`, 0);
  }
}

/** The number that the 16 bits of an IEEE 754 half-precision float represent. */
export function halfFloat(bits: number): number {
  const sign = bits & 0x8000 ? -1 : 1;
  const exponent = (bits >>> 10) & 0x1f;
  const fraction = bits & 0x3ff;
  if (exponent === 0) return sign * fraction * 2 ** -24;
  if (exponent === 0x1f) return fraction === 0 ? sign * Infinity : NaN;
  return sign * (1 + fraction / 1024) * 2 ** (exponent - 15);
}

/** The signed integer that bytes represent in two's complement; 0 for no bytes. */
export function signedInteger(bytes: Uint8Array, order: 'big' | 'little'): bigint {
  if (bytes.length === 0) return 0n;
  const copy = Buffer.from(bytes);
  if (order === 'little') copy.reverse();
  return BigInt.asIntN(8 * copy.length, BigInt(`0x${copy.toString('hex')}`));
}

// Keep a byte order mark at the beginning: it is part of the value.
const decoder = new TextDecoder('utf-8', { ignoreBOM: true });

/** Decodes bytes as UTF-8; each invalid sequence becomes U+FFFD. */
export function bytesText(bytes: Uint8Array): string {
  return decoder.decode(bytes);
}

/** Writes a number as JSON; `null` for NaN and infinity. */
export function numberJson(value: number): string {
  return Number.isFinite(value) ? JSON.stringify(value) : 'null';
}

/** Builds the JSON text of a nested value from parts. */
export class JsonText {
  #parts: string[] = [];
  #length = 0;

  /** Appends a part. Throws `limit` when the value exceeds `valueBytesMax` characters. */
  add(text: string): void {
    this.#length += text.length;
    if (this.#length > valueBytesMax)
      throw new LogstrataError('limit', `a nested value has more than ${valueBytesMax} characters`);
    this.#parts.push(text);
  }

  /** Appends `{"name":` for the first field of an object, `,"name":` for later ones. */
  addName(name: string, isFirst: boolean): void {
    this.add(`${isFirst ? '' : ','}${JSON.stringify(name)}:`);
  }

  /** Appends the key of an object, which `writeKey` writes as JSON: a string as it is; other JSON is quoted as a string. */
  addKey(writeKey: () => void): void {
    const before = this.#parts;
    this.#parts = [];
    writeKey();
    const key = this.#parts.join('');
    this.#parts = before;
    this.add(`${key.startsWith('"') ? key : JSON.stringify(key)}:`);
  }

  /** Returns the text and clears the builder for the next value. */
  take(): string {
    const text = this.#parts.join('');
    this.#parts = [];
    this.#length = 0;
    return text;
  }
}
