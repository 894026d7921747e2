// Compares the strings of a column with a needle: see ../substring.ts. ../needle.ts lays out the needle in three planes, each padded with
// zeros to a stride, which is a multiple of 16 and at least 16: its bytes in lower case; for each byte 0x20 where it is an ASCII letter
// whose case does not count, else 0; for each byte 0xff.

function strideOf(length: u32): u32 {
  return max<u32>(16, (length + 15) & ~15);
}

/** Bytes of candidates that the current search has compared. */
let comparedBytes: u32 = 0;
/**
 * A search gives up when it has compared more than `comparedBytesSlack` bytes plus `comparedBytesPerByte` per byte passed. Searching row by
 * row in linear time is then faster.
 */
const comparedBytesSlack: u32 = 65536;
const comparedBytesPerByte: u32 = 4;

/** Whether the needle occurs at `at`. Up to fifteen bytes after it are read. */
function standsAt(at: usize, needle: usize, stride: u32): bool {
  for (let k: usize = 0; k < stride; k += 16) {
    const folded = v128.or(v128.load(at + k), v128.load(needle + stride + k));
    const mask = v128.load(needle + stride + stride + k);
    if (v128.any_true(v128.and(v128.xor(folded, v128.load(needle + k)), mask))) {
      comparedBytes += <u32>k;
      return false;
    }
  }
  comparedBytes += stride;
  return true;
}

/** The row of [row, to) that contains the byte at offset `at`. Gallops from `row` on, because matches come in ascending order. */
function rowAt(offsets: usize, row: u32, to: u32, at: u32): u32 {
  let low = row;
  let step: u32 = 1;
  while (low + step < to && load<u32>(offsets + ((<usize>(low + step)) << 2)) <= at) {
    low += step;
    step <<= 1;
  }
  let high = min<u32>(low + step, to);
  while (high - low > 1) {
    const middle = (low + high) >>> 1;
    if (load<u32>(offsets + ((<usize>middle) << 2)) <= at) low = middle;
    else high = middle;
  }
  return low;
}

/** The bytes at `at` that equal `byte`. `fold` is 0x20 for letters of either case, else 0. */
function bytesLike(at: usize, byte: v128, fold: v128): v128 {
  return i8x16.eq(v128.or(v128.load(at), fold), byte);
}

/**
 * Selects the rows of [from, to) that contain the needle of `length` bytes. `first` and `second` are the indices of its two rarest bytes.
 * Returns the number of rows, or -1 when the text is so periodic that the rows should be searched one by one. Offsets are relative to
 * `bytes`; padding must follow. `from` must be a multiple of 8; the bits at `out` are overwritten.
 */
