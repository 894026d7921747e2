// Parquet's PLAIN strings: each behind its length, 4 bytes little-endian.
import { copyLoose } from './copy';
import { needleBytes, placeIn, unclearPlace } from './substring';

/** Writes the strings of `rows` rows, whose offsets are relative to `bytes`; slack follows both. Returns the bytes written. */
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
 * Reads exactly `count` strings from source[0, sourceBytes): their bytes go to `bytes`, where they end to `offsets` from
 * its second entry on. Slack follows all of them. Returns the bytes of the strings, or -1 when the input is malformed.
 */
export function decodePlain(source: usize, sourceBytes: u32, count: u32, bytes: usize, offsets: usize): i32 {
  if (<u64>sourceBytes < (<u64>count) << 2) return -1;
  // No more is written than the strings of a well-formed page have.
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
/** Bytes before each string. */
const lengthBytes: usize = 4;

/** Where the string that begins at `at`, with its length, ends. */
function endOf(at: usize): usize {
  return at + lengthBytes + <usize>load<u32>(at);
}

/** Whether the needle stands in one of the strings that [from, to) consists of; true also where that is unclear. */
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
    // What was found has bytes of a length, or of two strings. Where a string is as long as the needle, the search goes on.
    if (isInString) start = end;
    while (start < to && load<u32>(start) < length) start = endOf(start);
    at = start + lengthBytes;
  }
  return false;
}

/**
 * Looks for needles in the `count` strings that source[0, sourceBytes) consists of; slack follows. Returns 1 when one of them stands in a
 * string, or that is unclear, 0 when none does, and -1 when the input is malformed and none was found before that shows.
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
