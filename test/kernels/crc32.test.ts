import { crc32 as twin } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { caseCount, fc } from '../cases.js';
import { crc32 } from '../../engine/kernels/crc32.js';
import { both } from './lay.js';

const numRuns = caseCount(100, 5000);

/** Lengths around the smallest length for the kernel, a block, a step, and the end of the space for the quotient. */
const length = fc
  .tuple(
    fc.constantFrom(0, 1, 16, 4800, 32_768, 32_768 + 16 * 100, 16 * 2400, 16 * 2700, 16 * 6300, 300_000),
    fc.integer({ min: -17, max: 17 }),
  )
  .map(([near, off]) => Math.max(0, near + off));
const before = fc.oneof(fc.constantFrom(0, 1, 0x80000000, 0xffffffff), fc.nat(0xffffffff));

function text(length: number, seed: number): Uint8Array {
  let state = seed | 1;
  return Uint8Array.from({ length }, () => (state = Math.imul(state, 1664525) + 1013904223) >>> 24);
}

describe('the CRC-32 of bytes', () => {
  it('equals that of zlib for any bytes and any initial value', () => {
    fc.assert(
      fc.property(length, fc.integer(), before, (length, seed, sum) => {
        const bytes = text(length, seed);
        const wanted = twin(bytes, sum);
        both((lay) => expect(crc32(lay(bytes), sum)).toBe(wanted));
      }),
      { numRuns },
    );
  });

  it('equals that of zlib for equal bytes, and after a change of any one of them', () => {
    for (const byte of [0, 0xff]) {
      const bytes = new Uint8Array(50_000).fill(byte);
      both((lay) => expect(crc32(lay(bytes))).toBe(twin(bytes)));
      for (const at of [
        0, 3, 4, 15, 16, 4799, 4800, 14_399, 14_400, 45_183, 45_184, 49_983, 49_984, 49_999,
      ]) {
        const changed = bytes.slice();
        changed[at]! ^= 0x40;
        both((lay) => expect(crc32(lay(changed))).toBe(twin(changed)));
      }
    }
  });

  it('can be continued from piece to piece', () => {
    const bytes = text(500_000, 5);
    both((lay) => {
      const laid = lay(bytes);
      let sum = 0;
      for (const [from, to] of [
        [0, 100_001],
        [100_001, 200_000],
        [200_000, 200_010],
        [200_010, 500_000],
      ] as const)
        sum = crc32(laid.subarray(from, to), sum);
      expect(sum).toBe(twin(bytes));
    });
  });
});
