// Numbers and strings as JSON. Each function writes a value at an address and returns the end. Up to 32 bytes after the end are
// overwritten, which is why every output ends with padding. The bytes are those of `JSON.stringify`.

const integerMax: f64 = 9007199254740992;
const thousandthsMax: f64 = 1e9;

const tenMillions: u64 = 100000000;
/** The digit 0 eight times. */
const zeroDigits: u64 = 0x3030303030303030;

/**
 * The eight digits of `value`, which must be below 10^8, the first in the lowest byte. The value is halved in all lanes of a word at once:
 * into twice four digits, four times two, eight times one. Each division is a multiplication and a shift.
 */
function eightDigits(value: u32): u64 {
  const upper = value / 10000;
  const fours = (<u64>upper) | ((<u64>(value - upper * 10000)) << 32);
  const hundreds = ((fours * 10486) >>> 20) & 0x0000007f0000007f;
  const twos = hundreds | ((fours - hundreds * 100) << 16);
  const tens = ((twos * 103) >>> 10) & 0x000f000f000f000f;
  return tens | ((twos - tens * 10) << 8) | zeroDigits;
}

/** Writes `value`, which must be below 10^8, without leading zeros. */
function writeShort(at: usize, value: u32): usize {
  const digits = eightDigits(value);
  // The last digit is kept even if it is 0.
  const leadingBits = ctz((digits ^ zeroDigits) | 0x0100000000000000) & 0x38;
  store<u64>(at, digits >>> leadingBits);
  return at + 8 - <usize>(leadingBits >>> 3);
}

function writeUnsigned(at: usize, value: u64): usize {
  if (value < tenMillions) return writeShort(at, <u32>value);
  const upper = value / tenMillions;
  at = writeUnsigned(at, upper);
  store<u64>(at, eightDigits(<u32>(value - upper * tenMillions)));
  return at + 8;
}

/** Writes a 64-bit integer in decimal. Returns the end. */
export function writeInteger(at: usize, value: i64): usize {
  if (value >= 0) return writeUnsigned(at, <u64>value);
  store<u8>(at, 0x2d);
  return writeUnsigned(at + 1, <u64>-value);
}

/** Writes a double that is an integer or has at most three decimals. Returns the end, or 0 for any other double. */
export function writeDouble(at: usize, value: f64): usize {
  const size = abs(value);
  if (size < integerMax && trunc(value) == value) return writeInteger(at, <i64>value);
  // A decimal of at most 15 digits that reads back as the same double is the shortest one, because no two such decimals read back as the
  // same double.
  if (size >= thousandthsMax) return 0;
  const thousandths = nearest(size * 1000);
  if (thousandths / 1000 != size) return 0;
  if (value < 0) store<u8>(at++, 0x2d);
  const all = <u64>thousandths;
  const whole = all / 1000;
  at = writeUnsigned(at, whole);
  // The last three of eight digits, after a decimal point.
  const fraction = (eightDigits(<u32>(all - whole * 1000)) >>> 40) & 0xffffff;
  store<u32>(at, <u32>((fraction << 8) | 0x2e));
  const trailingBits = clz((<u32>(fraction ^ 0x303030)) << 8) & 0x18;
  return at + 4 - <usize>(trailingBits >>> 3);
}

/** Writes the escape of a quote, a backslash or a control character. Returns the end. */
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

/** The bytes that are quotes, backslashes or control characters. */
function escapedBytes(bytes: v128): v128 {
  return v128.or(
    v128.or(i8x16.eq(bytes, i8x16.splat(0x22)), i8x16.eq(bytes, i8x16.splat(0x5c))),
    i8x16.lt_u(bytes, i8x16.splat(0x20)),
  );
}

/** Copies [from, fromEnd) with escapes. Returns the end of the copy. */
function writeEscaped(at: usize, from: usize, fromEnd: usize): usize {
  while (from < fromEnd) {
    const bytes = v128.load(from);
    v128.store(at, bytes);
    const rest = fromEnd - from;
    const plain = min<usize>(<usize>ctz(i8x16.bitmask(escapedBytes(bytes)) | 0x10000), rest);
    from += plain;
    at += plain;
    if (plain < 16 && plain < rest) at = writeEscape(at, <u32>load<u8>(from++));
  }
  return at;
}

/**
 * Writes UTF-8 as a JSON string, and returns the end. The last two vectors are copied before their length is known, so that strings of up
 * to 32 bytes (most strings) need no branch that depends on the length.
 */
export function writeString(at: usize, from: usize, length: u32): usize {
  store<u8>(at++, 0x22);
  const fromEnd = from + length;
  let rest = length;
  while (rest > 32) {
    const first = v128.load(from);
    const second = v128.load(from, 16);
    v128.store(at, first);
    v128.store(at, second, 16);
    if (v128.any_true(v128.or(escapedBytes(first), escapedBytes(second)))) {
      at = writeEscaped(at, from, from + 32);
    } else {
      at += 32;
    }
    from += 32;
    rest -= 32;
  }
  const first = v128.load(from);
  const second = v128.load(from, 16);
  v128.store(at, first);
  v128.store(at, second, 16);
  const escaped =
    (<u64>(<u32>i8x16.bitmask(escapedBytes(first)))) |
    ((<u64>(<u32>i8x16.bitmask(escapedBytes(second)))) << 16);
  if ((escaped & (((<u64>1) << (<u64>rest)) - 1)) != 0) at = writeEscaped(at, from, fromEnd);
  else at += rest;
  store<u8>(at, 0x22);
  return at + 1;
}
