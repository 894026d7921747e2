/**
 * Bit packing of dictionary codes: the bit-packed runs of Parquet's RLE/bit-packing hybrid
 * (https://parquet.apache.org/docs/file-format/data-pages/encodings/#RLE), least significant bit first.
 */

/**
 * Packs codes[0, count) with `width` bits each (1 to 16) into `target` from `at` on, padded with zeros to a multiple of eight codes.
 * Returns the offset after them.
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

/** The largest of codes[0, count), or -1 if there is none. */
export function largestCode(codes: Uint8Array | Uint16Array, count: number): number {
  let largest = -1;
  for (let i = 0; i < count; i++) if (codes[i]! > largest) largest = codes[i]!;
  return largest;
}

/**
 * Decodes `count` codes of `width` bits from the hybrid of runs and packed codes in source[at, …) to the front of `target`. Returns the
 * offset after the input that was read, or -1 if the input is malformed or a code does not fit the target.
 */
export function decodeHybrid(
  source: Uint8Array,
  at: number,
  count: number,
  width: number,
  target: Uint8Array | Uint16Array | Uint32Array,
): number {
  if (width > 8 * target.BYTES_PER_ELEMENT) return -1;
  const bitAt = (bit: number): number => (source[at + (bit >> 3)]! >> (bit & 7)) & 1;
  let done = 0;
  while (done < count) {
    let header = 0;
    for (let factor = 1; ; factor *= 128) {
      const byte = source[at++];
      if (byte === undefined || factor > 2 ** 35) return -1;
      header += (byte & 127) * factor;
      if (byte < 128) break;
    }
    if (header < 2 || header >= 2 ** 32) return -1;
    const length = Math.floor(header / 2);
    const isPacked = header % 2 === 1;
    const values = Math.min(count - done, isPacked ? length * 8 : length);
    const bytes = Math.ceil(isPacked ? (values * width) / 8 : width / 8);
    if (bytes > source.length - at) return -1;
    if (!isPacked && bytes > 0 && source[at + bytes - 1]! >= 2 ** (width - 8 * (bytes - 1))) return -1;
    if (isPacked && width <= 16) unpackCodes(source, at, values, width, target, done);
    else
      for (let i = 0; i < values; i++) {
        let code = 0;
        for (let k = 0; k < width; k++) code += bitAt((isPacked ? i * width : 0) + k) * 2 ** k;
        target[done + i] = code;
      }
    done += values;
    at = Math.min(source.length, at + (isPacked ? length * width : bytes));
  }
  return at;
}

function unpackCodes(
  source: Uint8Array,
  at: number,
  count: number,
  width: number,
  target: Uint8Array | Uint16Array | Uint32Array,
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
