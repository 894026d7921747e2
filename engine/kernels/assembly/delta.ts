// DELTA_BINARY_PACKED for 64-bit integers: see ../delta.ts.
import { copyLoose } from './copy';
import { readVarint, varint } from './varint';

const blockValues: u32 = 128;
const miniblocks: u32 = 4;
const miniblockValues: u32 = 32;

function writeVarint(at: usize, value: u64): usize {
  while (value >= 128) {
    store<u8>(at++, <u8>(value | 128));
    value >>= 7;
  }
  store<u8>(at, <u8>value);
  return at + 1;
}

function zigzag(value: i64): u64 {
  return <u64>((value << 1) ^ (value >> 63));
}

function unzigzag(bits: u64): i64 {
  return (<i64>(bits >>> 1)) ^ -(<i64>(bits & 1));
}

/** Packs the 32 words at `words`, each below 2^width. Up to eight bytes after the target are overwritten. */
function packMiniblock(words: usize, width: u32, target: usize): void {
  if (width <= 32) {
    let pending: u64 = 0;
    let bits: u32 = 0;
    for (let k: u32 = 0; k < miniblockValues; k++) {
      pending |= load<u64>(words + (k << 3)) << bits;
      bits += width;
      if (bits >= 32) {
        store<u32>(target, <u32>pending);
        target += 4;
        pending >>= 32;
        bits -= 32;
      }
    }
    return;
  }
  memory.fill(target, 0, ((<usize>width) << 2) + 8);
  let bit: u32 = 0;
  for (let k: u32 = 0; k < miniblockValues; k++) {
    const word = load<u64>(words + (k << 3));
    const at = target + (bit >>> 3);
    const shift = bit & 7;
    store<u64>(at, load<u64>(at) | (word << shift));
    if (shift + width > 64) store<u8>(at, <u8>(word >>> (64 - shift)), 8);
    bit += width;
  }
}

/** Writes the deltas of values[0, count) to `deltas`, padded to a block with their minimum. Returns the minimum. */
function writeDeltas(values: usize, count: u32, deltas: usize): i64 {
  let minimum = i64.MAX_VALUE;
  let before = load<i64>(values - 8);
  for (let k: u32 = 0; k < count; k++) {
    const value = load<i64>(values + (k << 3));
    const delta = value - before;
    before = value;
    store<i64>(deltas + (k << 3), delta);
    if (delta < minimum) minimum = delta;
  }
  for (let k = count; k < blockValues; k++) store<i64>(deltas + (k << 3), minimum);
  return minimum;
}

/**
 * Encodes `count` values to `target`, which has `deltaBytesMax(count)` bytes and 64 bytes of padding. `deltas` has 1 KiB. Returns the
 * number of bytes written.
 */
export function encodeDelta(values: usize, count: u32, target: usize, deltas: usize): u32 {
  let at = writeVarint(target, blockValues);
  at = writeVarint(at, miniblocks);
  at = writeVarint(at, count);
  at = writeVarint(at, count == 0 ? 0 : zigzag(load<i64>(values)));
  for (let first: u32 = 1; first < count; first += blockValues) {
    const inBlock = min<u32>(blockValues, count - first);
    const minimum = writeDeltas(values + ((<usize>first) << 3), inBlock, deltas);
    at = writeVarint(at, zigzag(minimum));
    const widthsAt = at;
    at += miniblocks;
    for (let m: u32 = 0; m < miniblocks; m++) {
      const words = deltas + m * miniblockValues * 8;
      let ones: u64 = 0;
      for (let k: u32 = 0; k < miniblockValues; k++) {
        const rest = <u64>(load<i64>(words + (k << 3)) - minimum);
        store<u64>(words + (k << 3), rest);
        ones |= rest;
      }
      const width = 64 - <u32>clz(ones);
      store<u8>(widthsAt + m, <u8>width);
      if (width == 0) continue;
      packMiniblock(words, width, at);
      at += width << 2;
    }
  }
  return <u32>(at - target);
}

function unpackMiniblock(at: usize, width: u32, minimum: i64, count: u32, values: usize): void {
  let value = load<i64>(values - 8);
  const mask = width == 64 ? <u64>-1 : ((<u64>1) << width) - 1;
  let bit: u32 = 0;
  for (let k: u32 = 0; k < count; k++) {
    const from = at + (bit >>> 3);
    const shift = <u64>(bit & 7);
    let word = load<u64>(from) >>> shift;
    if (width > 56 && shift != 0) word |= (<u64>load<u8>(from, 8)) << (64 - shift);
    value += minimum + <i64>(word & mask);
    store<i64>(values + (k << 3), value);
    bit += width;
  }
}

/** Larger blocks are rejected, so that the bytes of a block can be counted in 32 bits. */
const blockValuesMax: u64 = (<u64>1) << 24;

/** Number of values in a miniblock of the input that is being read. */
let inMiniblock: u32 = 0;

