// Hashed bitmaps of the n-grams of strings: see ../grams.ts.

const lastPrime: u32 = 0x9e3779b1;
const olderPrime: u32 = 0x85ebca6b;
const finalPrime: u32 = 0xc2b2ae35;
/** 32 minus the number of index bits of a trigram bitmap. As a constant it saves three instructions per use. */
const trigramShift = 16;

/** Copies bytes with ASCII letters in lower case, in steps of 16. Padding must follow both sides. */
export function foldAscii(source: usize, length: usize, target: usize): void {
  const firstLetter = i8x16.splat(0x41);
  const letters = i8x16.splat(26);
  const caseBit = i8x16.splat(0x20);
  for (let k: usize = 0; k < length; k += 16) {
    const bytes = v128.load(source + k);
    const isUpper = i8x16.lt_u(i8x16.sub(bytes, firstLetter), letters);
    v128.store(target + k, v128.or(bytes, v128.and(isUpper, caseBit)));
  }
}

/** Whether all bytes of [at, at + length) are ASCII. Padding must follow. */
export function isAscii(at: usize, length: usize): bool {
  let seen = i8x16.splat(0);
  const whole = length & ~15;
  for (let k: usize = 0; k < whole; k += 16) seen = v128.or(seen, v128.load(at + k));
  const rest = (<u32>length) & 15;
  const tail = ((<u32>1) << rest) - 1;
  return ((<u32>i8x16.bitmask(v128.load(at + whole))) & tail) == 0 && i8x16.bitmask(seen) == 0;
}

/** Length in bytes of the UTF-8 character that begins with `first`, which is not ASCII. */
function lengthOf(first: u32): u32 {
  return first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
}

/** The code point of the UTF-8 character of `length` bytes at `at`. */
function pointAt(at: usize, length: u32): u32 {
  const first = <u32>load<u8>(at);
  const second = (<u32>load<u8>(at, 1)) & 0x3f;
  if (length == 2) return ((first & 0x1f) << 6) | second;
  const third = (<u32>load<u8>(at, 2)) & 0x3f;
  if (length == 3) return ((first & 0x0f) << 12) | (second << 6) | third;
  return ((first & 0x07) << 18) | (second << 12) | (third << 6) | ((<u32>load<u8>(at, 3)) & 0x3f);
}

/** Writes a code point from U+0080 on in UTF-8. */
function encodePoint(point: u32, length: u32, at: usize): void {
  const last = 0x80 | (point & 0x3f);
  if (length == 2) {
    store<u8>(at, <u8>(0xc0 | (point >> 6)));
    store<u8>(at, <u8>last, 1);
    return;
  }
  const last2 = 0x80 | ((point >> 6) & 0x3f);
  if (length == 3) {
    store<u8>(at, <u8>(0xe0 | (point >> 12)));
    store<u8>(at, <u8>last2, 1);
    store<u8>(at, <u8>last, 2);
    return;
  }
  store<u8>(at, <u8>(0xf0 | (point >> 18)));
  store<u8>(at, <u8>(0x80 | ((point >> 12) & 0x3f)), 1);
  store<u8>(at, <u8>last2, 2);
  store<u8>(at, <u8>last, 3);
}

/**
 * Copies UTF-8 and folds all characters except ASCII in place. A code point from `pointEnd` on does not fold. pageOf[point / 64] is the
 * number of a page of 64 words at `folded`, which has the folded form of the code point; page 0 stands for code points that do not fold.
 * Returns false where folding would change the length of a character. Padding must follow both texts.
 */
export function foldBeyondAscii(
  source: usize,
  length: usize,
  target: usize,
  pageOf: usize,
  folded: usize,
  pointEnd: u32,
): bool {
  const end = source + length;
  const shift = target - source;
  let at = source;
  while (at < end) {
    const bytes = v128.load(at);
    v128.store(at + shift, bytes);
    const high = i8x16.bitmask(bytes);
    at += high == 0 ? 16 : <usize>ctz(high);
    while (at < end && load<u8>(at) >= 0x80) {
      const pointBytes = lengthOf(<u32>load<u8>(at));
      // An incomplete character at the end, as any character that does not fold, is copied unchanged.
      store<u32>(at + shift, load<u32>(at));
      if (at + pointBytes > end) return true;
      const point = pointAt(at, pointBytes);
      const page = point < pointEnd ? <usize>load<u8>(pageOf + (point >> 6)) : 0;
      if (page != 0) {
        const form = load<u32>(folded + (page << 8) + ((point & 63) << 2));
        if (form != point) {
          const formBytes: u32 = form < 0x80 ? 1 : form < 0x800 ? 2 : form < 0x10000 ? 3 : 4;
          if (formBytes != pointBytes) return false;
          encodePoint(form, pointBytes, at + shift);
        }
      }
      at += pointBytes;
    }
  }
  return true;
}

