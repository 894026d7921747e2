// Dictionary codes in Parquet's RLE/bit-packing hybrid: see ../bit-packing.ts.
import { readVarint, varint } from './varint';

/**
 * Packs `count` codes of `codeBytes` bytes each (1 or 2) with `width` bits each (1 to 16), and pads with zeros to a multiple of eight
 * codes. Up to eight bytes of padding after the target are written. Returns the number of bytes of the packed codes.
 */
export function packCodes(codes: usize, codeBytes: u32, count: u32, width: u32, target: usize): u32 {
  const bytes = ((count + 7) >>> 3) * width;
  if (width == 8 && codeBytes == 1) {
    memory.copy(target, codes, count);
    memory.fill(target + count, 0, bytes - count);
    return bytes;
  }
  let pending: u64 = 0;
  let bits: u32 = 0;
  let at = target;
  for (let i: u32 = 0; i < count; i++) {
    const code = codeBytes == 1 ? <u64>load<u8>(codes + i) : <u64>load<u16>(codes + ((<usize>i) << 1));
    pending |= code << bits;
    bits += width;
    if (bits >= 32) {
      store<u32>(at, <u32>pending);
      at += 4;
      pending >>= 32;
      bits -= 32;
    }
  }
  for (const end = target + bytes; at < end; at++) {
    store<u8>(at, <u8>pending);
    pending >>= 8;
  }
  return bytes;
}

/** For each code of a group of eight: the source bytes that contain it, and the factor that shifts its lowest bit to bit 7. */
function fillWindows(width: u32, laneBytes: u32, windows: usize): void {
  for (let k: u32 = 0; k < 8; k++) {
    const bit = k * width;
    const lane = windows + k * laneBytes;
    for (let j: u32 = 0; j < laneBytes; j++) store<u8>(lane + j, <u8>((bit >>> 3) + j));
    const factor = (<u32>1) << (7 - (bit & 7));
    if (laneBytes == 2) store<u16>(lane + 32, <u16>factor);
    else store<u32>(lane + 32, factor);
  }
}

/** Unpacks four codes. The multiplication shifts each to bit 7 of its 32-bit lane; then they are shifted down and masked. */
function lanes(group: v128, bytes: v128, factors: v128, mask: v128): v128 {
  return v128.and(i32x4.shr_u(i32x4.mul(i8x16.swizzle(group, bytes), factors), 7), mask);
}

/**
 * Unpacks `count` codes of `width` bits (1 to 8) to bytes. Up to 32 bytes of padding after the source are read and after the target
 * written. `windows` has 64 bytes.
 */
function unpackCodes8(source: usize, count: u32, width: u32, target: usize, windows: usize): void {
  fillWindows(width, 2, windows);
  const first = v128.load(windows);
  const second = i8x16.add(first, i8x16.splat(<i8>width));
  const factors = v128.load(windows, 32);
  const mask = i16x8.splat(<i16>(((<u32>1) << width) - 1));
  for (let i: u32 = 0; i < count; i += 16) {
    const group = v128.load(source);
    const low = v128.and(i16x8.shr_u(i16x8.mul(i8x16.swizzle(group, first), factors), 7), mask);
    const high = v128.and(i16x8.shr_u(i16x8.mul(i8x16.swizzle(group, second), factors), 7), mask);
    v128.store(target, i8x16.narrow_i16x8_u(low, high));
    source += width << 1;
    target += 16;
  }
}

/** Like `unpackCodes8`, for widths of 1 to 16 bits and 16-bit codes. */
function unpackCodes16(source: usize, count: u32, width: u32, target: usize, windows: usize): void {
  fillWindows(width, 4, windows);
  const first = v128.load(windows);
  const second = v128.load(windows, 16);
  const firstFactors = v128.load(windows, 32);
  const secondFactors = v128.load(windows, 48);
  const mask = i32x4.splat((1 << width) - 1);
  for (let i: u32 = 0; i < count; i += 8) {
    const group = v128.load(source);
    const codes = i16x8.narrow_i32x4_u(
      lanes(group, first, firstFactors, mask),
      lanes(group, second, secondFactors, mask),
    );
    v128.store(target, codes);
    source += width;
    target += 16;
  }
}

