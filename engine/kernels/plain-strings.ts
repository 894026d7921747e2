/**
 * Strings in Parquet's PLAIN encoding (https://parquet.apache.org/docs/file-format/data-pages/encodings/#PLAIN): the length of each in 4
 * bytes, little-endian, followed by its bytes. In memory, row r is bytes[offsets[r], offsets[r + 1]).
 */
import { openScratch, scratchBytes } from '../core/scratch.js';
import { verdictOf, type BlockVerdict } from './block-search.js';
import { kernelsOver } from './kernels.js';
import { layOutNeedles, needlesBytes, type KernelNeedle } from './needle.js';

/** Writes the first `rows` strings to `target`, which must have room. Returns the number of bytes written. */
export function encodePlainStrings(
  bytes: Uint8Array,
  offsets: Uint32Array,
  rows: number,
  target: Uint8Array,
): number {
  const start = offsets[0]!;
  const end = offsets[rows]!;
  const writtenBytes = end - start + rows * 4;
  const scratch = openScratch(
    scratchBytes(bytes, end - start) + scratchBytes(offsets, rows + 1) + scratchBytes(target, writtenBytes),
  );
  const offsetsAt = scratch.place(offsets, 0, rows + 1);
  const bytesAt = scratch.place(bytes, start, end) - start;
  const targetAt = scratch.target(target, 0, writtenBytes);
  const written = kernelsOver(scratch).encodePlain(bytesAt, offsetsAt, rows, targetAt);
  scratch.copyOut(targetAt, target, 0, written);
  return written;
}

/**
 * Decodes `source`, which consists of `count` strings, into `bytes` and `offsets`. `bytes` needs room for `source.length - 4 * count`
 * bytes. Returns the number of bytes of the strings, or -1 when the input is malformed.
 */
export function decodePlainStrings(
  source: Uint8Array,
  count: number,
  bytes: Uint8Array,
  offsets: Uint32Array,
): number {
  const bytesMax = Math.max(0, source.length - count * 4);
  const scratch = openScratch(
    scratchBytes(source, source.length) + scratchBytes(bytes, bytesMax) + scratchBytes(offsets, count + 1),
  );
  const sourceAt = scratch.place(source, 0, source.length);
  const bytesAt = scratch.target(bytes, 0, bytesMax);
  const offsetsAt = scratch.target(offsets, 0, count + 1);
  const written = kernelsOver(scratch).decodePlain(sourceAt, source.length, count, bytesAt, offsetsAt);
  if (written < 0) return -1;
  scratch.copyOut(bytesAt, bytes, 0, written);
  scratch.copyOut(offsetsAt, offsets, 0, count + 1);
  return written;
}

/**
 * Searches the `count` strings that `source` consists of for needles, without decoding them. Also returns `may` where ruling them out would
 * take too long, and where a needle was found before the malformed part of the input.
 */
export function searchPlainStrings(
  source: Uint8Array,
  count: number,
  needles: readonly KernelNeedle[],
): BlockVerdict {
  const roomBytes = needlesBytes(needles);
  const scratch = openScratch(scratchBytes(source, source.length) + roomBytes);
  const sourceAt = scratch.place(source, 0, source.length);
  const needlesAt = scratch.reserve(roomBytes);
  layOutNeedles(needles, scratch.view(needlesAt, roomBytes));
  return verdictOf(
    kernelsOver(scratch).searchPlain(sourceAt, source.length, count, needlesAt, needles.length),
  );
}
