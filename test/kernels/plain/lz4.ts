/**
 * The LZ4 block format (https://github.com/lz4/lz4/blob/dev/doc/lz4_Block_format.md), which Parquet calls LZ4_RAW.
 */

const hashBits = 14;
const hashPrime = 2654435761 | 0;

const table = new Int32Array(1 << hashBits);

const matchBytesMin = 4;
const offsetMax = 65535;
/** The format requires that the last five bytes are literals, and that no match begins in the last twelve. */
const lastLiteralBytes = 5;
const lastMatchDistance = 12;
/** Up to this many bytes, a loop copies faster than a call of `set` or `copyWithin`. */
const loopBytesMax = 48;

/**
 * Compresses `source` into `target`, which has room for `lz4BytesMax(source.length)` bytes. Returns the
 * number of bytes written.
 */
export function lz4Compress(source: Uint8Array, target: Uint8Array): number {
  const length = source.length;
  const view = new DataView(source.buffer, source.byteOffset, length);
  table.fill(0);
  const startEnd = length - lastMatchDistance;
  const matchEnd = length - lastLiteralBytes;
  let at = 0;
  let anchor = 0;
  let i = 1;
  // Grows with each miss, so that incompressible data is skipped ever faster.
  let misses = 64;
  while (i < startEnd) {
    const sequence = view.getInt32(i, true);
    const slot = Math.imul(sequence, hashPrime) >>> (32 - hashBits);
    let match = table[slot]!;
    table[slot] = i;
    if (match >= i || i - match > offsetMax || view.getInt32(match, true) !== sequence) {
      i += misses++ >>> 6;
      continue;
    }
    misses = 64;
    let end = matchedUpTo(view, source, i + matchBytesMin, match + matchBytesMin, matchEnd);
    while (i > anchor && match > 0 && source[i - 1] === source[match - 1]) {
      i--;
      match--;
    }
    at = writeSequence(source, anchor, i, i - match, end - i, target, at);
    i = end;
    anchor = i;
    if (i < startEnd) {
      end = i - 2;
      table[Math.imul(view.getInt32(end, true), hashPrime) >>> (32 - hashBits)] = end;
    }
  }
  return writeLiterals(source, anchor, length, 0, target, at);
}

/** The first offset from `i` on where the bytes differ from those at `match`, at most `end`. */
function matchedUpTo(view: DataView, source: Uint8Array, i: number, match: number, end: number): number {
  while (i + 4 <= end) {
    const difference = view.getInt32(i, true) ^ view.getInt32(match, true);
    if (difference !== 0) return i + ((31 - Math.clz32(difference & -difference)) >>> 3);
    i += 4;
    match += 4;
  }
  while (i < end && source[i] === source[match]) {
    i++;
    match++;
  }
  return i;
}

function writeSequence(
  source: Uint8Array,
  anchor: number,
  literalsEnd: number,
  offset: number,
  matchBytes: number,
  target: Uint8Array,
  at: number,
): number {
  const extra = matchBytes - matchBytesMin;
  at = writeLiterals(source, anchor, literalsEnd, extra < 15 ? extra : 15, target, at);
  target[at++] = offset & 255;
  target[at++] = offset >>> 8;
  return extra < 15 ? at : writeLength(extra - 15, target, at);
}

function writeLiterals(
  source: Uint8Array,
  from: number,
  to: number,
  matchNibble: number,
  target: Uint8Array,
  at: number,
): number {
  const literals = to - from;
  target[at++] = ((literals < 15 ? literals : 15) << 4) | matchNibble;
  if (literals >= 15) at = writeLength(literals - 15, target, at);
  if (literals > loopBytesMax) target.set(source.subarray(from, to), at);
  else for (let k = 0; k < literals; k++) target[at + k] = source[from + k]!;
  return at + literals;
}

function writeLength(rest: number, target: Uint8Array, at: number): number {
  while (rest >= 255) {
    target[at++] = 255;
    rest -= 255;
  }
  target[at++] = rest;
  return at;
}

/**
 * Decompresses `source` into target[0, length). Returns the number of bytes written, or -1 if the input is malformed or does not fit; never
 * reads or writes outside of the two arrays.
 */
export function lz4Decompress(source: Uint8Array, target: Uint8Array, length: number): number {
  const end = source.length;
  let s = 0;
  let d = 0;
  while (s < end) {
    const token = source[s++]!;
    let literals = token >>> 4;
    if (literals === 15) {
      let byte = 255;
      while (byte === 255) {
        if (s >= end) return -1;
        byte = source[s++]!;
        literals += byte;
      }
    }
    if (literals > end - s || literals > length - d) return -1;
    if (literals > loopBytesMax) target.set(source.subarray(s, s + literals), d);
    else for (let k = 0; k < literals; k++) target[d + k] = source[s + k]!;
    s += literals;
    d += literals;
    if (s === end) return d;
    if (end - s < 2) return -1;
    const offset = source[s]! | (source[s + 1]! << 8);
    s += 2;
    if (offset === 0 || offset > d) return -1;
    let matchBytes = (token & 15) + matchBytesMin;
    if (matchBytes === 15 + matchBytesMin) {
      let byte = 255;
      while (byte === 255) {
        if (s >= end) return -1;
        byte = source[s++]!;
        matchBytes += byte;
      }
    }
    if (matchBytes > length - d) return -1;
    copyMatch(target, d, offset, matchBytes);
    d += matchBytes;
  }
  return -1;
}

function copyMatch(target: Uint8Array, at: number, offset: number, matchBytes: number): void {
  // An overlapping match repeats the bytes that it has just written, which copyWithin does not do.
  if (matchBytes > loopBytesMax && offset >= matchBytes) {
    target.copyWithin(at, at - offset, at - offset + matchBytes);
    return;
  }
  const end = at + matchBytes;
  for (let from = at - offset; at < end; at++, from++) target[at] = target[from]!;
}
