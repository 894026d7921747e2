// Parquet's PLAIN strings: each behind its length, 4 bytes little-endian.
import { copyLoose } from './copy';

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
