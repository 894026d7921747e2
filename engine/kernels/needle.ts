import { bufferBytes } from '../core/allocator.js';

/** A needle in the form that the string kernels read. */
export interface KernelNeedle {
  /**
   * Three planes of equal size, padded with zeros to a multiple of 16 bytes: the bytes of the needle; for each byte 0x20 where it is an
   * ASCII letter whose case does not count, else 0; for each byte 0xff.
   */
  readonly planes: Uint8Array;
  readonly length: number;
  /** Indices of the two bytes that a search looks for first. */
  readonly first: number;
  readonly second: number;
}

/** `kind` of the kernel `selectAffix`. */
export const affixStart = 0;
export const affixEnd = 1;

/** Common bytes in lowercased logs, the most frequent first. Bytes that are not listed are rarer. */
const commonBytes = Buffer.from(' e/0t1a2i.o-n3s5r46"879c:ldpm_u=h,gfbwvky;x%q&()jz+?#[]@');
const ranks = new Uint8Array(256).fill(255);
commonBytes.forEach((byte, rank) => (ranks[byte] = rank));

/** Index of the needle's byte that is rarest in logs, except index `but`. */
function rarestPlace(needle: Uint8Array, but: number): number {
  let rarest = but === 0 ? needle.length - 1 : 0;
  for (let i = 0; i < needle.length; i++) {
    if (i !== but && ranks[needle[i]!]! > ranks[needle[rarest]!]!) rarest = i;
  }
  return rarest;
}

/**
 * Makes a needle. With `caseless` the needle must be case-folded and matches ASCII letters of either case; else it matches byte for byte.
 */
export function kernelNeedle(needle: Uint8Array, caseless: boolean): KernelNeedle {
  const stride = Math.max(16, Math.ceil(needle.length / 16) * 16);
  const planes = new Uint8Array(3 * stride);
  planes.set(needle);
  for (let i = 0; i < needle.length; i++) {
    const isLetter = needle[i]! >= 0x61 && needle[i]! <= 0x7a;
    if (caseless && isLetter) planes[stride + i] = 0x20;
    planes[2 * stride + i] = 0xff;
  }
  const first = rarestPlace(needle, -1);
  return { planes, length: needle.length, first, second: rarestPlace(needle, first) };
}

/** Words of a needle's description: address, length, and the indices `first` and `second`. */
const needleWords = 4;

/** Number of bytes that `layOutNeedles` writes. */
export function needlesBytes(needles: readonly KernelNeedle[]): number {
  return needles.reduce(
    (sum, { planes }) => sum + bufferBytes(planes.length),
    bufferBytes(needles.length * needleWords * 4),
  );
}

/** Writes the descriptions of the needles to the start of `room`, followed by their planes. `room` must be in the kernels' memory. */
export function layOutNeedles(needles: readonly KernelNeedle[], room: Uint8Array): void {
  const words = new Uint32Array(room.buffer, room.byteOffset, needles.length * needleWords);
  let at = bufferBytes(words.byteLength);
  needles.forEach(({ planes, length, first, second }, i) => {
    words.set([room.byteOffset + at, length, first, second], i * needleWords);
    room.set(planes, at);
    at += bufferBytes(planes.length);
  });
}