function setBit(bitmap: usize, bit: u32): void {
  const word = bitmap + ((<usize>(bit >>> 5)) << 2);
  store<u32>(word, load<u32>(word) | ((<u32>1) << (bit & 31)));
}

/** Sets the bits of a byte that are set in the lowest byte of `ones`. */
function setBits(at: usize, ones: u32): void {
  store<u8>(at, <u8>(load<u8>(at) | ones));
}

/**
 * Sets four bits. `bits` has their indices; `bitmaps` has the bitmap's address in each lane. The addresses of the bytes are extracted from
 * vectors two at a time, and the masks of all four bits in one word.
 */
function setFour(bitmaps: v128, bits: v128): void {
  const places = i32x4.add(bitmaps, i32x4.shr_u(bits, 3));
  const first = i64x2.extract_lane(places, 0);
  const second = i64x2.extract_lane(places, 1);
  const inByte = v128.and(bits, i32x4.splat(7));
  const lowest = i8x16.shuffle(inByte, inByte, 0, 4, 8, 12, 0, 4, 8, 12, 0, 4, 8, 12, 0, 4, 8, 12);
  const oneOf = i8x16(1, 2, 4, 8, 16, 32, 64, -128, 0, 0, 0, 0, 0, 0, 0, 0);
  const ones = i32x4.extract_lane(i8x16.swizzle(oneOf, lowest), 0);
  setBits(<usize>(<u32>first), ones);
  setBits(<usize>(first >>> 32), ones >>> 8);
  setBits(<usize>(<u32>second), ones >>> 16);
  setBits(<usize>(second >>> 32), ones >>> 24);
}

/**
 * Marks two trigrams, given by their addresses, in a map with one byte per bit of their bitmap. A store is cheaper than reading and
 * changing a bit.
 */
function markPair(pair: u64): void {
  store<u8>(<usize>(<u32>pair), 0xff);
  store<u8>(<usize>(pair >>> 32), 0xff);
}

function addOne(at: usize, gramBytes: u32, gramShift: i32, grams: usize, trigramMap: usize): void {
  const older = gramBytes == 6 ? <u32>load<u16>(at) : gramBytes == 5 ? <u32>load<u8>(at) : 0;
  const last = load<u32>(at + gramBytes - 4);
  const mixed = (last * lastPrime) ^ (older * olderPrime);
  setBit(grams, ((mixed ^ (mixed >>> 15)) * finalPrime) >>> gramShift);
  store<u8>(trigramMap + (((last >>> 8) * lastPrime) >>> trigramShift), 0xff);
}

/** For four neighbouring n-grams: the offsets of the bytes before the last four of each. −1 selects a zero. */
function olderBytes(gramBytes: u32): v128 {
  const none = i8x16.splat(-1);
  if (gramBytes == 6) return i8x16(0, 1, -1, -1, 1, 2, -1, -1, 2, 3, -1, -1, 3, 4, -1, -1);
  return gramBytes == 5 ? i8x16(0, -1, -1, -1, 1, -1, -1, -1, 2, -1, -1, -1, 3, -1, -1, -1) : none;
}

/**
 * Sets the bits of all n-grams of `gramBytes` bytes (4 to 6) in the strings of `rows` rows, and marks all trigrams in `trigramMap`, which
 * has one byte per bit of their bitmap. Offsets are relative to `bytes`. The strings must be in lower case, and padding must follow them.
 * `gramShift` is 32 minus the number of index bits of the bitmap.
 */