export function selectContaining(
  bytes: usize,
  offsets: usize,
  from: u32,
  to: u32,
  needle: usize,
  length: u32,
  first: u32,
  second: u32,
  out: usize,
): i32 {
  memory.fill(out + (from >>> 3), 0, ((to + 7) >>> 3) - (from >>> 3));
  const stride = strideOf(length);
  const start = load<u32>(offsets + ((<usize>from) << 2));
  const end = load<u32>(offsets + ((<usize>to) << 2));
  if (end - start < length) return 0;
  // The needle can only begin before this offset.
  const placesEnd = end - length + 1;
  const firstByte = v128.load8_splat(needle + first);
  const secondByte = v128.load8_splat(needle + second);
  const firstFold = v128.load8_splat(needle + stride + first);
  const secondFold = v128.load8_splat(needle + stride + second);
  comparedBytes = 0;
  let rows: i32 = 0;
  let row = from;
  let rowEnd = load<u32>(offsets + ((<usize>row) << 2), 4);
  let at = start;
  while (at < placesEnd) {
    const a = bytes + at + first;
    const b = bytes + at + second;
    const e0 = v128.and(bytesLike(a, firstByte, firstFold), bytesLike(b, secondByte, secondFold));
    const e1 = v128.and(bytesLike(a + 16, firstByte, firstFold), bytesLike(b + 16, secondByte, secondFold));
    const e2 = v128.and(bytesLike(a + 32, firstByte, firstFold), bytesLike(b + 32, secondByte, secondFold));
    const e3 = v128.and(bytesLike(a + 48, firstByte, firstFold), bytesLike(b + 48, secondByte, secondFold));
    let next = at + 64;
    if (!v128.any_true(v128.or(v128.or(e0, e1), v128.or(e2, e3)))) {
      at = next;
      continue;
    }
    let places =
      (<u64>((<u32>i8x16.bitmask(e0)) | ((<u32>i8x16.bitmask(e1)) << 16))) |
      ((<u64>((<u32>i8x16.bitmask(e2)) | ((<u32>i8x16.bitmask(e3)) << 16))) << 32);
    while (places != 0) {
      const place = at + <u32>ctz(places);
      if (place >= placesEnd) return rows;
      places &= places - 1;
      if (!standsAt(bytes + place, needle, stride)) continue;
      if (place >= rowEnd) {
        row = rowAt(offsets, row + 1, to, place);
        rowEnd = load<u32>(offsets + ((<usize>row) << 2), 4);
      }
      // A match that crosses the end of its row does not count.
      if (rowEnd - place < length) continue;
      const byte = out + (row >>> 3);
      store<u8>(byte, load<u8>(byte) | (<u8>((<u32>1) << (row & 7))));
      rows++;
      // One match per row is enough: skip the rest of the row.
      if (rowEnd >= next) {
        next = rowEnd;
        break;
      }
      places &= (<u64>-1) << (rowEnd - at);
    }
    if (comparedBytes > comparedBytesSlack + comparedBytesPerByte * (at - start)) return -1;
    at = next;
  }
  return rows;
}

/** Bytes of a needle's description: its address, its length, and the indices of the two bytes that a search looks for first. */
export const needleBytes: usize = 16;
/** The result of `placeIn` for text that is so periodic that searching it would take too long. */
export const unclearPlace: usize = -1;

/** The address of the first match in [from, to); 0 where there is none, or `unclearPlace`. Up to 64 bytes after `to` are read. */
export function placeIn(from: usize, to: usize, needle: usize, length: u32, first: u32, second: u32): usize {
  if (to - from < <usize>length) return 0;
  const stride = strideOf(length);
  const placesEnd = to - length + 1;
  const firstByte = v128.load8_splat(needle + first);
  const secondByte = v128.load8_splat(needle + second);
  const firstFold = v128.load8_splat(needle + stride + first);
  const secondFold = v128.load8_splat(needle + stride + second);
  comparedBytes = 0;
  for (let at = from; at < placesEnd; at += 64) {
    const a = at + first;
    const b = at + second;
    const e0 = v128.and(bytesLike(a, firstByte, firstFold), bytesLike(b, secondByte, secondFold));
    const e1 = v128.and(bytesLike(a + 16, firstByte, firstFold), bytesLike(b + 16, secondByte, secondFold));
    const e2 = v128.and(bytesLike(a + 32, firstByte, firstFold), bytesLike(b + 32, secondByte, secondFold));
    const e3 = v128.and(bytesLike(a + 48, firstByte, firstFold), bytesLike(b + 48, secondByte, secondFold));
    if (!v128.any_true(v128.or(v128.or(e0, e1), v128.or(e2, e3)))) continue;
    let places =
      (<u64>((<u32>i8x16.bitmask(e0)) | ((<u32>i8x16.bitmask(e1)) << 16))) |
      ((<u64>((<u32>i8x16.bitmask(e2)) | ((<u32>i8x16.bitmask(e3)) << 16))) << 32);
    for (; places != 0; places &= places - 1) {
      const place = at + <usize>ctz(places);
      if (place >= placesEnd) return 0;
      if (standsAt(place, needle, stride)) return place;
    }
    if (comparedBytes > comparedBytesSlack + comparedBytesPerByte * <u32>(at - from)) return unclearPlace;
  }
  return 0;
}

