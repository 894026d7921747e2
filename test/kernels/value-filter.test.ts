import { describe, expect, it } from 'vitest';
import { fc } from '../cases.js';
import {
  addToBlocks,
  addToSketch,
  distinctHashes,
  filterBlockBytes,
  hashIntegers,
  hashStrings,
} from '../../engine/kernels/value-filter.js';
import { finishXxh64, newLanes, stripeBytes } from '../../engine/kernels/xxh64.js';
import { blockOfHash, isInBlock } from '../../engine/parquet/bloom-filter.js';
import { isInSketch } from '../../engine/store/sealed/value-filter.js';
import { addStripes } from './plain/xxh64.js';

/** XXH64 by the plain twin. */
function hashOf(bytes: Uint8Array): bigint {
  const lanes = newLanes();
  addStripes(lanes, bytes);
  return finishXxh64(lanes, bytes.length, bytes.subarray(bytes.length - (bytes.length % stripeBytes)));
}

function hashAt(hashes: Uint32Array, i: number): { low: number; high: number } {
  return { low: hashes[2 * i]!, high: hashes[2 * i + 1]! };
}

const joined = ({ low, high }: { low: number; high: number }): bigint => (BigInt(high) << 32n) | BigInt(low);

describe('hashes of values', () => {
  it('are the XXH64 of the bytes of each string, wherever it begins', () => {
    const value = fc.oneof(
      fc.uint8Array({ maxLength: 40 }),
      fc.uint8Array({ minLength: 60, maxLength: 300 }),
    );
    fc.assert(
      fc.property(fc.array(value, { maxLength: 30 }), fc.nat(9), (values, first) => {
        const bytes = Buffer.concat([Buffer.alloc(first, 7), ...values]);
        const offsets = Uint32Array.of(first, ...values.map(() => 0));
        values.forEach(({ length }, i) => (offsets[i + 1] = offsets[i]! + length));
        const hashes = hashStrings(bytes, offsets, values.length);
        values.forEach((one, i) => expect(joined(hashAt(hashes, i))).toBe(hashOf(one)));
      }),
    );
  });

  it('are the same for more text than is copied at once', () => {
    const values = Array.from({ length: 40 }, (_, i) => Buffer.alloc(i * 1000, `${i}`));
    values.push(Buffer.alloc(700_000, 'long'), Buffer.from('x'));
    const offsets = new Uint32Array(values.length + 1);
    values.forEach(({ length }, i) => (offsets[i + 1] = offsets[i]! + length));
    const hashes = hashStrings(Buffer.concat(values), offsets, values.length);
    values.forEach((one, i) => expect(joined(hashAt(hashes, i))).toBe(hashOf(one)));
  });

  it('are the XXH64 of the eight bytes of each integer', () => {
    fc.assert(
      fc.property(fc.array(fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n })), (values) => {
        const array = BigInt64Array.from(values);
        const hashes = hashIntegers(array, values.length);
        values.forEach((_, i) =>
          expect(joined(hashAt(hashes, i))).toBe(hashOf(new Uint8Array(array.buffer, 8 * i, 8))),
        );
      }),
    );
  });

  it('give an estimate of how many values are distinct', () => {
    for (const [count, distinct] of [
      [65_536, 65_536],
      [65_536, 30_000],
      [1000, 1000],
      [500, 1],
    ] as const) {
      const values = BigInt64Array.from({ length: count }, (_, i) => BigInt(i % distinct) * 7919n);
      const found = distinctHashes(hashIntegers(values, count));
      expect(Math.abs(found - distinct)).toBeLessThanOrEqual(1 + distinct / 100);
    }
  });
});

describe('filters of hashes', () => {
  const hashes = (count: number): Uint32Array =>
    hashIntegers(
      BigInt64Array.from({ length: count }, (_, i) => BigInt(i) * 0x9e3779b97n),
      count,
    );

  it.each([1, 3, 86, 2686])('of %d blocks contain all added hashes, and few others', (blockCount) => {
    const count = Math.floor((blockCount * 256) / 10.5);
    const all = hashes(2 * count);
    const blocks = new Uint8Array(blockCount * filterBlockBytes);
    addToBlocks(all.subarray(0, 2 * count), blocks);
    const isIn = (i: number): boolean => {
      const hash = hashAt(all, i);
      return isInBlock(blocks, blockOfHash(hash, blockCount) * filterBlockBytes, hash);
    };
    let wrong = 0;
    for (let i = 0; i < count; i++) expect(isIn(i)).toBe(true);
    for (let i = count; i < 2 * count; i++) if (isIn(i)) wrong++;
    if (count > 1000) expect(wrong / count).toBeLessThan(0.014);
  });

  it('are sketches that contain all added hashes, and at most a fifth of the others', () => {
    const blockCount = 1024;
    const count = 65_536;
    const all = hashes(2 * count);
    const blocks = new Uint8Array(blockCount * filterBlockBytes);
    addToSketch(all.subarray(0, 2 * count), blocks);
    const isIn = (i: number): boolean => {
      const hash = hashAt(all, i);
      return isInSketch(blocks, blockOfHash(hash, blockCount) * filterBlockBytes, hash);
    };
    let wrong = 0;
    for (let i = 0; i < count; i++) if (!isIn(i)) throw new Error(`hash ${i} is not there`);
    for (let i = count; i < 2 * count; i++) if (isIn(i)) wrong++;
    expect(wrong / count).toBeLessThan(0.2);
  });
});
