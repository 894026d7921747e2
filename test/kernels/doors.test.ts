import { describe, expect, it } from 'vitest';
import * as plainBitmap from './plain/bitmap.js';
import { selectCodes as selectPlainCodes } from './plain/dictionary-select.js';
import { caseCount, fc } from '../cases.js';
import * as bitmap from '../../engine/kernels/bitmap.js';
import { copyBytes, copyFromShared, copyShifted } from '../../engine/kernels/copy.js';
import { selectFloat64, selectInt64 } from '../../engine/kernels/compare.js';
import { selectCodes } from '../../engine/kernels/dictionary-select.js';
import { kernelNeedle } from '../../engine/kernels/needle.js';
import * as strings from '../../engine/kernels/substring.js';
import * as plainStrings from './plain/substring.js';
import { both } from './lay.js';
import { stringsOf } from './strings.js';
import { expectEqual } from '../expect-equal.js';

const numRuns = caseCount(30, 3000);
const rowsMax = 3000;

/** A range of rows that begins at a multiple of 8. */
const ranges = fc
  .tuple(fc.nat(rowsMax), fc.nat(rowsMax))
  .map(([a, b]) => ({ from: Math.min(a, b) & ~7, to: Math.max(a, b) }));

/** Bits outside the rows of the range must not change. */
function expectSameBits(got: Uint8Array, wanted: Uint8Array): void {
  expectEqual(Buffer.compare(got, wanted), 0);
}

