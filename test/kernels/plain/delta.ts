/**
 * DELTA_BINARY_PACKED (https://parquet.apache.org/docs/file-format/data-pages/encodings/#DELTAENC) for 64-bit integers,
 * in blocks of 128 values and 4 miniblocks. 64-bit arithmetic uses 32-bit halves, because BigInts would cost an allocation for each value.
 * Blocks whose deltas are too wide for that, which are rare in logs, take the path with BigInts.
 */

const blockValues = 128;
const miniblocks = 4;
const miniblockValues = blockValues / miniblocks;
const twoTo32 = 4294967296;
/** The delta of two values whose high halves differ by less than this fits a double exactly. */
const highDifferenceMax = 1 << 20;
/** The sum of a minimum below this and a 32-bit remainder fits a double exactly. */
const exactMinimum = 2 ** 52;
/** A table, because `**` would call pow in the hot loops. */
const powersOfTwo = Float64Array.from({ length: 40 }, (_, exponent) => 2 ** exponent);
const mask64 = 0xffff_ffff_ffff_ffffn;

/** Encodes values[0, count) into `target` from `at` on. Returns the offset after them. */
export function encodeDelta(values: BigInt64Array, count: number, target: Uint8Array, at: number): number {
  const halves = new Int32Array(values.buffer, values.byteOffset, count * 2);
  const deltas = new Float64Array(blockValues);
  const remainders = new Uint32Array(blockValues);
  at = writeVarint(blockValues, target, at);
  at = writeVarint(miniblocks, target, at);
  at = writeVarint(count, target, at);
  at = writeZigzag(count === 0 ? 0n : values[0]!, target, at);
  for (let first = 1; first < count; first += blockValues) {
    const inBlock = Math.min(blockValues, count - first);
    const minimum = narrowDeltas(halves, first, inBlock, deltas);
    if (Number.isNaN(minimum)) {
      at = encodeWideBlock(values, first, inBlock, target, at);
      continue;
    }
    remainders.fill(0);
    for (let k = 0; k < inBlock; k++) remainders[k] = deltas[k]! - minimum;
    at = writeZigzag(BigInt(minimum), target, at);
    const widthsAt = at;
    at += miniblocks;
    for (let m = 0; m < miniblocks; m++) {
      const width = m * miniblockValues < inBlock ? widthOf(remainders, m * miniblockValues) : 0;
      target[widthsAt + m] = width;
      at = packMiniblock(remainders, m * miniblockValues, width, target, at);
    }
  }
  return at;
}

/** Fills `deltas` and returns their minimum; NaN if they or their range are too wide for the path without BigInts. */
function narrowDeltas(halves: Int32Array, first: number, inBlock: number, deltas: Float64Array): number {
  let minimum = Infinity;
  let maximum = -Infinity;
  let low = halves[2 * first - 2]! >>> 0;
  let high = halves[2 * first - 1]!;
  for (let k = 0; k < inBlock; k++) {
    const nextLow = halves[2 * (first + k)]! >>> 0;
    const nextHigh = halves[2 * (first + k) + 1]!;
    const highDifference = nextHigh - high;
    if (highDifference >= highDifferenceMax || highDifference <= -highDifferenceMax) return NaN;
    const delta = highDifference * twoTo32 + (nextLow - low);
    deltas[k] = delta;
    if (delta < minimum) minimum = delta;
    if (delta > maximum) maximum = delta;
    low = nextLow;
    high = nextHigh;
  }
  return maximum - minimum < twoTo32 ? minimum : NaN;
}

function widthOf(remainders: Uint32Array, from: number): number {
  let union = 0;
  for (let k = 0; k < miniblockValues; k++) union |= remainders[from + k]!;
  return 32 - Math.clz32(union);
}

function packMiniblock(
  remainders: Uint32Array,
  from: number,
  width: number,
  target: Uint8Array,
  at: number,
): number {
  if (width === 0) return at;
  let bits = 0;
  let pending = 0;
  if (width <= 24) {
    for (let k = 0; k < miniblockValues; k++) {
      pending |= remainders[from + k]! << bits;
      bits += width;
      while (bits >= 8) {
        target[at++] = pending & 255;
        pending >>>= 8;
        bits -= 8;
      }
    }
    return at;
  }
  // Up to 39 bits are pending: more than the bitwise operators can hold, few enough for a double.
  for (let k = 0; k < miniblockValues; k++) {
    pending += remainders[from + k]! * powersOfTwo[bits]!;
    bits += width;
    while (bits >= 8) {
      target[at++] = pending & 255;
      pending = Math.floor(pending / 256);
      bits -= 8;
    }
  }
  return at;
}

