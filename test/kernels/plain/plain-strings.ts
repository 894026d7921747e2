/**
 * Strings in Parquet's PLAIN encoding (https://parquet.apache.org/docs/file-format/data-pages/encodings/#PLAIN): each after its length, 4
 * bytes little-endian. Row r is bytes[offsets[r], offsets[r + 1]).
 */
import { copyBytes } from '../../../engine/core/utf8.js';

/** Writes the first `rows` strings to `target`, which has room. Returns the bytes written. */
export function encodePlainStrings(
  bytes: Uint8Array,
  offsets: Uint32Array,
  rows: number,
  target: Uint8Array,
): number {
  let at = 0;
  for (let row = 0; row < rows; row++) {
    const start = offsets[row]!;
    const end = offsets[row + 1]!;
    const length = end - start;
    target[at] = length & 255;
    target[at + 1] = (length >>> 8) & 255;
    target[at + 2] = (length >>> 16) & 255;
    target[at + 3] = length >>> 24;
    copyBytes(bytes, start, end, target, at + 4);
    at += 4 + length;
  }
  return at;
}

/** Up to this many bytes, a loop copies faster than a call of `set` on a fresh view. */
const copyLoopBytesMax = 64;

/**
 * Reads the `count` strings of `source` into `bytes`, which has room for `source.length - 4 * count`, and `offsets`. Returns the number of
 * bytes of the strings, or -1 if the input is malformed.
 */
export function decodePlainStrings(
  source: Uint8Array,
  count: number,
  bytes: Uint8Array,
  offsets: Uint32Array,
): number {
  const end = source.length;
  const view = new DataView(source.buffer, source.byteOffset, end);
  const bytesMax = end - 4 * count;
  let from = 0;
  let at = 0;
  offsets[0] = 0;
  for (let row = 0; row < count; row++) {
    if (end - from < 4) return -1;
    const length = view.getUint32(from, true);
    from += 4;
    if (length > end - from || length > bytesMax - at) return -1;
    if (length > copyLoopBytesMax) bytes.set(source.subarray(from, from + length), at);
    else for (let k = 0; k < length; k++) bytes[at + k] = source[from + k]!;
    from += length;
    at += length;
    offsets[row + 1] = at;
  }
  return from === end ? at : -1;
}
