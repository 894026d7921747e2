// Strings in Parquet's PLAIN encoding: the length of each in 4 bytes, little-endian, followed by its bytes. See ../plain-strings.ts.
import { copyLoose } from './copy';
import { needleBytes, placeIn, unclearPlace } from './substring';

/**
 * Writes the strings of `rows` rows. Offsets are relative to `bytes`; padding must follow both buffers. Returns the number of bytes
 * written.
 */
export function encodePlain(bytes: usize, offsets: usize, rows: u32, target: usize): u32 {
  let at = target;
  let start = load<u32>(offsets);
  for (let row: u32 = 0; row < rows; row++) {
    const end = load<u32>(offsets + ((<usize>row) << 2), 4);
    const length = end - start;
    store<u32>(at, length);
    copyLoose(at + 4, bytes + start, length);
    at += 4 + length;
    start = end;
  }
  return <u32>(at - target);
}

/**
 * Decodes exactly `count` strings from source[0, sourceBytes): their bytes to `bytes`, and their ends to `offsets`, after a first entry of
 * 0. Padding must follow all buffers. Returns the number of bytes of the strings, or -1 when the input is malformed.
 */
export function decodePlain(source: usize, sourceBytes: u32, count: u32, bytes: usize, offsets: usize): i32 {
  if (<u64>sourceBytes < (<u64>count) << 2) return -1;
  // The bytes of the strings of a well-formed page: malformed input must not make the kernel write more.
  const bytesMax = sourceBytes - (count << 2);
  let rest = sourceBytes;
  let at: u32 = 0;
  store<u32>(offsets, 0);
  for (let row: u32 = 0; row < count; row++) {
    if (rest < 4) return -1;
    const length = load<u32>(source);
    rest -= 4;
    if (length > rest || length > bytesMax - at) return -1;
    copyLoose(bytes + at, source + 4, length);
    source += 4 + <usize>length;
    rest -= length;
    at += length;
    store<u32>(offsets + ((<usize>row) << 2), at, 4);
  }
  return rest == 0 ? <i32>at : -1;
}

/** Strings are checked and searched in pieces that stay in the nearest cache. */
const pieceBytes: usize = 32768;
/** Bytes of the length before each string. */
const lengthBytes: usize = 4;

/** The end of the string whose length is at `at`. */
function endOf(at: usize): usize {
  return at + lengthBytes + <usize>load<u32>(at);
}

/** Whether the needle occurs in one of the encoded strings in [from, to). Also true where ruling it out would take too long. */
function standsInString(from: usize, to: usize, needle: usize): bool {
  const length = load<u32>(needle, 4);
  let start = from;
  let at = from;
  while (start < to) {
    const place = placeIn(at, to, load<u32>(needle), length, load<u32>(needle, 8), load<u32>(needle, 12));
    if (place == 0) return false;
    if (place == unclearPlace) return true;
    let end = endOf(start);
    while (end <= place) {
      start = end;
      end = endOf(end);
    }
    const isInString = place >= start + lengthBytes;
    if (isInString && place + length <= end) return true;
    // The match includes bytes of a length, or of two strings. Continue at the next string that is at least as long as the needle.
    if (isInString) start = end;
    while (start < to && load<u32>(start) < length) start = endOf(start);
    at = start + lengthBytes;
  }
  return false;
}

/**
 * Searches the `count` strings that source[0, sourceBytes) consists of for needles; padding must follow. Returns 1 when one occurs in a
 * string or ruling it out would take too long, 0 when none occurs, and -1 when the input is malformed and no needle was found before the
 * malformed part.
 */
export function searchPlain(
  source: usize,
  sourceBytes: u32,
  count: u32,
  needles: usize,
  needleCount: u32,
): i32 {
  const end = source + sourceBytes;
  let at = source;
  let row: u32 = 0;
  while (row < count) {
    const from = at;
    while (row < count && at - from < pieceBytes) {
      if (end - at < lengthBytes) return -1;
      const rest = end - at - lengthBytes;
      if (<usize>load<u32>(at) > rest) return -1;
      at = endOf(at);
      row++;
    }
    for (let k: u32 = 0; k < needleCount; k++) {
      if (standsInString(from, at, needles + <usize>k * needleBytes)) return 1;
    }
  }
  return at == end ? 0 : -1;
}