function encodeWideBlock(
  values: BigInt64Array,
  first: number,
  inBlock: number,
  target: Uint8Array,
  at: number,
): number {
  const deltas: bigint[] = [];
  for (let k = 0; k < inBlock; k++)
    deltas.push(BigInt.asIntN(64, values[first + k]! - values[first + k - 1]!));
  const minimum = deltas.reduce((a, b) => (b < a ? b : a));
  at = writeZigzag(minimum, target, at);
  const widthsAt = at;
  at += miniblocks;
  for (let m = 0; m < miniblocks; m++) {
    const remainders = deltas
      .slice(m * miniblockValues, (m + 1) * miniblockValues)
      .map((delta) => BigInt.asUintN(64, delta - minimum));
    const union = remainders.reduce((a, b) => a | b, 0n);
    const width = union === 0n ? 0 : union.toString(2).length;
    target[widthsAt + m] = width;
    let packed = 0n;
    remainders.forEach((remainder, k) => (packed |= remainder << BigInt(k * width)));
    for (const end = at + width * (miniblockValues / 8); at < end; at++) {
      target[at] = Number(packed & 255n);
      packed >>= 8n;
    }
  }
  return at;
}

/**
 * Decodes exactly `count` values from source[at, …) into values[0, count). Returns the offset after them, or -1 if the input is malformed;
 * never reads or writes outside of the two arrays.
 */
export function decodeDelta(source: Uint8Array, at: number, values: BigInt64Array, count: number): number {
  const reader = { at, bits: 0n };
  if (!readVarint(source, reader) || reader.bits > 2n ** 24n) return -1;
  const inBlock = Number(reader.bits);
  if (!readVarint(source, reader) || reader.bits > BigInt(inBlock)) return -1;
  const perBlock = Number(reader.bits);
  const inMiniblock = inBlock / perBlock;
  if (inBlock === 0 || inBlock % 128 !== 0 || perBlock === 0 || inMiniblock % 32 !== 0) return -1;
  if (!readVarint(source, reader) || reader.bits !== BigInt(count)) return -1;
  if (!readVarint(source, reader)) return -1;
  if (count === 0) return reader.at;
  const halves = new Int32Array(values.buffer, values.byteOffset, count * 2);
  values[0] = unzigzag(reader.bits);
  for (let first = 1; first < count; first += inBlock) {
    if (!readVarint(source, reader) || reader.at + perBlock > source.length) return -1;
    const minimum = unzigzag(reader.bits);
    const narrow = Number(minimum);
    const widthsAt = reader.at;
    let from = widthsAt + perBlock;
    for (let m = 0; m < perBlock; m++) {
      const row = first + m * inMiniblock;
      if (row >= count) break;
      const width = source[widthsAt + m]!;
      const inThis = Math.min(inMiniblock, count - row);
      if (width > 64 || from + width * (inMiniblock / 8) > source.length) return -1;
      if (width > 32 || narrow > exactMinimum || narrow < -exactMinimum) {
        unpackWide(source, from, width, minimum, values, row, inThis);
      } else {
        unpackNarrow(source, from, width, narrow, halves, row, inThis);
      }
      from += width * (inMiniblock / 8);
    }
    reader.at = from;
  }
  return reader.at;
}

/**
 * Decodes the lengths of `count` strings (DELTA_LENGTH_BYTE_ARRAY) to their end offsets; offsets[0] is 0. The strings follow their lengths
 * and reach to the end of `source`. Returns the offset where the strings begin, or -1 if the input is malformed.
 */
export function decodeLengths(source: Uint8Array, count: number, offsets: Uint32Array): number {
  const lengths = new BigInt64Array(count);
  const bytesAt = decodeDelta(source, 0, lengths, count);
  if (bytesAt < 0) return -1;
  const halves = new Int32Array(lengths.buffer);
  const bytes = source.length - bytesAt;
  let end = 0;
  offsets[0] = 0;
  for (let row = 0; row < count; row++) {
    end += halves[2 * row]! >>> 0;
    if (halves[2 * row + 1] !== 0 || end > bytes) return -1;
    offsets[row + 1] = end;
  }
  return end === bytes ? bytesAt : -1;
}

