/**
 * Dictionary codes as bits: the bit-packed runs of Parquet's RLE/bit-packing hybrid
 * (https://parquet.apache.org/docs/file-format/data-pages/encodings/#RLE), least significant bit first.
 */

/**
 * Packs codes[0, count) with `width` bits each (1 to 16) into `target` from `at` on, filled up with zeros to a multiple
 * of eight codes. Returns the offset behind them.
 */
export function packCodes(
  codes: Uint8Array | Uint16Array,
  count: number,
  width: number,
  target: Uint8Array,
  at: number,
): number {
  let pending = 0;
  let bits = 0;
  for (let i = 0; i < count; i++) {
    pending |= codes[i]! << bits;
    bits += width;
    while (bits >= 8) {
      target[at++] = pending & 255;
      pending >>>= 8;
      bits -= 8;
    }
  }
  const end = at + Math.ceil(((((count + 7) & ~7) - count) * width + bits) / 8);
  while (at < end) {
    target[at++] = pending & 255;
    pending >>>= 8;
  }
  return at;
}

/**
 * Unpacks `count` codes of `width` bits (1 to 16) from `source` at `at` into target[to, to + count). The caller has
 * checked that `source` holds them.
 */
export function unpackCodes(
  source: Uint8Array,
  at: number,
  count: number,
  width: number,
  target: Uint8Array | Uint16Array,
  to: number,
): void {
  const mask = (1 << width) - 1;
  const end = to + count;
  let pending = 0;
  let bits = 0;
  while (to < end) {
    while (bits < width) {
      pending |= source[at++]! << bits;
      bits += 8;
    }
    target[to++] = pending & mask;
    pending >>>= width;
    bits -= width;
  }
}

/** The largest of codes[0, count), or -1 when there is none. */
export function largestCode(codes: Uint8Array | Uint16Array, count: number): number {
  let largest = -1;
  for (let i = 0; i < count; i++) if (codes[i]! > largest) largest = codes[i]!;
  return largest;
}
