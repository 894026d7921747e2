// XXH64 hashes of the values of a column, and the two Bloom filters of a row group that are made from them.
// XXH64 with seed 0: https://github.com/Cyan4973/xxHash/blob/dev/doc/xxhash_spec.md
// Split-block Bloom filters: https://github.com/apache/parquet-format/blob/master/BloomFilter.md

const prime1: u64 = 0x9e3779b185ebca87;
const prime2: u64 = 0xc2b2ae3d27d4eb4f;
const prime3: u64 = 0x165667b19e3779f9;
const prime4: u64 = 0x85ebca77c2b2ae63;
const prime5: u64 = 0x27d4eb2f165667c5;

function round(lane: u64, input: u64): u64 {
  return rotl<u64>(lane + input * prime2, 31) * prime1;
}

function merge(hash: u64, lane: u64): u64 {
  return (hash ^ round(0, lane)) * prime1 + prime4;
}

function avalanche(hash: u64): u64 {
  hash = (hash ^ (hash >> 33)) * prime2;
  hash = (hash ^ (hash >> 29)) * prime3;
  return hash ^ (hash >> 32);
}

function hashOf(at: usize, length: usize): u64 {
  const end = at + length;
  let hash: u64 = prime5;
  if (length >= 32) {
    let first: u64 = prime1 + prime2;
    let second: u64 = prime2;
    let third: u64 = 0;
    let fourth: u64 = 0 - prime1;
    for (; at + 32 <= end; at += 32) {
      first = round(first, load<u64>(at));
      second = round(second, load<u64>(at, 8));
      third = round(third, load<u64>(at, 16));
      fourth = round(fourth, load<u64>(at, 24));
    }
    hash = rotl<u64>(first, 1) + rotl<u64>(second, 7) + rotl<u64>(third, 12) + rotl<u64>(fourth, 18);
    hash = merge(merge(merge(merge(hash, first), second), third), fourth);
  }
  hash += length;
  for (; at + 8 <= end; at += 8) {
    hash = rotl<u64>(hash ^ round(0, load<u64>(at)), 27) * prime1 + prime4;
  }
  if (at + 4 <= end) {
    hash = rotl<u64>(hash ^ (<u64>load<u32>(at) * prime1), 23) * prime2 + prime3;
    at += 4;
  }
  for (; at < end; at++) hash = rotl<u64>(hash ^ (<u64>load<u8>(at) * prime5), 11) * prime1;
  return avalanche(hash);
}

/** Writes the hash of each of `count` strings to `hashes`. Offsets are relative to `bytes`. */
export function hashStrings(bytes: usize, offsets: usize, count: u32, hashes: usize): void {
  let start = <usize>load<u32>(offsets);
  for (let i: u32 = 0; i < count; i++) {
    offsets += 4;
    const end = <usize>load<u32>(offsets);
    store<u64>(hashes, hashOf(bytes + start, end - start));
    hashes += 8;
    start = end;
  }
}

/** Writes the hash of the eight bytes of each of `count` 64-bit integers to `hashes`. */
export function hashIntegers(values: usize, count: u32, hashes: usize): void {
  for (const end = values + ((<usize>count) << 3); values < end; values += 8) {
    store<u64>(hashes, hashOf(values, 8));
    hashes += 8;
  }
}

function setBit(bitmap: usize, bit: u32): void {
  const at = bitmap + ((bit >>> 5) << 2);
  store<u32>(at, load<u32>(at) | ((<u32>1) << (bit & 31)));
}

/** Sets one bit for each hash in a bitmap of 2^bits bits. The low bits of the hash are the index. */
export function markHashes(hashes: usize, count: u32, bits: u32, bitmap: usize): void {
  const mask: u32 = ((<u32>1) << bits) - 1;
  for (const end = hashes + ((<usize>count) << 3); hashes < end; hashes += 8) {
    const bit = load<u32>(hashes) & mask;
    setBit(bitmap, bit);
  }
}

function blockAt(blocks: usize, blockCount: u32, hashes: usize): usize {
  return blocks + <usize>((<u64>load<u32>(hashes, 4) * blockCount) >> 32) * 32;
}

function setWord(block: usize, key: u32, salt: u32): void {
  store<u32>(block, load<u32>(block) | ((<u32>1) << ((key * salt) >>> 27)));
}

/** Adds hashes to a split-block Bloom filter: each sets one bit in each of the eight words of a block. */
export function addToBlocks(hashes: usize, count: u32, blocks: usize, blockCount: u32): void {
  for (const end = hashes + ((<usize>count) << 3); hashes < end; hashes += 8) {
    const key = load<u32>(hashes);
    const block = blockAt(blocks, blockCount, hashes);
    setWord(block, key, 0x47b6137b);
    setWord(block + 4, key, 0x44974d91);
    setWord(block + 8, key, 0x8824ad5b);
    setWord(block + 12, key, 0xa2b7289d);
    setWord(block + 16, key, 0x705495c7);
    setWord(block + 20, key, 0x2df1424b);
    setWord(block + 24, key, 0x9efc4947);
    setWord(block + 28, key, 0x5c6bfb31);
  }
}

/** Adds hashes to a sketch: a Bloom filter of 32-byte blocks in which each hash sets three bits of one block. */
export function addToSketch(hashes: usize, count: u32, blocks: usize, blockCount: u32): void {
  for (const end = hashes + ((<usize>count) << 3); hashes < end; hashes += 8) {
    const key = load<u32>(hashes);
    const mixed = (key ^ (key >>> 15)) * 0x2c1b3c6d;
    const block = blockAt(blocks, blockCount, hashes);
    setBit(block, mixed >>> 24);
    setBit(block, (mixed >>> 16) & 255);
    setBit(block, (mixed >>> 8) & 255);
  }
}
