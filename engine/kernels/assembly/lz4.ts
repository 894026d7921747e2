// The LZ4 block format (https://github.com/lz4/lz4/blob/dev/doc/lz4_Block_format.md): see ../lz4.ts.
import { copyLoose } from './copy';

const hashBits: u32 = 14;
const hashPrime: u32 = 2654435761;
/** Minimum length of a match. */
export const matchBytesMin: u32 = 4;
const offsetMax: u32 = 65535;
const lastLiteralBytes: u32 = 5;
const lastMatchDistance: u32 = 12;
/** Copies may write up to this many bytes past their end. Nearer to the end of a buffer, bytes are copied one by one. */
const overrunBytes: usize = 64;

/** Bytes of the hash table of `lz4Compress`. */
const tableBytes: usize = 2 << hashBits;

function slotOf(table: usize, sequence: u32): usize {
  return table + ((<usize>((sequence * hashPrime) >>> (32 - hashBits))) << 1);
}

/** The number of equal bytes from `a` and `b` on, at most `limit`. Reads eight bytes at a time, and none beyond the limit. */
function equalBytes(a: usize, b: usize, limit: u32): u32 {
  let length: u32 = 0;
  while (length + 8 <= limit) {
    const difference = load<u64>(a + length) ^ load<u64>(b + length);
    if (difference != 0) return length + ((<u32>ctz(difference)) >>> 3);
    length += 8;
  }
  while (length < limit && load<u8>(a + length) == load<u8>(b + length)) length++;
  return length;
}

function writeLength(target: usize, rest: u32): usize {
  while (rest >= 255) {
    store<u8>(target++, 255);
    rest -= 255;
  }
  store<u8>(target, <u8>rest);
  return target + 1;
}

function writeLiterals(target: usize, source: usize, literals: u32, matchNibble: u32): usize {
  if (literals < 15) {
    store<u8>(target, <u8>((literals << 4) | matchNibble));
    v128.store(target + 1, v128.load(source));
    return target + 1 + literals;
  }
  store<u8>(target, <u8>(0xf0 | matchNibble));
  target = writeLength(target + 1, literals - 15);
  copyLoose(target, source, literals);
  return target + literals;
}

/**
 * Compresses source[0, length) to `target`, which needs room for `lz4BytesMax(length)` bytes. 64 bytes of padding must follow both. `table`
 * has 2^15 bytes. Returns the number of bytes written.
 */
export function lz4Compress(source: usize, length: u32, target: usize, table: usize): u32 {
  memory.fill(table, 0, tableBytes);
  const startEnd = length > lastMatchDistance ? length - lastMatchDistance : 0;
  const matchEnd = length - lastLiteralBytes;
  let at = target;
  let anchor: u32 = 0;
  let i: u32 = 1;
  // Grows with each miss, so that incompressible bytes are skipped ever faster.
  let misses: u32 = 64;
  while (i < startEnd) {
    const sequence = load<u32>(source + i);
    const slot = slotOf(table, sequence);
    // The low 16 bits of a position suffice, because no match may be farther away. This keeps the table small enough for the nearest cache.
    const distance = (i - <u32>load<u16>(slot)) & offsetMax;
    store<u16>(slot, <u16>i);
    let match = i - distance;
    if (load<u32>(source + match) != sequence || distance == 0) {
      i += misses++ >>> 6;
      continue;
    }
    misses = 64;
    let matched: u32 =
      matchBytesMin +
      equalBytes(source + i + matchBytesMin, source + match + matchBytesMin, matchEnd - i - matchBytesMin);
    while (i > anchor && match > 0 && load<u8>(source + i - 1) == load<u8>(source + match - 1)) {
      i--;
      match--;
      matched++;
    }
    const extra = matched - matchBytesMin;
    at = writeLiterals(at, source + anchor, i - anchor, min<u32>(extra, 15));
    store<u16>(at, <u16>(i - match));
    at += 2;
    if (extra >= 15) at = writeLength(at, extra - 15);
    i += matched;
    anchor = i;
    if (i < startEnd) store<u16>(slotOf(table, load<u32>(source + i - 2)), <u16>(i - 2));
  }
  return <u32>(writeLiterals(at, source + anchor, length - anchor, 0) - target);
}

/** The address after the last byte that `readLength` has read. */
let lengthEnd: usize = 0;

/** Reads the rest of a length from `source` on; -1 when it does not end before `end`. */
function readLength(source: usize, end: usize): i64 {
  let rest: i64 = 0;
  while (source < end) {
    const byte = load<u8>(source++);
    rest += byte;
    if (byte != 255) {
      lengthEnd = source;
      return rest;
    }
  }
  return -1;
}

/** Copies a match with an offset of less than eight bytes: first a few periods byte by byte, then eight bytes at a time. */
function copyPeriod(target: usize, offset: usize, length: usize): void {
  let distance = offset;
  while (distance < 8) distance += offset;
  let k: usize = 0;
  for (; k < distance; k++) store<u8>(target + k, load<u8>(target + k - offset));
  for (; k < length; k += 8) store<u64>(target + k, load<u64>(target + k - distance));
}

/** Copies a match of `length` bytes to `target`, which has `room` bytes. */
export function copyMatch(target: usize, offset: usize, length: usize, room: usize): void {
  const from = target - offset;
  if (room < length + overrunBytes) {
    // A match that overlaps itself repeats bytes that it has just written, so `memory.copy` cannot be used.
    for (let k: usize = 0; k < length; k++) store<u8>(target + k, load<u8>(from + k));
    return;
  }
  if (offset < 8) {
    copyPeriod(target, offset, length);
    return;
  }
  let k: usize = 0;
  if (offset >= 32) {
    do {
      v128.store(target + k, v128.load(from + k));
      v128.store(target + k, v128.load(from + k, 16), 16);
      k += 32;
    } while (k < length);
  } else if (offset >= 16) {
    do {
      v128.store(target + k, v128.load(from + k));
      k += 16;
    } while (k < length);
  } else {
    do {
      store<u64>(target + k, load<u64>(from + k));
      k += 8;
    } while (k < length);
  }
}

