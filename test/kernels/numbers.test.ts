import { expect, it } from 'vitest';
import { caseCount, fc } from '../cases.js';
import { bitmapBytes } from '../../engine/kernels/bitmap.js';
import {
  addCodes,
  countPairsOfGroups,
  gatherWords,
  groupRanges,
  groupsLength,
  middleOf,
  sumsOf,
  wordsPerSum,
  type CountedPairs,
} from '../../engine/kernels/numbers.js';
import { both } from './lay.js';
import * as plain from './plain/numbers.js';

const numRuns = caseCount(100, 10_000);

const integers = fc.oneof(
  fc.bigInt(-(2n ** 63n), 2n ** 63n - 1n),
  fc.bigInt(-200n, 200n),
  fc.constantFrom(-(2n ** 63n), 2n ** 63n - 1n, 0n, 2n ** 53n + 1n),
);
const doubles = fc.oneof(
  fc.double({ noNaN: true, noDefaultInfinity: true }),
  fc.constantFrom(
    0,
    -0,
    5e-324,
    -5e-324,
    2.2250738585072014e-308,
    2.225073858507201e-308,
    1.7976931348623157e308,
  ),
  fc.integer({ min: -50, max: 50 }),
);

/** Rows of which whole words of 64 are counted, or some; with stretches of one group, and mixed ones. */
const cases = fc
  .record({
    rows: fc.oneof(fc.nat(70), fc.integer({ min: 128, max: 400 })),
    ends: fc.tuple(fc.nat(), fc.nat()),
    isWhole: fc.boolean(),
    fill: fc.constantFrom(1, 50, 99, 100),
    stretch: fc.constantFrom(1, 3, 150),
    groupCount: fc.constantFrom(1, 4, 300),
    integers: fc.array(integers, { minLength: 1, maxLength: 40 }),
    doubles: fc.array(doubles, { minLength: 1, maxLength: 40 }),
    isWide: fc.boolean(),
  })
  .map(({ rows, ends, isWhole, fill, stretch, groupCount, isWide, ...values }) => {
    const [from, to] = isWhole
      ? [0, rows]
      : (ends.map((end) => end % (rows + 1)).sort((a, b) => a - b) as [number, number]);
    const bits = new Uint8Array(bitmapBytes(rows));
    for (let row = 0; row < rows; row++) if ((row * 7919) % 100 < fill) bits[row >> 3]! |= 1 << (row & 7);
    const groups = new Uint32Array(groupsLength(rows)).map(
      (_, row) => Math.floor(row / stretch) % groupCount,
    );
    const entries = values.integers.length;
    const Codes = isWide ? Uint16Array : Uint8Array;
    const codes = new Codes(rows).map((_, row) => (row * 31) % entries);
    const ints = BigInt64Array.from({ length: rows }, (_, row) => values.integers[row % entries]!);
    const floats = Float64Array.from(
      { length: rows },
      (_, row) => values.doubles[row % values.doubles.length]!,
    );
    return { rows, from, to, bits, groups, groupCount, codes, entries, ints, floats, ...values };
  });

const by = fc.constantFrom('all', 'groups', 'ranges');

it('sums and bounds of groups equal those of the plain loop', () => {
  fc.assert(
    fc.property(cases, by, ({ from, to, bits, groups, groupCount, ints, floats }, how) =>
      both((lay) => {
        const starts = BigInt64Array.from({ length: groupCount }, (_, group) => BigInt(group));
        const times = BigInt64Array.from(groups, BigInt);
        const ranges = { values: lay(times), starts: lay(starts), codesOfRange: 1 };
        const given = how === 'groups' ? lay(groups) : how === 'ranges' ? ranges : null;
        const counted = { bits: lay(bits), from, to };
        const rows = plain.rowsOf(bits, from, to, given && groups);
        for (const values of [ints, floats]) {
          const { summed, sums } = sumsOf(lay(values), counted, given, given === null ? 1 : groupCount);
          const bounds = values instanceof BigInt64Array ? new BigInt64Array(sums.buffer) : sums;
          const wanted = plain.sumsOf<bigint | number>(values, rows);
          expect([...summed]).toEqual([...wanted.keys()].sort((a, b) => a - b));
          for (const [i, group] of summed.entries()) {
            const at = i * wordsPerSum;
            const { count, sum, min, max } = wanted.get(group)!;
            expect(sums[at]).toBe(count);
            expect(bounds[at + 3] === min && bounds[at + 4] === max).toBe(true);
            if (typeof sum === 'bigint')
              expect(BigInt(sums[at + 1]!) + (BigInt(sums[at + 2]!) << 32n)).toBe(sum);
            else if (Number.isFinite(sum)) expect(near(sums[at + 1]!, sum, rows, values)).toBe(true);
          }
        }
      }),
    ),
    { numRuns },
  );
});

