import type { FloatColumnBuilder, IntColumnBuilder } from '../../engine/index.js';
import { bytesText } from './parsed-line.js';
import { withoutZeros } from '../templates/template-value.js';

/** A JavaScript number represents every integer of up to this many digits exactly. */
const exactDigits = 15;

/** An inclusive range of integers. */
export interface IntegerRange {
  readonly min: bigint;
  readonly max: bigint;
}

/** Range of signed 64-bit integers. */
export const int64Range: IntegerRange = { min: -(2n ** 63n), max: 2n ** 63n - 1n };

/** Milliseconds around the epoch that a JavaScript date can hold; all of `exactDigits` digits are in this range. */
export const epochRange: IntegerRange = { min: -8_640_000_000_000_000n, max: 8_640_000_000_000_000n };

const powersOfTen = Float64Array.from({ length: exactDigits + 1 }, (_, i) => Number(`1e${i}`));

const decimalPattern = /^[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?$/;
const notFinitePattern = /^[+-]?(?:nan|inf|infinity)$/i;
const jsonNumberPattern = /^(-?)(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/;

/** With a larger exponent, no mantissa of one line gives a 64-bit integer other than zero. */
const exponentMax = 400;

/** First position from `start` on that is neither blank nor tab. */
export function skipBlanks(bytes: Uint8Array, start: number, end: number): number {
  let at = start;
  while (at < end && (bytes[at] === 0x20 || bytes[at] === 0x09)) at++;
  return at;
}

/** End of bytes[start, end) without trailing blanks and tabs. */
export function trimBlanks(bytes: Uint8Array, start: number, end: number): number {
  let to = end;
  while (to > start && (bytes[to - 1] === 0x20 || bytes[to - 1] === 0x09)) to--;
  return to;
}

/**
 * Sets the integer that bytes[start, end) holds: an optional sign and decimal digits within `range` (which must include all
 * numbers of fifteen digits), with blanks and tabs around them allowed. Returns false, and sets nothing, where it is not
 * readable.
 */
export function setInteger(
  bytes: Uint8Array,
  start: number,
  end: number,
  range: IntegerRange,
  column: IntColumnBuilder,
): boolean {
  const from = skipBlanks(bytes, start, end);
  const to = trimBlanks(bytes, from, end);
  const sign = from < to ? bytes[from]! : 0;
  const first = sign === 0x2d || sign === 0x2b ? from + 1 : from;
  if (first === to) return false;
  let value = 0;
  for (let at = first; at < to; at++) {
    const digit = bytes[at]! - 0x30;
    if (digit < 0 || digit > 9) return false;
    value = value * 10 + digit;
  }
  if (to - first > exactDigits) return setLongInteger(bytes, first, to, sign === 0x2d, range, column);
  column.setNumber(sign === 0x2d ? -value : value);
  return true;
}

function setLongInteger(
  bytes: Uint8Array,
  first: number,
  to: number,
  negative: boolean,
  range: IntegerRange,
  column: IntColumnBuilder,
): boolean {
  let at = first;
  while (at < to && bytes[at] === 0x30) at++;
  // 64 bits have at most 19 digits. A line may have a million, which must not become a BigInt.
  if (to - at > 19) return false;
  const magnitude = BigInt(`0${bytesText(bytes, at, to)}`);
  const value = negative ? -magnitude : magnitude;
  if (value > range.max || value < range.min) return false;
  column.setBigInt(value);
  return true;
}

/**
 * The integer within `range` that is exactly the value of a JSON number with a fraction or exponent (`5.0`, `1.5e3`); null
 * where it is not one.
 */
export function jsonInteger(text: string, range: IntegerRange): bigint | null {
  const parts = jsonNumberPattern.exec(text);
  if (parts === null) return null;
  const fraction = parts[3] ?? '';
  const digits = `${parts[2]!}${fraction}`.replace(/^0+/, '');
  if (digits === '') return 0n;
  const exponent = Number(parts[4] ?? 0) - fraction.length;
  const significant = withoutZeros(digits);
  const zeros = digits.length - significant.length + exponent;
  if (zeros < 0 || zeros > exponentMax || significant.length + zeros > 19) return null;
  const value = BigInt(`${parts[1]!}${significant}${'0'.repeat(zeros)}`);
  return value > range.max || value < range.min ? null : value;
}

/**
 * Sets the double nearest to what bytes[start, end) holds: a decimal with or without an exponent, with blanks and tabs
 * around it allowed. `nan` and `inf` are readable but give null. Returns false, and sets nothing, where it is not readable
 * or beyond the range of doubles.
 */
export function setFloat(bytes: Uint8Array, start: number, end: number, column: FloatColumnBuilder): boolean {
  const from = skipBlanks(bytes, start, end);
  const to = trimBlanks(bytes, from, end);
  const short = shortDecimal(bytes, from, to);
  if (!Number.isNaN(short)) {
    column.setNumber(short);
    return true;
  }
  const text = bytesText(bytes, from, to);
  if (notFinitePattern.test(text)) {
    column.setNull();
    return true;
  }
  if (!decimalPattern.test(text)) return false;
  const value = Number(text);
  if (!Number.isFinite(value)) return false;
  column.setNumber(value);
  return true;
}

/**
 * The value of a decimal of few digits without an exponent; NaN for any other text. The digits and the power of ten are
 * exact in doubles, so one division rounds correctly.
 */
function shortDecimal(bytes: Uint8Array, from: number, to: number): number {
  const negative = from < to && bytes[from] === 0x2d;
  let value = 0;
  let digits = 0;
  let point = -1;
  for (let at = negative ? from + 1 : from; at < to; at++) {
    const digit = bytes[at]! - 0x30;
    if (digit >= 0 && digit <= 9) {
      value = value * 10 + digit;
      digits++;
    } else if (digit === -2 && point < 0) {
      point = digits;
    } else {
      return NaN;
    }
  }
  if (digits === 0 || digits > exactDigits) return NaN;
  if (point >= 0) value /= powersOfTen[digits - point]!;
  return negative ? -value : value;
}
