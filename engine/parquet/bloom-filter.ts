import { filterBlockBytes } from '../kernels/value-filter.js';
import { i32, writeThrift } from './thrift-writer.js';

// Parquet's split-block Bloom filters: https://github.com/apache/parquet-format/blob/master/BloomFilter.md

/** The halves of the XXH64 hash of a value, each an unsigned 32-bit number. */
export interface ValueHash {
  readonly low: number;
  readonly high: number;
}

/**
 * Bits of the filter per distinct value. Each value sets one bit in each of the eight words of a block. With this size, 0.4 % of absent
 * values are false positives.
 */
export const bloomBitsOfValue = 13;
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

/** Number of blocks of a filter for `distinct` different values, with `bitsOfValue` bits for each. */
export function bloomBlocks(distinct: number, bitsOfValue = bloomBitsOfValue): number {
  return Math.max(1, Math.ceil((distinct * bitsOfValue) / (filterBlockBytes * 8)));
}

/** The Thrift structure `BloomFilterHeader`, which is before the blocks in a file. */
export function bloomHeader(blockCount: number): Uint8Array {
  // The three unions (algorithm, hash, compression) have the variants BLOCK, XXHASH and UNCOMPRESSED, each an empty structure with id 1.
  const only = { 1: {} };
  return writeThrift({ 1: i32(blockCount * filterBlockBytes), 2: only, 3: only, 4: only }).slice();
}

const emptyHeaderBytes = bloomHeader(0).length;

/** The length of `bloomHeader` in bytes. Only the size of the filter varies in length: it is a zigzag varint with 7 bits per byte. */
export function bloomHeaderBytes(blockCount: number): number {
  let bytes = emptyHeaderBytes;
  for (let rest = 2 * blockCount * filterBlockBytes; rest >= 128; rest = Math.floor(rest / 128)) bytes++;
  return bytes;
}

/** The index of the block for a hash. */
export function blockOfHash({ high }: ValueHash, blockCount: number): number {
  return Math.floor((high * blockCount) / 2 ** 32);
}

/** Whether the 32-byte block at offset `at` has all bits of the value. */
export function isInBlock(bytes: Uint8Array, at: number, { low }: ValueHash): boolean {
  for (let word = 0; word < wordsOfBlock; word++) {
    const bit = Math.imul(low, salts[word]!) >>> 27;
    if ((bytes[at + 4 * word + (bit >>> 3)]! & (1 << (bit & 7))) === 0) return false;
  }
  return true;
}
