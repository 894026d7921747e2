import { describe, expect, it } from 'vitest';
import { caseCount, fc } from '../cases.js';
import { addStripes, ContentHash, newLanes } from '../../engine/kernels/xxh64.js';
import { both } from './lay.js';
import * as plain from './plain/xxh64.js';

/** The bytes of the test vectors of xxHash (cli/xsum_sanity_check.c). */
function vectorBytes(length: number): Uint8Array {
  let generator = 2_654_435_761n;
  return Uint8Array.from({ length }, () => {
    const byte = Number(generator >> 56n);
    generator = BigInt.asUintN(64, generator * 11_400_714_785_074_694_797n);
    return byte;
  });
}

function hashOf(...pieces: readonly Uint8Array[]): string {
  const hash = new ContentHash();
  for (const piece of pieces) hash.update(piece);
  return hash.digest();
}

describe('XXH64', () => {
  it('matches the test vectors of the specification', () => {
    const hashes = [
      [0, 'ef46db3751d8e999'],
      [1, 'e934a84adb052768'],
      [4, '9136a0dca57457ee'],
      [14, '8282dcc4994e35c8'],
      [222, 'b641ae8cb691c174'],
    ] as const;
    for (const [length, hash] of hashes) expect(hashOf(vectorBytes(length))).toBe(`xxh64:${hash}`);
    expect(hashOf(Buffer.from('Nobody inspects the spammish repetition'))).toBe('xxh64:fbcea83c8a378bf1');
  });

  it('of pieces equals that of the whole, and can be read between them', () => {
    const content = vectorBytes(5000);
    const cuts = fc.array(fc.oneof(fc.nat(5000), fc.nat(40)), { maxLength: 12 });
    fc.assert(
      fc.property(cuts, (some) => {
        const ends = [...some, 5000].sort((a, b) => a - b);
        const hash = new ContentHash();
        ends.forEach((end, i) => {
          hash.update(content.subarray(ends[i - 1] ?? 0, end));
          expect(hash.digest()).toBe(hashOf(content.subarray(0, end)));
        });
      }),
    );
  });

  it('processes stripes like the plain twin, which calculates with BigInts', () => {
    const sizes = fc.oneof(fc.nat(300), fc.integer({ min: 1000, max: 1100 }), fc.nat(200_000));
    fc.assert(
      fc.property(sizes, fc.integer(), (length, seed) => {
        const bytes = Uint8Array.from({ length }, (_, i) => Math.imul(i + seed, 0x9e3779b1) >>> 21);
        const wanted = newLanes();
        plain.addStripes(wanted, bytes);
        const exact = new BigUint64Array(newLanes().buffer);
        const view = new DataView(bytes.buffer);
        for (let at = 0; at + 32 <= length; at += 32) {
          exact.forEach((lane, i) => {
            const sum = BigInt.asUintN(64, lane + view.getBigUint64(at + 8 * i, true) * 0xc2b2ae3d27d4eb4fn);
            exact[i] = ((sum << 31n) | (sum >> 33n)) * 0x9e3779b185ebca87n;
          });
        }
        expect(wanted).toEqual(new Uint32Array(exact.buffer));
        both((lay) => {
          const lanes = lay(newLanes());
          addStripes(lanes, lay(bytes));
          expect([...lanes]).toEqual([...wanted]);
        });
      }),
      { numRuns: caseCount(60) },
    );
  });
});
