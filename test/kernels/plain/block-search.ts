/**
 * Searches a page as a whole for needles, without regard to where its values begin and end.
 */
import type { BlockVerdict } from '../../../engine/kernels/block-search.js';
import type { KernelNeedle } from '../../../engine/kernels/needle.js';
import { lz4Decompress } from './lz4.js';

/** Whether one of the needles occurs anywhere in `text`. */
export function searchText(text: Uint8Array, needles: readonly KernelNeedle[]): BlockVerdict {
  return needles.some((needle) => stands(text, needle)) ? 'may' : 'none';
}

/** Like `searchText`, for the content of an LZ4 block: `length` bytes, or else the block is malformed. */
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
