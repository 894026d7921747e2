import { crc32 } from 'node:zlib';
import { expect } from 'vitest';
import { ThriftCursor } from './tiny-parquet.js';

/** Bytes in the file for a bitmap of 2^bits bits. */
export function filterBytes(bits: number): number {
  if (bits === 0) return 0;
  const bytes = 2 ** (bits - 3);
  return bytes + Math.ceil(bytes / 4096) * 4;
}

/** The bitmap at `offset`, without the checksums of its pieces, which must be valid. */
export function bitmapAt(bytes: Buffer, offset: number, bits: number): Buffer {
  const pieces: Buffer[] = [];
  for (let left = 2 ** (bits - 3), at = offset; left > 0;) {
    const length = Math.min(4096, left);
    const piece = bytes.subarray(at, at + length);
    expect(bytes.readUInt32LE(at + length)).toBe(crc32(piece));
    pieces.push(piece);
    at += length + 4;
    left -= length;
  }
  return Buffer.concat(pieces);
}

/** The bits of a folded search text, by the page's arithmetic in exact integers. */
export function gramBits(needle: Buffer, gramBytes: number, bits: number): number[] {
  const mask = 0xffff_ffffn;
  const found: number[] = [];
  for (let from = 0; from + gramBytes <= needle.length; from++) {
    const gram = needle.subarray(from, from + gramBytes);
    if (gramBytes === 3) {
      const hash = (BigInt(gram.readUIntLE(0, 3)) * 0x9e3779b1n) & mask;
      found.push(Number(hash >> BigInt(32 - bits)));
      continue;
    }
    const last = BigInt(gram.readUInt32LE(gramBytes - 4));
    const older = gramBytes === 4 ? 0n : BigInt(gram.readUIntLE(0, gramBytes - 4));
    const mixed = ((last * 0x9e3779b1n) & mask) ^ ((older * 0x85ebca6bn) & mask);
    found.push(Number((((mixed ^ (mixed >> 15n)) * 0xc2b2ae35n) & mask) >> BigInt(32 - bits)));
  }
  return found;
}

/** XXH64 with seed 0, by its specification. */
export function xxh64(bytes: Buffer): bigint {
  const [p1, p2, p3, p4, p5] = [
    0x9e3779b185ebca87n,
    0xc2b2ae3d27d4eb4fn,
    0x165667b19e3779f9n,
    0x85ebca77c2b2ae63n,
    0x27d4eb2f165667c5n,
  ] as const;
  const u64 = (value: bigint): bigint => BigInt.asUintN(64, value);
  const rotate = (value: bigint, by: bigint): bigint => u64((value << by) | (value >> (64n - by)));
  const round = (lane: bigint, input: bigint): bigint => u64(rotate(u64(lane + input * p2), 31n) * p1);
  let at = 0;
  let hash: bigint = p5;
  if (bytes.length >= 32) {
    const lanes = [u64(p1 + p2), p2, 0n, u64(-p1)];
    for (; at + 32 <= bytes.length; at += 32)
      lanes.forEach((lane, i) => (lanes[i] = round(lane, bytes.readBigUInt64LE(at + 8 * i))));
    hash = u64([1n, 7n, 12n, 18n].reduce((sum, by, i) => sum + rotate(lanes[i]!, by), 0n));
    for (const lane of lanes) hash = u64((hash ^ round(0n, lane)) * p1 + p4);
  }
  hash = u64(hash + BigInt(bytes.length));
  for (; at + 8 <= bytes.length; at += 8) {
    hash = u64(rotate(hash ^ round(0n, bytes.readBigUInt64LE(at)), 27n) * p1 + p4);
  }
  for (; at + 4 <= bytes.length; at += 4)
    hash = u64(rotate(hash ^ u64(BigInt(bytes.readUInt32LE(at)) * p1), 23n) * p2 + p3);
  for (; at < bytes.length; at++) hash = u64(rotate(hash ^ u64(BigInt(bytes[at]!) * p5), 11n) * p1);
  hash = u64((hash ^ (hash >> 33n)) * p2);
  hash = u64((hash ^ (hash >> 29n)) * p3);
  return hash ^ (hash >> 32n);
}

export function bloomHeaderBytes(bytes: Buffer, offset: number): number {
  const cursor = new ThriftCursor(bytes, offset);
  cursor.struct();
  return cursor.at - offset;
}

const salts = [
  0x47b6137bn,
  0x44974d91n,
  0x8824ad5bn,
  0xa2b7289dn,
  0x705495c7n,
  0x2df1424bn,
  0x9efc4947n,
  0x5c6bfb31n,
];

/** Whether a split-block Bloom filter has all bits of a hash set. */
export function isInBlocks(bitset: Buffer, hash: bigint): boolean {
  const block = Number(((hash >> 32n) * BigInt(bitset.length / 32)) >> 32n);
  return salts.every((salt, word) => {
    const bit = Number(BigInt.asUintN(32, (hash & 0xffff_ffffn) * salt) >> 27n);
    return ((bitset.readUInt32LE(block * 32 + word * 4) >>> bit) & 1) === 1;
  });
}
