import { describe, expect, it } from 'vitest';
import { caseCount, fc } from '../cases.js';
import { bitmapBytes } from '../../engine/kernels/bitmap.js';
import { countCodes, countPairs, countRanges } from '../../engine/kernels/count.js';
import { both, type Lay } from './lay.js';
import * as plain from './plain/count.js';

const numRuns = caseCount(150, 20_000);

interface Rows {
  readonly rows: number;
  readonly from: number;
  readonly to: number;
  readonly bits: Uint8Array;
  readonly values: BigInt64Array;
  readonly codes: Uint8Array | Uint16Array;
  readonly starts: BigInt64Array;
  readonly entries: number;
}

const ends = fc.constantFrom(-(2n ** 63n), 2n ** 63n - 1n, 0n, -1n);

/** Rows with mostly ascending times as in logs, some hundred in a row within one range, and some exceptions between them. */
const cases: fc.Arbitrary<Rows> = fc
  .record({
    rows: fc.oneof(fc.nat(70), fc.nat(700)),
    a: fc.nat(),
    b: fc.nat(),
    step: fc.constantFrom(1, 3, 100),
    odd: fc.array(fc.tuple(fc.nat(), fc.oneof(ends, fc.bigInt(-50n, 700n))), { maxLength: 8 }),
    cuts: fc.uniqueArray(fc.bigInt(0n, 700n), { maxLength: 12 }),
    fill: fc.constantFrom(0, 1, 7, 50, 100),
    seed: fc.nat(),
    entries: fc.constantFrom(1, 2, 5, 200, 300),
    isWide: fc.boolean(),
  })
  .map(({ rows, a, b, step, odd, cuts, fill, seed, entries, isWide }) => {
    let state = seed | 1;
    const next = (below: number): number => {
      state = Math.imul(state ^ (state >>> 13), 0x5bd1e995) + 0x1234567;
      return (state >>> 0) % below;
    };
    const [from, to] = [a % (rows + 1), b % (rows + 1)].sort((x, y) => x - y) as [number, number];
    const values = BigInt64Array.from({ length: rows }, (_, row) => BigInt(Math.floor(row / step)));
    for (const [at, value] of odd) if (rows > 0) values[at % rows] = value;
    const bits = new Uint8Array(bitmapBytes(rows));
    for (let row = 0; row < rows; row++) if (next(100) < fill) bits[row >> 3]! |= 1 << (row & 7);
    // Long stretches of one code, and mixed codes.
    const Codes = isWide || entries > 256 ? Uint16Array : Uint8Array;
    const codes = new Codes(rows).map((_, row) =>
      next(3) === 0 ? next(entries) : Math.floor(row / 40) % entries,
    );
    const starts = BigInt64Array.from([-(2n ** 63n), ...cuts].sort((x, y) => (x < y ? -1 : 1)));
    return { rows, from, to, bits, values, codes, starts, entries };
  });

function check(property: (rows: Rows, lay: Lay) => void): void {
  fc.assert(
    fc.property(cases, (rows) => both((lay) => property(rows, lay))),
    { numRuns },
  );
}

describe('rows are counted as by the plain twins', () => {
  it('by the range of their integers', () => {
    check(({ from, to, bits, values, starts }, lay) => {
      const wanted = Uint32Array.from(starts, (_, i) => i);
      const counts = lay(wanted.slice());
      plain.countRanges(values, bits, from, to, starts, wanted);
      countRanges(lay(values), { bits: lay(bits), from, to }, lay(starts), counts);
      expect(Array.from(counts)).toEqual(Array.from(wanted));
    });
  });

  it('by code', () => {
    check(({ from, to, bits, codes, entries }, lay) => {
      const wanted = new Uint32Array(entries).fill(3);
      const counts = lay(wanted.slice());
      plain.countCodes(codes, bits, from, to, wanted);
      countCodes(lay(codes), { bits: lay(bits), from, to }, counts);
      expect(Array.from(counts)).toEqual(Array.from(wanted));
    });
  });

  it('by range and code', () => {
    check(({ from, to, bits, values, codes, starts, entries }, lay) => {
      const wanted = new Uint32Array(starts.length * entries);
      const counts = lay(wanted.slice());
      plain.countPairs(values, codes, entries, bits, from, to, starts, wanted);
      countPairs(lay(values), lay(codes), entries, { bits: lay(bits), from, to }, lay(starts), counts);
      expect(Array.from(counts)).toEqual(Array.from(wanted));
    });
  });
});