export function addGrams(
  bytes: usize,
  offsets: usize,
  rows: u32,
  gramBytes: u32,
  gramShift: u32,
  grams: usize,
  trigramMap: usize,
): void {
  const olderAt = olderBytes(gramBytes);
  const lastFactor = i32x4.splat(lastPrime);
  const olderFactor = i32x4.splat(olderPrime);
  const finalFactor = i32x4.splat(finalPrime);
  const bitmaps = i32x4.splat(<u32>grams);
  const maps = i32x4.splat(<u32>trigramMap);
  let start = bytes + load<u32>(offsets);
  for (let row: u32 = 0; row < rows; row++) {
    const end = bytes + load<u32>(offsets + ((<usize>row) << 2), 4);
    const length = <u32>(end - start);
    // The trigrams that end before the first n-gram does.
    for (let k: u32 = 0; k + 4 <= gramBytes && k + 3 <= length; k++) {
      const trigram = load<u32>(start + k) & 0xffffff;
      store<u8>(trigramMap + ((trigram * lastPrime) >>> trigramShift), 0xff);
    }
    if (length >= gramBytes + 3) {
      const lastFour = end - gramBytes - 3;
      let at = start;
      while (true) {
        // `last` of the first n-gram is the four bytes after its first `gramBytes` - 4 bytes.
        const text = v128.load(at + gramBytes - 4);
        const last = i8x16.shuffle(text, text, 0, 1, 2, 3, 1, 2, 3, 4, 2, 3, 4, 5, 3, 4, 5, 6);
        const older = i8x16.swizzle(v128.load(at), olderAt);
        const trigrams = i32x4.shr_u(i32x4.mul(i32x4.shr_u(last, 8), lastFactor), trigramShift);
        const marks = i32x4.add(maps, trigrams);
        markPair(i64x2.extract_lane(marks, 0));
        markPair(i64x2.extract_lane(marks, 1));
        let mixed = v128.xor(i32x4.mul(last, lastFactor), i32x4.mul(older, olderFactor));
        mixed = v128.xor(mixed, i32x4.shr_u(mixed, 15));
        const bits = i32x4.shr_u(i32x4.mul(mixed, finalFactor), gramShift);
        setFour(bitmaps, bits);
        if (at == lastFour) break;
        // The last four n-grams may overlap those before. Setting a bit twice does no harm.
        at = min<usize>(at + 4, lastFour);
      }
    } else {
      for (let at = start; at + gramBytes <= end; at++) {
        addOne(at, gramBytes, gramShift, grams, trigramMap);
      }
    }
    start = end;
  }
}

/** Adds a map with one byte per bit (0 or 255) to a bitmap of 2^bits bits, at least 16. */
export function addMap(map: usize, bits: u32, bitmap: usize): void {
  const end = (<usize>1) << bits;
  for (let bit: usize = 0; bit < end; bit += 16) {
    const at = bitmap + (bit >>> 3);
    store<u16>(at, load<u16>(at) | (<u16>i8x16.bitmask(v128.load(map + bit))));
  }
}

/**
 * Writes a bitmap of `eighths` eighths of the size (5 to 7). Each byte of the whole bitmap becomes `eighths` bits: those that the 256-byte
 * `table` has for it. `sizeBytes` is the size of the whole bitmap, a multiple of 8. Padding must follow the output.
 */
export function squeezeBitmap(
  bitmap: usize,
  sizeBytes: u32,
  eighths: u32,
  table: usize,
  squeezed: usize,
): void {
  let at = squeezed;
  for (let k: usize = 0; k < <usize>sizeBytes; k += 8) {
    const bytes = load<u64>(bitmap + k);
    let bits: u64 = 0;
    for (let i: u32 = 0; i < 8; i++) {
      const byte = <usize>((bytes >>> (8 * i)) & 255);
      bits |= (<u64>load<u8>(table + byte)) << (eighths * i);
    }
    store<u64>(at, bits);
    at += eighths;
  }
}

/**
 * Writes the bitmap of half the size: each bit is the OR of two neighbours. `sizeBytes` is the size of the whole bitmap, a multiple of 16.
 * Returns the number of set bits in the half.
 */
export function halveBitmap(bitmap: usize, sizeBytes: u32, half: usize): u32 {
  const evenBits = i8x16.splat(0x55);
  const evenPairs = i8x16.splat(0x33);
  const lowNibbles = i8x16.splat(0x0f);
  const lowBytes = i16x8.splat(0x00ff);
  let ones: u64 = 0;
  for (let k: usize = 0; k < <usize>sizeBytes; k += 16) {
    let bits = v128.load(bitmap + k);
    bits = v128.and(v128.or(bits, i16x8.shr_u(bits, 1)), evenBits);
    bits = v128.and(v128.or(bits, i16x8.shr_u(bits, 1)), evenPairs);
    bits = v128.and(v128.or(bits, i16x8.shr_u(bits, 2)), lowNibbles);
    bits = v128.and(v128.or(bits, i16x8.shr_u(bits, 4)), lowBytes);
    const word = i64x2.extract_lane(i8x16.narrow_i16x8_u(bits, bits), 0);
    store<u64>(half + (k >>> 1), word);
    ones += popcnt<u64>(word);
  }
  return <u32>ones;
}