/**
 * Unpacks the miniblocks of a block of `count` values to `values`. The widths of the miniblocks are at `at`. Returns the address after
 * them, or 0 when they are malformed.
 */
function unpackBlock(at: usize, end: usize, perBlock: u32, minimum: i64, count: u32, values: usize): usize {
  const widthsAt = at;
  at += perBlock;
  for (let m: u32 = 0, row: u32 = 0; m < perBlock && row < count; m++, row += inMiniblock) {
    const width = <u32>load<u8>(widthsAt + m);
    const packedBytes = <usize>width * (inMiniblock >>> 3);
    if (width > 64 || packedBytes > end - at) return 0;
    unpackMiniblock(at, width, minimum, min<u32>(inMiniblock, count - row), values + ((<usize>row) << 3));
    at += packedBytes;
  }
  return at;
}

/**
 * Decodes exactly `count` values from source[0, sourceBytes), which padding must follow, to `values`. Returns the number of bytes read, or
 * -1 when the input is malformed.
 */
export function decodeDelta(source: usize, sourceBytes: u32, values: usize, count: u32): i32 {
  const end = source + sourceBytes;
  let at = readVarint(source, end);
  if (at == 0 || varint == 0 || varint > blockValuesMax || (varint & 127) != 0) return -1;
  const inBlock = <u32>varint;
  at = readVarint(at, end);
  if (at == 0 || varint == 0 || varint > inBlock) return -1;
  const perBlock = <u32>varint;
  inMiniblock = inBlock / perBlock;
  if (inMiniblock * perBlock != inBlock || (inMiniblock & 31) != 0) return -1;
  at = readVarint(at, end);
  if (at == 0 || varint != count) return -1;
  at = readVarint(at, end);
  if (at == 0) return -1;
  if (count == 0) return <i32>(at - source);
  store<i64>(values, unzigzag(varint));
  for (let first: u32 = 1; first < count;) {
    at = readVarint(at, end);
    if (at == 0 || end - at < perBlock) return -1;
    const inThis = min<u32>(inBlock, count - first);
    at = unpackBlock(at, end, perBlock, unzigzag(varint), inThis, values + ((<usize>first) << 3));
    if (at == 0) return -1;
    first += inThis;
  }
  return <i32>(at - source);
}

/**
 * Writes the ends of consecutive strings of `count` lengths to `offsets`, after a first entry of 0. Returns false when the lengths don't
 * add up to `sizeBytes`.
 */
export function addLengths(lengths: usize, count: u32, sizeBytes: u32, offsets: usize): bool {
  let end: u64 = 0;
  store<u32>(offsets, 0);
  for (let row: u32 = 0; row < count; row++) {
    const length = load<u64>(lengths + ((<usize>row) << 3));
    // A negative length is a large unsigned one, and fails this check.
    if (length > sizeBytes) return false;
    end += length;
    if (end > sizeBytes) return false;
    store<u32>(offsets + ((<usize>row) << 2), <u32>end, 4);
  }
  return end == sizeBytes;
}

/**
 * The total bytes of `count` strings that share prefixes. Each consists of the first `prefixes[i]` bytes of the string before and
 * `suffixes[i]` bytes of its own; the suffixes have `suffixBytes` bytes together. Both are lists of 64-bit integers. Returns -1 when the
 * lengths contradict each other, or the total exceeds `most`.
 */
export function prefixedBytes(
  prefixes: usize,
  suffixes: usize,
  count: u32,
  suffixBytes: u32,
  most: u32,
): i64 {
  let sum: u64 = 0;
  let ownSum: u64 = 0;
  let before: u64 = 0;
  for (let row: u32 = 0; row < count; row++) {
    const shared = load<u64>(prefixes + ((<usize>row) << 3));
    const own = load<u64>(suffixes + ((<usize>row) << 3));
    // A negative length is a large unsigned one, and fails this check.
    if (shared > before || own > suffixBytes) return -1;
    ownSum += own;
    before = shared + own;
    sum += before;
    if (ownSum > suffixBytes || sum > most) return -1;
  }
  return ownSum == suffixBytes ? <i64>sum : -1;
}

/** Builds such strings at `target`, and writes the end of each to `offsets`, after its first entry. Padding must follow all buffers. */
export function joinPrefixed(
  prefixes: usize,
  suffixes: usize,
  count: u32,
  bytes: usize,
  target: usize,
  offsets: usize,
): void {
  let before = target;
  let at = target;
  for (let row: u32 = 0; row < count; row++) {
    const shared = load<u32>(prefixes + ((<usize>row) << 3));
    const own = load<u32>(suffixes + ((<usize>row) << 3));
    const begin = at;
    memory.copy(at, before, shared);
    at += shared;
    copyLoose(at, bytes, own);
    bytes += own;
    at += own;
    before = begin;
    store<u32>(offsets + ((<usize>row) << 2), <u32>(at - target), 4);
  }
}
