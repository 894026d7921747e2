/** The block format of Snappy (https://github.com/google/snappy/blob/main/format_description.txt). */

/**
 * Decompresses `source` into target[0, length), which it must fill. Returns `length`, or -1 if the input is malformed or has another
 * length.
 */
export function snappyDecompress(source: Uint8Array, target: Uint8Array, length: number): number {
  let s = 0;
  let d = 0;
  /** A little-endian number, or -1 if the input ends within it. */
  const read = (bytes: number): number => {
    if (bytes > source.length - s) return -1;
    let value = 0;
    for (let k = 0; k < bytes; k++) value += source[s++]! * 256 ** k;
    return value;
  };
  let claimed = 0n;
  for (let shift = 0n; ; shift += 7n) {
    const byte = source[s++];
    if (byte === undefined || shift > 63n) return -1;
    claimed |= BigInt(byte & 127) << shift;
    if (byte < 128) break;
  }
  if (claimed !== BigInt(length)) return -1;
  while (s < source.length) {
    const tag = source[s++]!;
    const kind = tag & 3;
    if (kind === 0) {
      const short = tag >> 2;
      const rest = short < 60 ? short : read(short - 59);
      if (rest < 0 || rest >= source.length - s || rest >= length - d) return -1;
      for (let k = 0; k <= rest; k++) target[d++] = source[s++]!;
      continue;
    }
    const low = read(kind === 3 ? 4 : kind);
    if (low < 0) return -1;
    const offset = kind === 1 ? ((tag >> 5) << 8) + low : low;
    const matched = kind === 1 ? 4 + ((tag >> 2) & 7) : (tag >> 2) + 1;
    if (offset === 0 || offset > d || matched > length - d) return -1;
    for (let k = 0; k < matched; k++, d++) target[d] = target[d - offset]!;
  }
  return d === length ? length : -1;
}