describe('the TypeScript functions that call the scan kernels', () => {
  it('copy bytes and shifted words like a naive loop, and write nothing else', () => {
    const lengthMax = 500;
    const place = fc.tuple(fc.nat(lengthMax), fc.nat(lengthMax), fc.nat(100), fc.integer());
    fc.assert(
      fc.property(place, ([a, b, at, shift]) => {
        const [from, to] = a < b ? [a, b] : [b, a];
        const words = Uint32Array.from({ length: lengthMax }, (_, i) => i * 2_654_435_761);
        both((lay) => {
          const target = lay(new Uint32Array(lengthMax + 100).fill(7));
          copyShifted(lay(words), from, to, shift, target, at);
          const wanted = new Uint32Array(lengthMax + 100).fill(7);
          wanted.set(
            words.subarray(from, to).map((word) => word + shift),
            at,
          );
          expectEqual(target, wanted);
          const bytes = lay(new Uint8Array(lengthMax + 100).fill(7));
          copyBytes(lay(Uint8Array.from(words)), from, to, bytes, at);
          const wantedBytes = new Uint8Array(lengthMax + 100).fill(7);
          wantedBytes.set(Uint8Array.from(words).subarray(from, to), at);
          expectEqual(bytes, wantedBytes);
        });
      }),
      { numRuns },
    );
  });

  it('copy bytes out of the shared memory like a naive loop, at any beginning and end', () => {
    const lengthMax = 150_000;
    const bytes = Uint8Array.from({ length: lengthMax }, (_, i) => Math.imul(i, 2_654_435_761) >>> 24);
    const place = fc.tuple(fc.nat(lengthMax), fc.nat(lengthMax), fc.nat(20));
    fc.assert(
      fc.property(fc.oneof(place, fc.tuple(fc.nat(300), fc.nat(300), fc.nat(20))), ([a, b, at]) => {
        const [from, to] = a < b ? [a, b] : [b, a];
        const wanted = new Uint8Array(lengthMax + 20).fill(7);
        wanted.set(bytes.subarray(from, to), at);
        both((lay) => {
          const target = new Uint8Array(lengthMax + 20).fill(7);
          copyFromShared(lay(bytes).subarray(from, to), target, at);
          expect(Buffer.compare(target, wanted)).toBe(0);
        });
      }),
      { numRuns },
    );
  });

  it('compare integers and doubles like a naive loop', () => {
    const int = fc.oneof(
      fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }),
      fc.bigInt({ min: -3n, max: 3n }),
      fc.constantFrom(-(2n ** 63n), 2n ** 63n - 1n, 2n ** 53n, 2n ** 53n + 1n),
    );
    fc.assert(
      fc.property(
        fc.array(int, { minLength: 1, maxLength: 40 }),
        int,
        int,
        ranges,
        fc.boolean(),
        (some, a, b, { from, to }, outside) => {
          const ints = BigInt64Array.from({ length: rowsMax }, (_, row) => some[row % some.length]!);
          const doubles = Float64Array.from(ints, Number);
          const [low, high] = a < b ? [a, b] : [b, a];
          both((lay) => {
            for (const kind of ['int', 'float'] as const) {
              const out = lay(new Uint8Array((rowsMax + 7) >> 3).fill(0xff));
              const flip = outside ? 0xff : 0;
              if (kind === 'int') selectInt64(lay(ints), from, to, low, high, flip, out);
              else selectFloat64(lay(doubles), from, to, Number(low), Number(high), flip, out);
              for (let row = from; row < to; row++) {
                const isWithin =
                  kind === 'int'
                    ? ints[row]! >= low && ints[row]! <= high
                    : doubles[row]! >= Number(low) && doubles[row]! <= Number(high);
                if (((out[row >> 3]! >> (row & 7)) & 1) !== Number(isWithin !== outside)) {
                  expect.fail(`row ${row} of ${kind}`);
                }
              }
              expect(out.subarray((to + 7) >> 3).every((byte) => byte === 0xff)).toBe(true);
            }
          });
        },
      ),
      { numRuns },
    );
  });

  it('look up codes like the plain twin', () => {
    fc.assert(
      fc.property(
        ranges,
        fc.constantFrom(1, 3, 200, 256, 257, 5000),
        fc.nat(),
        ({ from, to }, entries, seed) => {
          const codes = entries <= 256 ? new Uint8Array(rowsMax) : new Uint16Array(rowsMax);
          for (let row = 0; row < rowsMax; row++) codes[row] = ((row * 7919 + seed) >>> 3) % entries;
          const wanted = Uint8Array.from({ length: entries }, (_, entry) => Number((entry + seed) % 3 === 0));
          const expected = new Uint8Array((rowsMax + 7) >> 3);
          selectPlainCodes(codes, wanted, from, to, expected);
          both((lay) => {
            const out = lay(new Uint8Array(expected.length));
            selectCodes(lay(codes), lay(wanted), from, to, out);
            expectSameBits(out, expected);
          });
        },
      ),
      { numRuns },
    );
  });

  it('combine, count and list selections like the plain twins', () => {
    const bytes = fc.uint8Array({ minLength: 600, maxLength: 600 });
    fc.assert(
      fc.property(bytes, bytes, fc.nat(4800), fc.nat(4800), (a, b, one, other) => {
        const [from, to] = one < other ? [one, other] : [other, one];
        const wanted = Uint8Array.from(a);
        plainBitmap.andRange(wanted, b, from & ~7, to);
        const wantedRows = new Uint32Array(4800);
        const wantedCount = plainBitmap.listRange(a, from, to, wantedRows, 3);
        both((lay) => {
          const bits = lay(Uint8Array.from(a));
          bitmap.andRange(bits, lay(b), from & ~7, to);
          expectSameBits(bits, wanted);
          expect(bitmap.countRange(lay(a), from, to)).toBe(plainBitmap.countRange(a, from, to));
          const rows = lay(new Uint32Array(4800));
          expect(bitmap.listRange(lay(a), from, to, rows, 3)).toBe(wantedCount);
          expect(rows.subarray(0, wantedCount)).toEqual(wantedRows.subarray(0, wantedCount));
          const short = new Uint16Array(4800);
          expect(bitmap.listRange(lay(a), from, to, short, 3)).toBe(wantedCount);
          expect([...short.subarray(3, wantedCount)]).toEqual([...wantedRows.subarray(3, wantedCount)]);
          const [spread, wantedSpread] = [lay(new Uint8Array(to)), new Uint8Array(to)];
          plainBitmap.spreadBits(a, to, wantedSpread);
          bitmap.spreadBits(lay(a), to, spread);
          expectSameBits(spread, wantedSpread);
        });
      }),
      { numRuns },
    );
  });

  it('search strings like the plain twins, also in text so periodic that the plain code takes over', () => {
    const texts = fc.array(
      fc.oneof(
        fc.string({ unit: fc.constantFrom('a', 'B', 'b', '-', 'é'), maxLength: 40 }),
        fc.constantFrom('a'.repeat(60), `${'aB'.repeat(30)}c`),
      ),
      { minLength: 1, maxLength: 60 },
    );
    const needles = fc.oneof(
      fc.string({ unit: fc.constantFrom('a', 'b', '-', 'é'), minLength: 1, maxLength: 20 }),
      fc.constantFrom('a'.repeat(30), `${'ab'.repeat(15)}d`),
    );
    fc.assert(
      fc.property(texts, needles, ranges, (some, needle, { from, to }) => {
        const parts = Array.from({ length: rowsMax }, (_, row) => Buffer.from(some[row % some.length]!));
        const { bytes, offsets } = stringsOf(parts);
        const folded = Buffer.from(needle);
        const tables = strings.buildSearchTables(folded);
        const caseless = kernelNeedle(folded, true);
        const exact = kernelNeedle(folded, false);
        const wanted = (select: (out: Uint8Array) => void): Uint8Array => {
          const out = new Uint8Array((rowsMax + 7) >> 3);
          select(out);
          return out;
        };
        const { selectContaining, selectEqual, selectPrefix, selectSuffix } = plainStrings;
        const expected = [
          wanted((out) => selectContaining(offsets, bytes, folded, from, to, out)),
          wanted((out) => selectEqual(offsets, bytes, folded, from, to, out)),
          wanted((out) => selectPrefix(offsets, bytes, folded, from, to, out)),
          wanted((out) => selectSuffix(offsets, bytes, folded, from, to, out)),
        ];
        both((lay) => {
          const [o, b] = [lay(offsets), lay(bytes)];
          const outs = expected.map((bits) => lay(new Uint8Array(bits.length)));
          strings.selectContaining(o, b, tables, caseless, from, to, outs[0]!);
          strings.selectEqual(o, b, exact, from, to, outs[1]!);
          strings.selectPrefix(o, b, caseless, from, to, outs[2]!);
          strings.selectSuffix(o, b, caseless, from, to, outs[3]!);
          outs.forEach((out, i) => expectSameBits(out, expected[i]!));
        });
      }),
      { numRuns },
    );
  });
});
