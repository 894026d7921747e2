import { describe, expect, it } from 'vitest';
import { caseCount, fc } from '../cases.js';
import { bitmapBytes } from '../../engine/kernels/bitmap.js';
import { hashIntegers } from '../../engine/kernels/value-filter.js';
import { DistinctValues, distinctExactMax } from '../../engine/numbers/distinct-values.js';
import { numbersOfRows } from '../../engine/numbers/group-numbers.js';
import { wantedFor, type NumberAnswer, type NumberFunction } from '../../engine/numbers/number-functions.js';
import { NumberTally } from '../../engine/numbers/number-tally.js';

const free = (): void => {};

/** Different numbers from 0 on, as their hashes. */
function added(from: number, to: number, into = new DistinctValues(free)): DistinctValues {
  const hashes = hashIntegers(
    BigInt64Array.from({ length: to - from }, (_, i) => BigInt(from + i)),
    to - from,
  );
  for (let i = 0; i < hashes.length; i += 2) into.add(hashes[i]!, hashes[i + 1]!);
  return into;
}

describe('different values', () => {
  it('are counted exactly up to ten thousand, with repeats', () => {
    for (const count of [0, 1, 7, 8, 5000, distinctExactMax]) {
      const values = added(0, count);
      added(0, Math.min(count, 100), values);
      expect([values.count(), values.isExact]).toEqual([count, true]);
    }
    expect(added(0, distinctExactMax + 1).isExact).toBe(false);
    const zero = new DistinctValues(free);
    zero.add(0, 0);
    zero.add(0, 0);
    expect(zero.count()).toBe(1);
  });

  it.each([10_001, 20_000, 65_536, 150_000, 300_000, 1_000_000])(
    'are estimated within two percent: %d',
    (count) => {
      for (const start of [0, 5_000_000, 123_456_789]) {
        const estimate = added(start, start + count).count();
        expect(Math.abs(estimate - count) / count).toBeLessThan(0.02);
      }
    },
  );

  it('do not depend on how they were divided and merged', () => {
    const parts = fc.array(fc.tuple(fc.nat(20_000), fc.nat(9000)), { minLength: 1, maxLength: 5 });
    fc.assert(
      fc.property(parts, fc.nat(4), (given, turn) => {
        const sets = () => given.map(([from, count]) => added(from, from + count));
        const merged = (sets: readonly DistinctValues[]): DistinctValues => {
          const all = new DistinctValues(free);
          for (const each of sets) all.addAll(each);
          return all;
        };
        const together = new DistinctValues(free);
        for (const [from, count] of given) added(from, from + count, together);
        const turned = [...sets().slice(turn), ...sets().slice(0, turn)].reverse();
        for (const other of [merged(sets()), merged(turned)])
          expect([other.count(), other.isExact]).toEqual([together.count(), together.isExact]);
      }),
      { numRuns: caseCount(15, 300) },
    );
  });
});

/** The numbers of integers, which were added in parts. */
function answered(
  parts: readonly (readonly bigint[])[],
  functions: readonly NumberFunction[],
): readonly NumberAnswer[] {
  const tally = new NumberTally(['int'], functions, free);
  for (const part of parts) {
    const values = BigInt64Array.from(part);
    const counted = { bits: new Uint8Array(bitmapBytes(part.length)).fill(0xff), from: 0, to: part.length };
    const rows = {
      counted,
      count: part.length,
      time: null,
      starts: new BigInt64Array(0),
      numbered: null,
      codes: 0,
    };
    const column = { kind: 'int64' as const, length: part.length, values, validity: null };
    tally.add(numbersOfRows(rows, [{ column, wanted: wantedFor(functions) }]), () => 0);
  }
  return tally.answer([0])[0]!;
}

describe('numbers of many parts', () => {
  it('have exact sums beyond 64 bits', () => {
    const [most, least] = [2n ** 63n - 1n, -(2n ** 63n)];
    for (const value of [most, least]) {
      const part = new Array<bigint>(20_000).fill(value);
      const parts = Array.from({ length: 300 }, () => part);
      expect(answered(parts, ['sum', 'avg', 'min'])).toEqual([value * 6_000_000n, Number(value), value]);
    }
    expect(answered([[most, most], [least], [], [5n]], ['sum'])).toEqual([most + 4n]);
    expect(answered([[]], ['sum', 'avg', 'min', 'p50', 'distinct'])).toEqual([null, null, null, null, null]);
  });

  it('do not depend on how integers are divided', () => {
    const functions = ['sum', 'avg', 'min', 'max', 'p50', 'p90', 'p99', 'distinct'] as const;
    const values = fc.array(fc.oneof(fc.bigInt(-300n, 300n), fc.bigInt(-(2n ** 63n), 2n ** 63n - 1n)), {
      maxLength: 300,
    });
    fc.assert(
      fc.property(values, fc.integer({ min: 1, max: 40 }), (given, length) => {
        const parts = Array.from({ length: Math.ceil(given.length / length) }, (_, i) =>
          given.slice(i * length, (i + 1) * length),
        );
        expect(answered(parts.reverse(), functions)).toEqual(answered([given], functions));
      }),
      { numRuns: caseCount(200, 5000) },
    );
  });
});
