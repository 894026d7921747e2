/**
 * Needles looked for in a page as a whole, wherever its values begin and end. Plain TypeScript twin of the SIMD kernels.
 */
import { lz4Decompress } from './lz4.js';

/** A needle as the string kernels read it. */
export interface KernelNeedle {
  /** Three planes of equal size: the bytes; 0x20 where an ASCII letter counts in either case; 0xff for each byte. */
  readonly planes: Uint8Array;
  readonly length: number;
  /** The places of the bytes that are looked for first. */
  readonly first: number;
  readonly second: number;
}

/** `may`: one of the needles stands there, or it would take long to say that none does. */
export type BlockVerdict = 'may' | 'none' | 'malformed';

/** Whether one of the needles stands anywhere in `text`. */
export function searchText(text: Uint8Array, needles: readonly KernelNeedle[]): BlockVerdict {
  return needles.some((needle) => stands(text, needle)) ? 'may' : 'none';
}

/** As `searchText`, for what the LZ4 block makes: `length` bytes, or it is malformed. */
export function searchLz4(block: Uint8Array, length: number, needles: readonly KernelNeedle[]): BlockVerdict {
  const text = new Uint8Array(length);
  return lz4Decompress(block, text, length) === length ? searchText(text, needles) : 'malformed';
}

function stands(text: Uint8Array, { planes, length, first, second }: KernelNeedle): boolean {
  const folds = planes.length / 3;
  const matches = (at: number, k: number): boolean => (text[at + k]! | planes[folds + k]!) === planes[k];
  for (let at = 0; at + length <= text.length; at++) {
    if (!matches(at, first) || !matches(at, second)) continue;
    let k = 0;
    while (k < length && matches(at, k)) k++;
    if (k === length) return true;
  }
  return false;
}
