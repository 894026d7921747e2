import { filterBlockBytes } from '../kernels/value-filter.js';
import { i32, writeThrift } from './thrift-writer.js';

// Split-block Bloom filters as Parquet has them: https://github.com/apache/parquet-format/blob/master/BloomFilter.md

/** The two halves of the XXH64 of a value, each an unsigned 32-bit number. */
export interface ValueHash {
  readonly low: number;
  readonly high: number;
}

/** Bits of a filter for each distinct value, of which eight are set, one in each word of its block: 1.1 % of other values seem to be there. */
export const bloomBitsOfValue = 10.5;
const wordsOfBlock = 8;
const salts = Uint32Array.of(
  0x47b6137b,
  0x44974d91,
  0x8824ad5b,
  0xa2b7289d,
  0x705495c7,
  0x2df1424b,
  0x9efc4947,
  0x5c6bfb31,
);

/** Blocks of a filter of so many distinct values, with so many bits for each. */
export function bloomBlocks(distinct: number, bitsOfValue = bloomBitsOfValue): number {
  return Math.max(1, Math.ceil((distinct * bitsOfValue) / (filterBlockBytes * 8)));
}

/** The structure `BloomFilterHeader`, which stands before the blocks in a file. */
export function bloomHeader(blockCount: number): Uint8Array {
  // Three unions of which the only variant is an empty structure: BLOCK, XXHASH, UNCOMPRESSED.
  const only = { 1: {} };
  return writeThrift({ 1: i32(blockCount * filterBlockBytes), 2: only, 3: only, 4: only }).slice();
}

const emptyHeaderBytes = bloomHeader(0).length;

/** Bytes of `bloomHeader`. The size of the filter is the only number there that needs more of them: 7 bits in each, its sign before them. */
export function bloomHeaderBytes(blockCount: number): number {
  let bytes = emptyHeaderBytes;
  for (let rest = 2 * blockCount * filterBlockBytes; rest >= 128; rest = Math.floor(rest / 128)) bytes++;
  return bytes;
}

/** The block that a value belongs to, of `blockCount`. */
export function blockOfHash({ high }: ValueHash, blockCount: number): number {
  return Math.floor((high * blockCount) / 2 ** 32);
}

/** Whether the block of 32 bytes at `at` has all bits of the value. */
export function isInBlock(bytes: Uint8Array, at: number, { low }: ValueHash): boolean {
  for (let word = 0; word < wordsOfBlock; word++) {
    const bit = Math.imul(low, salts[word]!) >>> 27;
    if ((bytes[at + 4 * word + (bit >>> 3)]! & (1 << (bit & 7))) === 0) return false;
  }
  return true;
}
