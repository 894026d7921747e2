// Scans the values of RFC 8259 in a line that ends with a line feed. No value contains a line feed, so it stops every scan.
// Functions return the address after the value; 0 where it is invalid or not supported here.

const quote: u32 = 0x22;
const comma: u32 = 0x2c;
const colon: u32 = 0x3a;
const backslash: u32 = 0x5c;
const openBracket: u32 = 0x5b;
const closeBracket: u32 = 0x5d;
const openBrace: u32 = 0x7b;
const closeBrace: u32 = 0x7d;

/** Limit on the brackets open at once in a value: one bit each. */
export const depthMax: u32 = 64;

/** The first address from `at` on without a space, tab or carriage return. */
export function skipSpace(at: usize): usize {
  let byte = <u32>load<u8>(at);
  while (byte == 0x20 || byte == 0x09 || byte == 0x0d) byte = <u32>load<u8>(++at);
  return at;
}

/** Whether the string that was scanned last has escapes. */
export let hasEscape: bool = false;

/**
 * Address of the quotation mark that ends the string whose text begins at `at`; 0 for an odd string: one with a control
 * character, an invalid escape, or an escaped surrogate.
 */
export function stringEnd(at: usize): usize {
  hasEscape = false;
  while (true) {
    const mask = endsOfRun(at);
    if (mask != 0) {
      at += <usize>ctz(mask);
      return load<u8>(at) == quote ? at : escapedEnd(at);
    }
    at += 16;
  }
}

/** Bit mask of which of 16 bytes are quotation marks, backslashes or control characters. */
function endsOfRun(at: usize): i32 {
  const bytes = v128.load(at);
  return i8x16.bitmask(
    v128.or(
      v128.or(i8x16.eq(bytes, i8x16.splat(0x22)), i8x16.eq(bytes, i8x16.splat(0x5c))),
      i8x16.lt_u(bytes, i8x16.splat(0x20)),
    ),
  );
}

/** Like `stringEnd`, from the first byte that is not plain text. */
function escapedEnd(at: usize): usize {
  while (true) {
    const byte = <u32>load<u8>(at);
    if (byte == quote) return at;
    if (byte != backslash) return 0;
    hasEscape = true;
    const letter = <u32>load<u8>(at, 1);
    if (letter == 0x75) {
      const code = hexValue(at + 2);
      if (code < 0 || (code >= 0xd800 && code <= 0xdfff)) return 0;
      at += 6;
    } else {
      if (unescaped(letter) == 0) return 0;
      at += 2;
    }
    let mask = endsOfRun(at);
    while (mask == 0) {
      at += 16;
      mask = endsOfRun(at);
    }
    at += <usize>ctz(mask);
  }
}

/** The character of an escape by the letter after the backslash; 0 for an invalid letter, and for `u`. */
export function unescaped(letter: u32): u32 {
  switch (letter) {
    case 0x22:
    case 0x5c:
    case 0x2f:
      return letter;
    case 0x62:
      return 8;
    case 0x66:
      return 12;
    case 0x6e:
      return 10;
    case 0x72:
      return 13;
    case 0x74:
      return 9;
    default:
      return 0;
  }
}

/** The value of four hexadecimal digits, or -1. */
export function hexValue(at: usize): i32 {
  let value: i32 = 0;
  for (let i: usize = 0; i < 4; i++) {
    const byte = <i32>load<u8>(at + i);
    const letter = byte | 0x20;
    if (byte >= 0x30 && byte <= 0x39) value = value * 16 + byte - 0x30;
    else if (letter >= 0x61 && letter <= 0x66) value = value * 16 + letter - 0x57;
    else return -1;
  }
  return value;
}

function isDigit(at: usize): bool {
  return <u32>load<u8>(at) - 0x30 <= 9;
}

/** The first address from `at` on without a digit. Looks at 16 bytes at a time. */
function digitsEnd(at: usize): usize {
  while (true) {
    const others = i8x16.bitmask(i8x16.gt_u(i8x16.sub(v128.load(at), i8x16.splat(0x30)), i8x16.splat(9)));
    if (others != 0) return at + <usize>ctz(others);
    at += 16;
  }
}

/** End of a number in JSON's grammar. */
export function numberEnd(at: usize): usize {
  if (load<u8>(at) == 0x2d) at++;
  if (!isDigit(at)) return 0;
  if (load<u8>(at) == 0x30) {
    at++;
    if (isDigit(at)) return 0;
  } else {
    at = digitsEnd(at);
  }
  if (load<u8>(at) == 0x2e) {
    at++;
    if (!isDigit(at)) return 0;
    at = digitsEnd(at);
  }
  if (((<u32>load<u8>(at)) | 0x20) != 0x65) return at;
  at++;
  const sign = <u32>load<u8>(at);
  if (sign == 0x2b || sign == 0x2d) at++;
  return isDigit(at) ? digitsEnd(at) : 0;
}

/** End of `true`, `false` or `null`. */
export function wordEnd(at: usize): usize {
  const word = load<u32>(at);
  if (word == 0x65757274 || word == 0x6c6c756e) return at + 4;
  return word == 0x736c6166 && load<u8>(at, 4) == 0x65 ? at + 5 : 0;
}

function scalarEnd(at: usize): usize {
  const first = <u32>load<u8>(at);
  if (first == quote) {
    const end = stringEnd(at + 1);
    return end == 0 ? 0 : end + 1;
  }
  return first - 0x30 <= 9 || first == 0x2d ? numberEnd(at) : wordEnd(at);
}

/** Scans a key of a nested object and its colon; returns the address of the value. */
function nestedKeyEnd(at: usize): usize {
  if (load<u8>(at) != quote) return 0;
  const end = stringEnd(at + 1);
  if (end == 0) return 0;
  at = skipSpace(end + 1);
  return load<u8>(at) == colon ? skipSpace(at + 1) : 0;
}

/** End of an object or array inside the line's object. */
export function nestedEnd(at: usize): usize {
  // One bit per open bracket, 1 for a brace; the innermost is the lowest.
  let open: u64 = 0;
  let depth: u32 = 0;
  while (true) {
    const first = <u32>load<u8>(at);
    if (first == openBrace || first == openBracket) {
      if (depth == depthMax) return 0;
      const isBrace = first == openBrace;
      open = (open << 1) | (<u64>isBrace);
      depth++;
      at = skipSpace(at + 1);
      if (load<u8>(at) != (isBrace ? closeBrace : closeBracket)) {
        if (isBrace) at = nestedKeyEnd(at);
        if (at == 0) return 0;
        continue;
      }
    } else {
      at = scalarEnd(at);
      if (at == 0) return 0;
    }
    // After a value: closing brackets, then a comma or the end.
    while (true) {
      at = skipSpace(at);
      const isBrace = (open & 1) != 0;
      const next = <u32>load<u8>(at);
      if (next == comma) {
        at = skipSpace(at + 1);
        if (isBrace) at = nestedKeyEnd(at);
        if (at == 0) return 0;
        break;
      }
      if (next != (isBrace ? closeBrace : closeBracket)) return 0;
      at++;
      if (--depth == 0) return at;
      open >>= 1;
    }
  }
}
