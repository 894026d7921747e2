// Rows of columns written as JSON Lines: see ../json-rows.ts, the twin, whose bytes these are. Columns are described by
// eight words each, which ../simd/json-rows.ts lays out.
import { copyLoose } from './copy';

const descriptorBytes: usize = 32;
const kindOffset: usize = 0;
const keyOffset: usize = 4;
const keyBytesOffset: usize = 8;
/** 0: every row is present. */
const validityOffset: usize = 12;
/** 0: the row is the entry. */
const codesOffset: usize = 16;
const codeBytesOffset: usize = 20;
/** The numbers, or the bytes of the strings. */
const dataOffset: usize = 24;
const offsetsOffset: usize = 28;

const kindInt64: u32 = 0;
const kindFloat64: u32 = 1;
const kindString: u32 = 2;

const integerMax: f64 = 9007199254740992;
const thousandthsMax: f64 = 1e9;

/** The address behind what `writeJsonRows` has written. */
let end: usize = 0;

/** The address behind the last line that `writeJsonRows` has written. */
export function jsonEnd(): usize {
  return end;
}

function entryOf(column: usize, row: u32): u32 {
  const codes = <usize>load<u32>(column, codesOffset);
  if (codes == 0) return row;
  return load<u32>(column, codeBytesOffset) == 1
    ? <u32>load<u8>(codes + row)
    : <u32>load<u16>(codes + ((<usize>row) << 1));
}

/** The most bytes of the line of `row`: a control character takes six. */
function lineBytesMax(columns: usize, columnsEnd: usize, fixedBytes: u32, row: u32): u32 {
  let sizeBytes = fixedBytes;
  for (let column = columns; column < columnsEnd; column += descriptorBytes) {
    const kind = load<u32>(column, kindOffset);
    if (kind < kindString) continue;
    const at = <usize>load<u32>(column, offsetsOffset) + ((<usize>entryOf(column, row)) << 2);
    const length = load<u32>(at, 4) - load<u32>(at);
    sizeBytes += kind == kindString ? 6 * length + 2 : length;
  }
  return sizeBytes;
}

/** `{"_cursor":"` and sixteen hexadecimal digits. */
function writeCursor(at: usize, cursor: u64): usize {
  store<u64>(at, 0x6f737275635f227b);
  store<u32>(at, 0x223a2272, 8);
  const bytes = i64x2.splat(bswap<u64>(cursor));
  const nibbles = i8x16.shuffle(
    i8x16.shr_u(bytes, 4),
    v128.and(bytes, i8x16.splat(15)),
    0,
    16,
    1,
    17,
    2,
    18,
    3,
    19,
    4,
    20,
    5,
    21,
    6,
    22,
    7,
    23,
  );
  const digits = i8x16(
    0x30,
    0x31,
    0x32,
    0x33,
    0x34,
    0x35,
    0x36,
    0x37,
    0x38,
    0x39,
    0x61,
    0x62,
    0x63,
    0x64,
    0x65,
    0x66,
  );
  v128.store(at, i8x16.swizzle(digits, nibbles), 12);
  store<u8>(at, 0x22, 28);
  return at + 29;
}

function countDigits(value: u32): u32 {
  if (value < 10) return 1;
  if (value < 100) return 2;
  if (value < 1000) return 3;
  if (value < 10000) return 4;
  if (value < 100000) return 5;
  if (value < 1000000) return 6;
  if (value < 10000000) return 7;
  return value < 100000000 ? 8 : 9;
}

/** Writes `value`, of less than 10^9, in `digits` digits. */
function writeDigits(at: usize, value: u32, digits: u32): usize {
  let place = at + digits;
  while (place > at) {
    const quotient = value / 10;
    store<u8>(--place, <u8>(0x30 + value - quotient * 10));
    value = quotient;
  }
  return at + digits;
}

function writeUnsigned(at: usize, value: u64): usize {
  if (value < 1000000000) return writeDigits(at, <u32>value, countDigits(<u32>value));
  const upper = value / 1000000000;
  at = writeUnsigned(at, upper);
  return writeDigits(at, <u32>(value - upper * 1000000000), 9);
}

function writeInteger(at: usize, value: i64): usize {
  if (value >= 0) return writeUnsigned(at, <u64>value);
  store<u8>(at, 0x2d);
  return writeUnsigned(at + 1, <u64>-value);
}

