// Reads fields of lines as numbers, column by column; see line-spans.ts. A text that the kernels can't read makes the line
// odd, except for common spellings of "no number", which are null and counted.
import { kindAbsent, kindNumber, kindShift, kindText, lengthMask, lineOdd, lineTaken } from './line-spans';

/** Values of a row's `presence`; `readInt` and `readFloat` return the other answers too. */
const isNull: u32 = 0;
const isPresent: u32 = 1;
const isUnreadable: u32 = 2;
const isOdd: u32 = 3;

/** A double represents every integer of up to this many decimal digits exactly. */
const exactDigits: u32 = 15;

const powersOfTen = memory.data<f64>([
  1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
]);

/** The answer for a text without digits: a dash or nothing is how logs write a missing number. */
function withoutDigits(at: usize, length: u32): u32 {
  return length == 0 || (length == 1 && load<u8>(at) == 0x2d) ? isUnreadable : isOdd;
}

const asciiZeros: u64 = 0x3030303030303030;

/** Whether eight bytes are all ASCII digits: their high half is 3, also after 6 is added to them. */
function areDigits(eight: u64): bool {
  const high: u64 = 0xf0f0f0f0f0f0f0f0;
  return (eight & high) == asciiZeros && ((eight + 0x0606060606060606) & high) == asciiZeros;
}

/** The number that eight ASCII digits make, of which the first is in the lowest byte. Joins digits to pairs, pairs to fours, and fours. */
function valueOfEight(eight: u64): u64 {
  const pairs = ((eight & 0x0f0f0f0f0f0f0f0f) * (1 + (10 << 8))) >> 8;
  const fours = ((pairs & 0x00ff00ff00ff00ff) * (1 + (100 << 16))) >> 16;
  return ((fours & 0x0000ffff0000ffff) * (1 + ((<u64>10000) << 32))) >> 32;
}

/**
 * Reads a decimal integer of at most `digitsMax` digits (up to 19, which an unsigned 64-bit word always holds), with an
 * optional minus sign, to `target`.
 */
function readInt(at: usize, length: u32, digitsMax: u32, target: usize): u32 {
  const end = at + length;
  let first = at;
  const isNegative = length > 0 && load<u8>(at) == 0x2d;
  if (isNegative) first++;
  const digits = <u32>(end - first);
  if (digits == 0 || digits > digitsMax) return withoutDigits(at, length);
  // The first step takes one to eight digits, so that eight are left for each of the others.
  const begun = ((digits - 1) & 7) + 1;
  // Zeros take the place of the missing digits in front.
  const missing = (8 - begun) << 3;
  let eight = (load<u64>(first) << missing) | (~((<u64>-1) << missing) & asciiZeros);
  let value: u64 = 0;
  for (let i = first + begun; ; i += 8) {
    if (!areDigits(eight)) return isOdd;
    value = value * 100000000 + valueOfEight(eight);
    if (i == end) break;
    eight = load<u64>(i);
  }
  if (value > <u64>i64.MAX_VALUE + (isNegative ? 1 : 0)) return isOdd;
  store<i64>(target, isNegative ? -(<i64>value) : <i64>value);
  return isPresent;
}

/**
 * Reads a decimal of at most 15 digits without an exponent. The digits and the power of ten are exact in doubles, so one
 * division rounds correctly.
 */
function readFloat(at: usize, length: u32, target: usize): u32 {
  const end = at + length;
  let i = at;
  const isNegative = length > 0 && load<u8>(at) == 0x2d;
  if (isNegative) i++;
  let value: u64 = 0;
  let digits: u32 = 0;
  let point: u32 = 0xffffffff;
  if (end - i > exactDigits + 1) return isOdd;
  for (; i < end; i++) {
    const digit = <u32>load<u8>(i) - 0x30;
    if (digit <= 9) {
      value = value * 10 + digit;
      digits++;
    } else if (digit == 0xfffffffe && point == 0xffffffff) {
      point = digits;
    } else {
      return isOdd;
    }
  }
  if (digits == 0) return withoutDigits(at, length);
  if (digits > exactDigits) return isOdd;
  let size = <f64>value;
  if (point != 0xffffffff) size /= load<f64>(powersOfTen + ((<usize>(digits - point)) << 3));
  store<f64>(target, isNegative ? -size : size);
  return isPresent;
}

/**
 * Reads a field of the taken lines as integers of at most `digitsMax` digits (0: as doubles) to `values`. Sets `presence` of
 * each row to 1, or 0 for null, and increments `unreadable` of rows whose text is not a number. Returns the number of nulls.
 */
export function readNumbers(
  text: usize,
  spans: usize,
  stride: u32,
  count: u32,
  states: usize,
  digitsMax: u32,
  values: usize,
  presence: usize,
  unreadable: usize,
): u32 {
  let nulls: u32 = 0;
  for (let row: u32 = 0; row < count; row++, spans += <usize>stride, values += 8) {
    store<u64>(values, 0);
    if (load<u8>(states + row) != lineTaken) continue;
    const word = load<u32>(spans, 4);
    const kind = word >> kindShift;
    let answer = isOdd;
    if (kind == kindAbsent) {
      answer = isNull;
    } else if (kind == kindText || kind == kindNumber) {
      const at = text + load<u32>(spans);
      const length = word & lengthMask;
      answer = digitsMax == 0 ? readFloat(at, length, values) : readInt(at, length, digitsMax, values);
    }
    store<u8>(presence + row, answer == isPresent ? 1 : 0);
    if (answer == isPresent) continue;
    nulls++;
    if (answer == isOdd) store<u8>(states + row, lineOdd);
    if (answer != isUnreadable) continue;
    const counter = unreadable + ((<usize>row) << 1);
    store<u16>(counter, load<u16>(counter) + 1);
  }
  return nulls;
}
