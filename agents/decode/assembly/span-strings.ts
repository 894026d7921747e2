// Writes fields of lines as a column of strings; see line-spans.ts. A column is made of pieces of three words each: a field,
// 0 and 0; or the address of bytes, their length and 1.
import { copyLoose } from '../../../engine/kernels/assembly/copy';
import { hexValue, unescaped } from './json-lexer';
import { kindAbsent, kindEscaped, kindShift, lengthMask, lineOdd, lineTaken, spanBytes } from './line-spans';

const pieceBytes: usize = 12;

/** Writes a code point of the Basic Multilingual Plane as UTF-8. Returns the address after it. */
function writeCode(at: usize, code: u32): usize {
  if (code < 0x80) {
    store<u8>(at, <u8>code);
    return at + 1;
  }
  if (code < 0x800) {
    store<u8>(at, <u8>(0xc0 | (code >> 6)));
    store<u8>(at, <u8>(0x80 | (code & 0x3f)), 1);
    return at + 2;
  }
  store<u8>(at, <u8>(0xe0 | (code >> 12)));
  store<u8>(at, <u8>(0x80 | ((code >> 6) & 0x3f)), 1);
  store<u8>(at, <u8>(0x80 | (code & 0x3f)), 2);
  return at + 3;
}

/** Writes the text of a JSON string with valid escapes. Returns the address after it. */
function writeUnescaped(target: usize, at: usize, length: u32): usize {
  const end = at + length;
  while (at < end) {
    const byte = <u32>load<u8>(at);
    if (byte != 0x5c) {
      store<u8>(target++, <u8>byte);
      at++;
      continue;
    }
    const letter = <u32>load<u8>(at, 1);
    if (letter == 0x75) {
      target = writeCode(target, <u32>hexValue(at + 2));
      at += 6;
    } else {
      store<u8>(target++, <u8>unescaped(letter));
      at += 2;
    }
  }
  return target;
}

function writeSpan(target: usize, text: usize, span: usize, word: u32): usize {
  const length = word & lengthMask;
  const source = text + load<u32>(span);
  if (word >> kindShift == kindEscaped) return writeUnescaped(target, source, length);
  copyLoose(target, source, length);
  return target + length;
}

/**
 * Writes a column that is one field, null where it is absent, to `target` (with slack after it), and its `count + 1`
 * offsets. Sets `presence` of each row to 1, or 0 for null. Rows of odd lines are empty. Returns the number of nulls.
 */
export function gatherField(
  text: usize,
  spans: usize,
  stride: u32,
  count: u32,
  states: usize,
  target: usize,
  offsets: usize,
  presence: usize,
): u32 {
  let nulls: u32 = 0;
  let at = target;
  store<u32>(offsets, 0);
  for (let row: u32 = 0; row < count; row++, spans += <usize>stride) {
    if (load<u8>(states + row) == lineTaken) {
      const word = load<u32>(spans, 4);
      const isAbsent = word >> kindShift == kindAbsent;
      if (isAbsent) nulls++;
      else at = writeSpan(at, text, spans, word);
      store<u8>(presence + row, isAbsent ? 0 : 1);
    }
    offsets += 4;
    store<u32>(offsets, <u32>(at - target));
  }
  return nulls;
}

/**
 * Writes a column of several pieces, of which absent ones are empty, to `target` (with slack after it), and its `count + 1`
 * offsets. A value longer than `valueBytesMax` makes its line odd. Rows of odd lines are empty.
 */
export function gatherPieces(
  text: usize,
  spans: usize,
  stride: u32,
  count: u32,
  states: usize,
  pieces: usize,
  pieceCount: u32,
  valueBytesMax: u32,
  target: usize,
  offsets: usize,
): void {
  const end = pieces + <usize>pieceCount * pieceBytes;
  let at = target;
  store<u32>(offsets, 0);
  for (let row: u32 = 0; row < count; row++, spans += <usize>stride) {
    if (load<u8>(states + row) == lineTaken) {
      const begin = at;
      for (let piece = pieces; piece < end; piece += pieceBytes) {
        if (load<u32>(piece, 8) != 0) {
          copyLoose(at, <usize>load<u32>(piece), <usize>load<u32>(piece, 4));
          at += <usize>load<u32>(piece, 4);
          continue;
        }
        const span = spans + <usize>load<u32>(piece) * spanBytes;
        const word = load<u32>(span, 4);
        if (word >> kindShift != kindAbsent) at = writeSpan(at, text, span, word);
      }
      if (at - begin > <usize>valueBytesMax) {
        store<u8>(states + row, lineOdd);
        at = begin;
      }
    }
    offsets += 4;
    store<u32>(offsets, <u32>(at - target));
  }
}