/** Whether the needle occurs in [from, to). Also true where ruling it out would take too long. */
export function mayHold(from: usize, to: usize, needle: usize, length: u32, first: u32, second: u32): bool {
  return placeIn(from, to, needle, length, first, second) != 0;
}

/** The `kind` of `selectAffix` that selects rows that end with the needle. */
const atEnd: u32 = 1;

/**
 * Selects the rows of [from, to) that begin with the needle (`kind` 0) or end with it (`kind` 1). Offsets are relative to `bytes`; padding
 * must follow. `from` must be a multiple of 8; the bits of the rows at `out` are overwritten.
 */
export function selectAffix(
  bytes: usize,
  offsets: usize,
  from: u32,
  to: u32,
  needle: usize,
  length: u32,
  kind: u32,
  out: usize,
): void {
  const stride = strideOf(length);
  const firstBytes = v128.load(needle);
  const firstFolds = v128.load(needle + stride);
  const firstMask = v128.load(needle + stride + stride);
  out += from >>> 3;
  let start = load<u32>(offsets + ((<usize>from) << 2));
  for (let row = from; row < to; row += 8) {
    const rows = min<u32>(8, to - row);
    let bits: u32 = 0;
    for (let k: u32 = 0; k < rows; k++) {
      const end = load<u32>(offsets + ((<usize>(row + k)) << 2), 4);
      const rowBytes = end - start;
      const isLength = rowBytes >= length;
      // A row that is too short is compared too, with bytes that follow it. The result is ignored; this is faster than a branch.
      const at = bytes + (kind == atEnd && isLength ? end - length : start);
      const difference = v128.and(v128.xor(v128.or(v128.load(at), firstFolds), firstBytes), firstMask);
      let isHit = isLength && !v128.any_true(difference);
      if (isHit && stride > 16) isHit = standsAt(at, needle, stride);
      bits |= (<u32>isHit) << k;
      start = end;
    }
    store<u8>(out++, <u8>bits);
  }
}

/** One bit for each of the eight rows whose offsets are at `at`: whether its length is `length`. */
function rowsOfLength(at: usize, length: v128): u32 {
  const low = i32x4.sub(v128.load(at, 4), v128.load(at));
  const high = i32x4.sub(v128.load(at, 20), v128.load(at, 16));
  return (<u32>i32x4.bitmask(i32x4.eq(low, length))) | ((<u32>i32x4.bitmask(i32x4.eq(high, length))) << 4);
}

/**
 * Selects the rows of [from, to) that equal the needle of `length` bytes, byte for byte. Returns their number. Offsets are relative to
 * `bytes`; padding must follow both. `from` must be a multiple of 8; the bits of the rows at `out` are overwritten.
 */
export function selectEqual(
  bytes: usize,
  offsets: usize,
  from: u32,
  to: u32,
  needle: usize,
  length: u32,
  out: usize,
): i32 {
  const stride = strideOf(length);
  const lengths = i32x4.splat(length);
  // Most strings of equal length differ in their last bytes: addresses and paths begin alike.
  const lastAt: u32 = length > 8 ? length - 8 : 0;
  const lastBits = length >= 8 ? <u64>-1 : ((<u64>1) << (length << 3)) - 1;
  const last = load<u64>(needle + lastAt);
  let rows: i32 = 0;
  out += from >>> 3;
  for (let row = from; row < to; row += 8) {
    const at = offsets + ((<usize>row) << 2);
    let candidates = rowsOfLength(at, lengths);
    if (to - row < 8) candidates &= ((<u32>1) << (to - row)) - 1;
    let bits: u32 = 0;
    while (candidates != 0) {
      const k = <u32>ctz(candidates);
      candidates &= candidates - 1;
      const start = bytes + load<u32>(at + (k << 2));
      if (((load<u64>(start + lastAt) ^ last) & lastBits) != 0) continue;
      if (length > 8 && !standsAt(start, needle, stride)) continue;
      bits |= (<u32>1) << k;
      rows++;
    }
    store<u8>(out++, <u8>bits);
  }
  return rows;
}
