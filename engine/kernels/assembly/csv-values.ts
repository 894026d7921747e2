// Strings as CSV fields (RFC 4180). Up to 16 bytes after a string may be read, and after its copy written.
import { copyLoose } from './copy';

/** The bytes that require a field to be quoted: quotes, commas and line ends. */
function quotedBytes(bytes: v128): v128 {
  return v128.or(
    v128.or(i8x16.eq(bytes, i8x16.splat(0x22)), i8x16.eq(bytes, i8x16.splat(0x2c))),
    v128.or(i8x16.eq(bytes, i8x16.splat(0x0a)), i8x16.eq(bytes, i8x16.splat(0x0d))),
  );
}

function needsQuotes(from: usize, length: u32): bool {
  for (let done: u32 = 0; done < length; done += 16) {
    const mask = <u32>i8x16.bitmask(quotedBytes(v128.load(from + done)));
    const rest = length - done;
    if ((rest < 16 ? mask & ((1 << rest) - 1) : mask) != 0) return true;
  }
  return false;
}

/** Copies [from, fromEnd) and doubles each quote. Returns the end of the copy. */
function writeDoubled(at: usize, from: usize, fromEnd: usize): usize {
  while (from < fromEnd) {
    const bytes = v128.load(from);
    v128.store(at, bytes);
    const rest = fromEnd - from;
    const quotes = i8x16.bitmask(i8x16.eq(bytes, i8x16.splat(0x22)));
    const plain = min<usize>(<usize>ctz(quotes | 0x10000), rest);
    from += plain;
    at += plain;
    if (plain < 16 && plain < rest) {
      store<u16>(at, 0x2222);
      at += 2;
      from++;
    }
  }
  return at;
}

/**
 * Writes UTF-8 as a field. An empty string becomes `""`, which distinguishes it from null; other strings are quoted only where necessary.
 * Returns the end.
 */
export function writeCsvString(at: usize, from: usize, length: u32): usize {
  if (length > 0 && !needsQuotes(from, length)) {
    copyLoose(at, from, length);
    return at + length;
  }
  store<u8>(at, 0x22);
  at = writeDoubled(at + 1, from, from + length);
  store<u8>(at, 0x22);
  return at + 1;
}