/** Addresses of the next sequence in the block, and of the next decompressed byte. */
let sourceAt: usize = 0;
let targetAt: usize = 0;

/** Sets the addresses at which decompression continues. */
export function moveTo(source: usize, target: usize): void {
  sourceAt = source;
  targetAt = target;
}

/** The address up to which the source has been read. */
export function reachedSource(): usize {
  return sourceAt;
}

/** The address up to which the target has been written. */
export function reachedTarget(): usize {
  return targetAt;
}

/** The longest literals and the longest match whose length takes one byte besides its nibble. */
const shortLiteralBytesMax: u32 = 15 + 254;
const shortMatchBytesMax: u32 = 15 + 254 + matchBytesMin;
/**
 * Maximum bytes of a sequence with such lengths: in the source, the token, two length bytes, the literals and the offset; in the target,
 * including the overrun of the copies.
 */
export const shortSourceBytes: u32 = 3 + shortLiteralBytesMax + 2;
export const shortTargetBytes: u32 = shortLiteralBytesMax + shortMatchBytesMax + <u32>overrunBytes;

/**
 * Decompresses sequences up to the first that is long or malformed, or that begins at or after `sourceEnd` or `targetEnd`. Before these
 * addresses a short sequence certainly fits, so that only its offset has to be checked. Nearly all sequences take no unpredictable branch;
 * mispredictions would cost more than the superfluous bytes that are copied. Matches must not refer to bytes before `target`.
 */
export function decompressShort(sourceEnd: usize, target: usize, targetEnd: usize): void {
  let s = sourceAt;
  let d = targetAt;
  while (s < sourceEnd && d < targetEnd) {
    const sequence = s;
    const token = <u32>load<u8>(s++);
    let literals = token >>> 4;
    if (literals == 15) {
      const rest = <u32>load<u8>(s++);
      literals += rest;
      if (rest == 255) {
        s = sequence;
        break;
      }
      copyLoose(d, s, literals);
    } else {
      v128.store(d, v128.load(s));
    }
    s += literals;
    const to = d + literals;
    const offset = <usize>load<u16>(s);
    const isExtended = <u32>((token & 15) == 15);
    const matched = (token & 15) + matchBytesMin + ((<u32>load<u8>(s, 2)) & (0 - isExtended));
    // An offset of 0 becomes a large number here, and fails the check.
    if (offset - 1 >= to - target) {
      s = sequence;
      break;
    }
    s += 2 + isExtended;
    if (offset >= 16) {
      const from = to - offset;
      v128.store(to, v128.load(from));
      v128.store(to, v128.load(from, 16), 16);
      if (matched > 32) {
        if (matched > shortMatchBytesMax) {
          s = sequence;
          break;
        }
        for (let k: usize = 32; k < matched; k += 16) v128.store(to + k, v128.load(from + k));
      }
    } else {
      if (matched > shortMatchBytesMax) {
        s = sequence;
        break;
      }
      copyMatch(to, offset, matched, <usize>matched + overrunBytes);
    }
    d = to + matched;
  }
  sourceAt = s;
  targetAt = d;
}

/** Decompresses one sequence of any length. False when it is malformed, or does not fit in the source or the target. */
function decompressOne(end: usize, target: usize, targetEnd: usize): bool {
  let s = sourceAt;
  let d = targetAt;
  const token = <u32>load<u8>(s++);
  let literals = <i64>(token >>> 4);
  if (literals == 15) {
    const rest = readLength(s, end);
    if (rest < 0) return false;
    literals += rest;
    s = lengthEnd;
  }
  if (literals > <i64>(end - s) || literals > <i64>(targetEnd - d)) return false;
  memory.copy(d, s, <usize>literals);
  s += <usize>literals;
  d += <usize>literals;
  sourceAt = s;
  targetAt = d;
  // The last sequence has no match.
  if (s == end) return true;
  if (end - s < 2) return false;
  const offset = <usize>load<u16>(s);
  s += 2;
  if (offset == 0 || offset > d - target) return false;
  let matched = <i64>((token & 15) + matchBytesMin);
  if ((token & 15) == 15) {
    const rest = readLength(s, end);
    if (rest < 0) return false;
    matched += rest;
    s = lengthEnd;
  }
  // A block must end with literals, so one that ends with a match is malformed.
  if (s == end || matched > <i64>(targetEnd - d)) return false;
  copyMatch(d, offset, <usize>matched, targetEnd - d);
  sourceAt = s;
  targetAt = d + <usize>matched;
  return true;
}

/**
 * Decompresses source[0, sourceBytes) to target[0, length). Returns the number of bytes written, or -1 when the input is malformed or does
 * not fit. Never writes outside the target, whatever the input. 64 bytes of padding must follow the source.
 */
export function lz4Decompress(source: usize, sourceBytes: u32, target: usize, length: u32): i32 {
  const end = source + sourceBytes;
  const targetEnd = target + length;
  const sourceEnd = sourceBytes > shortSourceBytes ? end - shortSourceBytes : source;
  const targetEndShort = length > shortTargetBytes ? targetEnd - shortTargetBytes : target;
  sourceAt = source;
  targetAt = target;
  while (sourceAt < end) {
    decompressShort(sourceEnd, target, targetEndShort);
    if (!decompressOne(end, target, targetEnd)) return -1;
  }
  return sourceBytes == 0 ? -1 : <i32>(targetAt - target);
}
