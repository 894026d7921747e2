/** MurmurHash3 (x86, 32 bits, seed 0) of bytes [from, to). Same as ClickHouse's `murmurHash3_32`. Algorithm: Austin Appleby, SMHasher. */
export function murmur32(bytes: Uint8Array, from: number, to: number): number {
  let hash = 0;
  const blocksEnd = to - ((to - from) & 3);
  for (let at = from; at < blocksEnd; at += 4) {
    const block = bytes[at]! | (bytes[at + 1]! << 8) | (bytes[at + 2]! << 16) | (bytes[at + 3]! << 24);
    hash ^= scrambled(block);
    hash = (hash << 13) | (hash >>> 19);
    hash = (Math.imul(hash, 5) + 0xe6546b64) | 0;
  }
  let rest = 0;
  for (let at = to - 1; at >= blocksEnd; at--) rest = (rest << 8) | bytes[at]!;
  if (blocksEnd < to) hash ^= scrambled(rest);
  hash ^= to - from;
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return (hash ^ (hash >>> 16)) >>> 0;
}

function scrambled(block: number): number {
  const mixed = Math.imul(block, 0xcc9e2d51);
  return Math.imul((mixed << 15) | (mixed >>> 17), 0x1b873593);
}