/** The largest of `count` codes of `codeBytes` bytes each (1 or 2); 0 when there are none. */
export function largestCode(codes: usize, codeBytes: u32, count: u32): u32 {
  const end = codes + <usize>count * codeBytes;
  let largest = i8x16.splat(0);
  let rest: u32 = 0;
  if (codeBytes == 1) {
    for (; codes + 16 <= end; codes += 16) largest = i8x16.max_u(largest, v128.load(codes));
    for (; codes < end; codes++) rest = max<u32>(rest, load<u8>(codes));
    // The maxima of the even and of the odd bytes, as 16-bit lanes.
    largest = i16x8.max_u(v128.and(largest, i16x8.splat(255)), i16x8.shr_u(largest, 8));
  } else {
    for (; codes + 16 <= end; codes += 16) largest = i16x8.max_u(largest, v128.load(codes));
    for (; codes < end; codes += 2) rest = max<u32>(rest, load<u16>(codes));
  }
  // Combine the halves of the vector until the first two lanes have the maximum of all.
  largest = i16x8.max_u(
    largest,
    i8x16.shuffle(largest, largest, 8, 9, 10, 11, 12, 13, 14, 15, 0, 1, 2, 3, 4, 5, 6, 7),
  );
  largest = i16x8.max_u(
    largest,
    i8x16.shuffle(largest, largest, 4, 5, 6, 7, 0, 1, 2, 3, 4, 5, 6, 7, 0, 1, 2, 3),
  );
  return max<u32>(rest, max<u32>(i16x8.extract_lane_u(largest, 0), i16x8.extract_lane_u(largest, 1)));
}

/** Unpacks `count` codes of `width` bits (0 to 32) to codes of `codeBytes` bytes (1, 2 or 4). Padding after the source is read. */
function unpackFew(source: usize, count: u32, width: u32, target: usize, codeBytes: u32): void {
  const mask = ((<u64>1) << width) - 1;
  let bit: usize = 0;
  for (const end = target + <usize>count * codeBytes; target < end; target += codeBytes) {
    const code = <u32>((load<u64>(source + (bit >>> 3)) >>> (bit & 7)) & mask);
    if (codeBytes == 1) store<u8>(target, <u8>code);
    else if (codeBytes == 2) store<u16>(target, <u16>code);
    else store<u32>(target, code);
    bit += width;
  }
}

function fillCodes(target: usize, count: u32, code: u32, codeBytes: u32): void {
  if (codeBytes == 1) memory.fill(target, <u8>code, count);
  else if (codeBytes == 2) {
    for (const end = target + ((<usize>count) << 1); target < end; target += 2) store<u16>(target, <u16>code);
  } else {
    for (const end = target + ((<usize>count) << 2); target < end; target += 4) store<u32>(target, code);
  }
}

/** For fewer codes it is faster to unpack them one by one. */
const vectorCodesMin: u32 = 32;

/**
 * Decodes `count` codes of `width` bits, which must fit in `codeBytes` bytes (1, 2 or 4), from the hybrid of RLE runs and packed codes in
 * source[0, sourceBytes). Padding must follow both sides; `windows` has 64 bytes. Ignores what a run has beyond the last code. Returns the
 * number of bytes read, or -1 when the input is malformed.
 */
export function decodeHybrid(
  source: usize,
  sourceBytes: u32,
  count: u32,
  width: u32,
  target: usize,
  codeBytes: u32,
  windows: usize,
): i32 {
  const end = source + sourceBytes;
  const valueBytes: usize = (width + 7) >>> 3;
  const mask = <u32>(((<u64>1) << width) - 1);
  let at = source;
  let done: u32 = 0;
  while (done < count) {
    at = readVarint(at, end);
    if (at == 0 || varint < 2 || varint > u32.MAX_VALUE) return -1;
    const length = (<u32>varint) >>> 1;
    const to = target + <usize>done * codeBytes;
    const rest = count - done;
    if ((varint & 1) == 0) {
      if (valueBytes > end - at) return -1;
      // With a width of 0, a run has no value bytes; the mask is then 0.
      const code = load<u32>(at) & (<u32>(((<u64>1) << (valueBytes << 3)) - 1));
      if (code > mask) return -1;
      const repeated = min<u32>(length, rest);
      fillCodes(to, repeated, code, codeBytes);
      at += valueBytes;
      done += repeated;
      continue;
    }
    const packed = length > rest >>> 3 ? rest : length << 3;
    // Some writers leave out the bytes that only pad the last group of eight codes.
    if ((<u64>packed * width + 7) >>> 3 > <u64>(end - at)) return -1;
    if (packed < vectorCodesMin || width == 0 || codeBytes == 4) unpackFew(at, packed, width, to, codeBytes);
    else if (codeBytes == 1) unpackCodes8(at, packed, width, to, windows);
    else unpackCodes16(at, packed, width, to, windows);
    at += <usize>min<u64>(<u64>length * width, <u64>(end - at));
    done += packed;
  }
  return <i32>(at - source);
}

/** Like `largestCode`, for codes of four bytes. */
export function largestCode32(codes: usize, count: u32): u32 {
  let largest: u32 = 0;
  for (const end = codes + ((<usize>count) << 2); codes < end; codes += 4)
    largest = max<u32>(largest, load<u32>(codes));
  return largest;
}