/** Whether two sums in different orders differ by no more than rounding. */
function near(
  a: number,
  b: number,
  rows: readonly { readonly row: number }[],
  values: ArrayLike<bigint | number>,
): boolean {
  const all = rows.reduce((sum, { row }) => sum + Math.abs(Number(values[row]!)), 0);
  return !Number.isFinite(all) || Math.abs(a - b) <= all * 1e-13;
}

function asMap({ pairs, counts }: CountedPairs): Map<string, number> {
  const found = new Map<string, number>();
  for (const [i, count] of counts.entries()) {
    const key = `${pairs[2 * i]},${pairs[2 * i + 1]}`;
    found.set(key, (found.get(key) ?? 0) + count);
  }
  return found;
}

it('pairs of codes or magnitudes and groups are counted', () => {
  fc.assert(
    fc.property(cases, ({ from, to, bits, groups, codes, ints, floats }) =>
      both((lay) => {
        const counted = { bits: lay(bits), from, to };
        const rows = plain.rowsOf(bits, from, to, groups);
        if (rows.length === 0) return;
        const ofCodes = countPairsOfGroups(lay(codes), counted, lay(groups), rows.length);
        expect(asMap(ofCodes)).toEqual(plain.countPairs(rows.map(({ row, group }) => [codes[row]!, group])));
        for (const values of [ints, floats]) {
          const { pairs, counts } = countPairsOfGroups(lay(values), counted, lay(groups), rows.length);
          expect(counts.reduce((sum, count) => sum + count, 0)).toBe(rows.length);
          // Every value is near the middle of a magnitude that is counted in its group, and magnitudes are in the order of values.
          const middles = [...counts.keys()].map(
            (i) => [pairs[2 * i + 1]!, signedMiddle(pairs[2 * i]!)] as const,
          );
          for (const { row, group } of rows) {
            const value = Number(values[row]!);
            const isNear = middles.some(
              ([other, middle]) =>
                other === group && Math.abs(middle - value) <= Math.abs(value) / 128 + 5e-324,
            );
            expect(isNear, `${value}`).toBe(true);
          }
        }
      }),
    ),
    { numRuns },
  );
});

function signedMiddle(magnitude: number): number {
  return magnitude === 0 ? 0 : Math.sign(magnitude) * middleOf(Math.abs(magnitude));
}

it('rows get the group of their range and code, and values of dictionaries', () => {
  fc.assert(
    fc.property(cases, ({ rows, from, to, bits, ints, codes, integers: entries }) =>
      both((lay) => {
        const counted = { bits: lay(bits), from, to };
        const starts = BigInt64Array.of(-(2n ** 63n), -100n, 0n, 7n, 2n ** 62n);
        const groups = lay(new Uint32Array(groupsLength(rows)));
        groups.fill(0);
        groupRanges({ values: lay(ints), starts: lay(starts), codesOfRange: 1000 }, counted, groups);
        addCodes(lay(codes), counted, groups);
        const target = lay(new BigInt64Array(groupsLength(rows)));
        gatherWords(lay(BigInt64Array.from(entries)), lay(codes), counted, target);
        for (const { row } of plain.rowsOf(bits, from, to, null)) {
          const range = starts.findLastIndex((start) => start <= ints[row]!);
          expect(groups[row]).toBe(range * 1000 + codes[row]!);
          expect(target[row]).toBe(entries[codes[row]!]);
        }
      }),
    ),
    { numRuns },
  );
});
