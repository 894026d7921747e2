import { bufferBytes } from '../memory/allocator.js';

/** A needle as the string kernels read it. */
export interface KernelNeedle {
  /** Three planes of equal size: the bytes; 0x20 where an ASCII letter counts in either case; 0xff for each byte. */
  readonly planes: Uint8Array;
  readonly length: number;
  /** The places of the bytes that are looked for first. */
  readonly first: number;
  readonly second: number;
}

/** `kind` of the kernel `selectAffix`. */
export const affixStart = 0;
export const affixEnd = 1;

/** Bytes of logs in lower case, from the commonest on; those that are not named are rarer. */
const commonBytes = Buffer.from(' e/0t1a2i.o-n3s5r46"879c:ldpm_u=h,gfbwvky;x%q&()jz+?#[]@');
const ranks = new Uint8Array(256).fill(255);
commonBytes.forEach((byte, rank) => (ranks[byte] = rank));

/** The place of the byte that is rarest in logs, other than `but`. */
function rarestPlace(needle: Uint8Array, but: number): number {
  let rarest = but === 0 ? needle.length - 1 : 0;
  for (let i = 0; i < needle.length; i++) {
    if (i !== but && ranks[needle[i]!]! > ranks[needle[rarest]!]!) rarest = i;
  }
  return rarest;
}

/** Lays out a needle: without its case, which must have been folded, or byte for byte. */
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

/** Words of a needle's description: its address, its length, and its two places. */
const needleWords = 4;

/** The room that `layOutNeedles` takes. */
export function needlesBytes(needles: readonly KernelNeedle[]): number {
  return needles.reduce(
    (sum, { planes }) => sum + bufferBytes(planes.length),
    bufferBytes(needles.length * needleWords * 4),
  );
}

/** Writes the descriptions of the needles to the front of `room`, which lies in memory of kernels, and their planes behind them. */
export function layOutNeedles(needles: readonly KernelNeedle[], room: Uint8Array): void {
  const words = new Uint32Array(room.buffer, room.byteOffset, needles.length * needleWords);
  let at = bufferBytes(words.byteLength);
  needles.forEach(({ planes, length, first, second }, i) => {
    words.set([room.byteOffset + at, length, first, second], i * needleWords);
    room.set(planes, at);
    at += bufferBytes(planes.length);
  });
}
