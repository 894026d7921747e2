import { FormatError } from '../../parquet/format.js';

/** Number of bits that integers up to `max` need. */
export function bitsOf(max: number): number {
  return 32 - Math.clz32(max);
}

/**
 * Fills `target` with integers of the RLE/bit-packing hybrid
 * (https://parquet.apache.org/docs/file-format/data-pages/encodings/#RLE). Throws `FormatError` where `bytes` hold fewer, or
 * one is above `max`.
 *
 * @param width bits per integer, 0 to 32
 */
export function readHybrid<T extends Uint8Array | Uint16Array | Uint32Array>(
  bytes: Uint8Array,
  width: number,
  target: T,
  max: number,
): T {
  if (width > 32) throw new FormatError(`integers of ${width} bits`, 0);
  const count = target.length;
  const valueBytes = (width + 7) >> 3;
  let at = 0;
  let done = 0;
  while (done < count) {
    let header = 0;
    let factor = 1;
    for (;;) {
      const byte = bytes[at++];
      if (byte === undefined || factor > 2 ** 35) throw new FormatError('there are too few integers', at);
      header += (byte & 127) * factor;
      if (byte < 128) break;
      factor *= 128;
    }
    if (header % 2 === 0) {
      const run = Math.min(header / 2, count - done);
      if (at + valueBytes > bytes.length) throw new FormatError('there are too few integers', at);
      let value = 0;
      for (let k = 0; k < valueBytes; k++) value += bytes[at++]! * 2 ** (8 * k);
      if (value > max) throw new FormatError(`the value ${value} is above the maximum of ${max}`, at);
      target.fill(value, done, done + run);
      done += run;
      continue;
    }
    const run = Math.min(((header - 1) / 2) * 8, count - done);
    // Some writers omit the padding of the last group of eight values.
    if (at + Math.ceil((run * width) / 8) > bytes.length)
      throw new FormatError('there are too few integers', at);
    unpack(bytes, at, width, target, done, done + run, max);
    done += run;
    at += ((header - 1) / 2) * width;
  }
  return target;
}

/** Unpacks integers of `width` bits each, least significant bit first, from byte `at` of `bytes` to target[from, to). */
function unpack(
  bytes: Uint8Array,
  at: number,
  width: number,
  target: Uint8Array | Uint16Array | Uint32Array,
  from: number,
  to: number,
  max: number,
): void {
  let bit = 8 * at;
  for (let i = from; i < to; i++) {
    let value = 0;
    for (let read = 0; read < width;) {
      const shift = bit & 7;
      const taken = Math.min(8 - shift, width - read);
      value += ((bytes[bit >> 3]! >>> shift) & ((1 << taken) - 1)) * 2 ** read;
      read += taken;
      bit += taken;
    }
    if (value > max) throw new FormatError(`the value ${value} is above the maximum of ${max}`, bit >> 3);
    target[i] = value;
  }
}

/** Number of bytes of `count` levels in the older encoding BIT_PACKED. */
export function bitPackedBytes(count: number, width: number): number {
  return Math.ceil((count * width) / 8);
}

/** Decodes levels in the older encoding BIT_PACKED, most significant bit first. `bytes` must have `bitPackedBytes` bytes. */
export function readBitPacked(
  bytes: Uint8Array,
  width: number,
  target: Uint16Array,
  max: number,
): Uint16Array {
  let bit = 0;
  for (let i = 0; i < target.length; i++) {
    let value = 0;
    for (let k = 0; k < width; k++, bit++) value = 2 * value + ((bytes[bit >> 3]! >>> (7 - (bit & 7))) & 1);
    if (value > max) throw new FormatError(`the level ${value} is above the maximum of ${max}`, bit >> 3);
    target[i] = value;
  }
  return target;
}