/** Writes a double that is whole or has at most three decimals; returns 0 for every other. */
function writeDouble(at: usize, value: f64): usize {
  const size = abs(value);
  if (size < integerMax && trunc(value) == value) return writeInteger(at, <i64>value);
  // A decimal of at most 15 digits that reads back the same is the shortest: two of them never read as one double.
  if (size >= thousandthsMax) return 0;
  const thousandths = nearest(size * 1000);
  if (thousandths / 1000 != size) return 0;
  if (value < 0) store<u8>(at++, 0x2d);
  const all = <u64>thousandths;
  const whole = <u32>(all / 1000);
  at = writeDigits(at, whole, countDigits(whole));
  store<u8>(at, 0x2e);
  at = writeDigits(at + 1, <u32>(all - <u64>whole * 1000), 3);
  while (load<u8>(at - 1) == 0x30) at--;
  return at;
}

/** Writes the escape of a quote, a backslash or a control character. */
function writeEscape(at: usize, byte: u32): usize {
  let letter: u32 = 0;
  if (byte == 0x22 || byte == 0x5c) letter = byte;
  else if (byte == 0x0a) letter = 0x6e;
  else if (byte == 0x09) letter = 0x74;
  else if (byte == 0x0d) letter = 0x72;
  else if (byte == 0x08) letter = 0x62;
  else if (byte == 0x0c) letter = 0x66;
  if (letter != 0) {
    store<u16>(at, <u16>(0x5c | (letter << 8)));
    return at + 2;
  }
  const digit = byte & 15;
  store<u32>(at, 0x3030755c);
  store<u8>(at, <u8>(0x30 + (byte >>> 4)), 4);
  store<u8>(at, <u8>(digit < 10 ? 0x30 + digit : 0x57 + digit), 5);
  return at + 6;
}

function writeString(at: usize, from: usize, length: u32): usize {
  const quote = i8x16.splat(0x22);
  const backslash = i8x16.splat(0x5c);
  const firstPlain = i8x16.splat(0x20);
  const fromEnd = from + length;
  store<u8>(at++, 0x22);
  while (from < fromEnd) {
    const bytes = v128.load(from);
    v128.store(at, bytes);
    const isEscaped = v128.or(
      v128.or(i8x16.eq(bytes, quote), i8x16.eq(bytes, backslash)),
      i8x16.lt_u(bytes, firstPlain),
    );
    const rest = fromEnd - from;
    const plain = min<usize>(<usize>ctz(i8x16.bitmask(isEscaped) | 0x10000), rest);
    from += plain;
    at += plain;
    if (plain < 16 && plain < rest) at = writeEscape(at, <u32>load<u8>(from++));
  }
  store<u8>(at, 0x22);
  return at + 1;
}

/** Writes a value; returns 0 for a double that is not written here. */
function writeValue(at: usize, column: usize, row: u32): usize {
  const validity = <usize>load<u32>(column, validityOffset);
  if (validity != 0 && (((<u32>load<u8>(validity + (row >>> 3))) >>> (row & 7)) & 1) == 0) {
    store<u32>(at, 0x6c6c756e);
    return at + 4;
  }
  const entry = <usize>entryOf(column, row);
  const kind = load<u32>(column, kindOffset);
  const data = <usize>load<u32>(column, dataOffset);
  if (kind == kindInt64) return writeInteger(at, load<i64>(data + (entry << 3)));
  if (kind == kindFloat64) return writeDouble(at, load<f64>(data + (entry << 3)));
  const place = <usize>load<u32>(column, offsetsOffset) + (entry << 2);
  const start = load<u32>(place);
  const length = load<u32>(place, 4) - start;
  if (kind == kindString) return writeString(at, data + start, length);
  copyLoose(at, data + start, length);
  return at + length;
}

/**
 * Writes the lines of rows[from], rows[from + 1], … up to `to` from `at` on, while the longest form of the next one surely
 * fits before `atMax`, which slack follows. Returns the index of the first row not written: one without room, or one with a
 * double of more than three decimals, which the twin writes. The cursor of a row is `cursorOfRow0` + row.
 */
export function writeJsonRows(
  columns: usize,
  columnCount: u32,
  fixedBytes: u32,
  rows: usize,
  from: u32,
  to: u32,
  cursorOfRow0: u64,
  at: usize,
  atMax: usize,
): u32 {
  const columnsEnd = columns + <usize>columnCount * descriptorBytes;
  end = at;
  for (let i = from; i < to; i++) {
    const row = load<u32>(rows + ((<usize>i) << 2));
    if (lineBytesMax(columns, columnsEnd, fixedBytes, row) > <u32>(atMax - at)) return i;
    at = writeCursor(at, cursorOfRow0 + row);
    for (let column = columns; column < columnsEnd; column += descriptorBytes) {
      const keyBytes = load<u32>(column, keyBytesOffset);
      copyLoose(at, <usize>load<u32>(column, keyOffset), keyBytes);
      at = writeValue(at + keyBytes, column, row);
      if (at == 0) return i;
    }
    store<u16>(at, 0x0a7d);
    at += 2;
    end = at;
  }
  return to;
}