function unpackNarrow(
  source: Uint8Array,
  at: number,
  width: number,
  minimum: number,
  halves: Int32Array,
  row: number,
  inMiniblock: number,
): void {
  const modulus = powersOfTwo[width]!;
  let low = halves[2 * row - 2]! >>> 0;
  let high = halves[2 * row - 1]!;
  let pending = 0;
  let bits = 0;
  for (let k = 0; k < inMiniblock; k++) {
    while (bits < width) {
      pending += source[at++]! * powersOfTwo[bits]!;
      bits += 8;
    }
    const rest = Math.floor(pending / modulus);
    const sum = low + minimum + (pending - rest * modulus);
    pending = rest;
    bits -= width;
    const carry = Math.floor(sum / twoTo32);
    low = sum - carry * twoTo32;
    high = (high + carry) | 0;
    halves[2 * (row + k)] = low;
    halves[2 * (row + k) + 1] = high;
  }
}

function unpackWide(
  source: Uint8Array,
  at: number,
  width: number,
  minimum: bigint,
  values: BigInt64Array,
  row: number,
  inMiniblock: number,
): void {
  let packed = 0n;
  for (let i = Math.ceil((width * inMiniblock) / 8) - 1; i >= 0; i--)
    packed = (packed << 8n) | BigInt(source[at + i]!);
  const mask = (1n << BigInt(width)) - 1n;
  for (let k = 0; k < inMiniblock; k++) {
    const remainder = (packed >> BigInt(k * width)) & mask;
    values[row + k] = BigInt.asIntN(64, values[row + k - 1]! + minimum + remainder);
  }
}

function writeVarint(value: number, target: Uint8Array, at: number): number {
  while (value >= 128) {
    target[at++] = (value & 127) | 128;
    value = Math.floor(value / 128);
  }
  target[at++] = value;
  return at;
}

function writeZigzag(value: bigint, target: Uint8Array, at: number): number {
  let bits = BigInt.asUintN(64, (value << 1n) ^ (value >> 63n));
  while (bits >= 128n) {
    target[at++] = Number(bits & 127n) | 128;
    bits >>= 7n;
  }
  target[at++] = Number(bits);
  return at;
}

function unzigzag(bits: bigint): bigint {
  return BigInt.asIntN(64, (bits >> 1n) ^ -(bits & 1n));
}

/** Reads an unsigned varint of at most 64 bits into `reader.bits`; returns false if there is none. */
function readVarint(source: Uint8Array, reader: { at: number; bits: bigint }): boolean {
  let bits = 0n;
  for (let shift = 0n; shift < 70n; shift += 7n) {
    if (reader.at >= source.length) return false;
    const byte = source[reader.at++]!;
    bits |= BigInt(byte & 127) << shift;
    if (byte < 128) {
      reader.bits = bits;
      return bits <= mask64;
    }
  }
  return false;
}

/** The strings of DELTA_BYTE_ARRAY: see `decodePrefixed` of the kernels. */
export function decodePrefixed(
  source: Uint8Array,
  count: number,
  bytesMax: number,
  offsets: Uint32Array,
): Uint8Array | null {
  const prefixes = new BigInt64Array(count);
  const suffixes = new BigInt64Array(count);
  const suffixesAt = decodeDelta(source, 0, prefixes, count);
  let at = suffixesAt < 0 ? -1 : decodeDelta(source, suffixesAt, suffixes, count);
  if (at < 0) return null;
  const strings: Uint8Array[] = [];
  let before: Uint8Array = new Uint8Array(0);
  let total = 0;
  for (let row = 0; row < count; row++) {
    const [prefix, suffix] = [prefixes[row]!, suffixes[row]!];
    if (prefix < 0n || prefix > BigInt(before.length)) return null;
    if (suffix < 0n || suffix > BigInt(source.length - at)) return null;
    const own = source.subarray(at, at + Number(suffix));
    at += own.length;
    total += Number(prefix) + own.length;
    if (total > bytesMax) return null;
    before = Buffer.concat([before.subarray(0, Number(prefix)), own]);
    strings.push(before);
  }
  if (at !== source.length) return null;
  offsets[0] = 0;
  strings.forEach((string, row) => (offsets[row + 1] = offsets[row]! + string.length));
  return Buffer.concat(strings);
}
