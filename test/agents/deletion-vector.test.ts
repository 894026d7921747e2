import { describe, expect, it } from 'vitest';
import { decodeZ85, readStoredVector, readVector } from '../../agents/archive/deletion-vector.js';
import { deletedOfSpans, encodeDeleted } from '../../engine/store/attached/deleted-rows.js';
import { spansOfFile } from '../../engine/store/attached/span-placements.js';
import { caseCount, fc, seed } from '../cases.js';
import { storedVector, vectorBytes, z85 } from './vector-bytes.js';

/** Ascending rows: single ones and runs, some many, in several containers and parts. */
const rowSets = fc
  .array(
    fc.tuple(fc.oneof(fc.nat(300_000), fc.nat(2 ** 33)), fc.oneof(fc.constant(1), fc.nat(200), fc.nat(9000))),
    { maxLength: 8 },
  )
  .map((runs) => {
    const rows = new Set<number>();
    for (const [from, count] of runs) for (let row = from; row < from + count; row++) rows.add(row);
    return [...rows].toSorted((a, b) => a - b);
  });

function rowsOf(ranges: readonly (readonly [number, number])[]): number[] {
  return ranges.flatMap(([from, to]) => Array.from({ length: to - from }, (_, i) => from + i));
}

describe('a deletion vector', () => {
  it('has the rows that were written', () => {
    fc.assert(
      fc.property(rowSets, fc.boolean(), (rows, hasRuns) => {
        const vector = vectorBytes(rows, hasRuns);
        expect(rowsOf(readVector(vector))).toEqual(rows);
        expect(rowsOf(readStoredVector(storedVector(vector)))).toEqual(rows);
        expect(Buffer.from(decodeZ85(z85(vector)).subarray(0, vector.length)).equals(vector)).toBe(true);
      }),
      { seed, numRuns: caseCount(60, 1000) },
    );
  });

  it('is read as the specification of Delta has it', () => {
    const bytes = decodeZ85('^Bg9^0rr910000000000iXQKl0rr91000f55c8Xg0@@D72lkbi5=-{L');
    expect(rowsOf(readVector(bytes.subarray(0, 44)))).toEqual([3, 4, 7, 11, 18, 29]);
  });

  it('that is damaged is an error or has other rows, in bounded time and memory', () => {
    const whole = vectorBytes([1, 5, 6, 7, 70_000, 2 ** 32 + 3], true);
    const plain = vectorBytes([...Array.from({ length: 5000 }, (_, i) => 2 * i), 2 ** 20], false);
    fc.assert(
      fc.property(
        fc.constantFrom(whole, plain),
        fc.array(fc.tuple(fc.nat(60), fc.nat(255)), { maxLength: 6 }),
        fc.nat(plain.length),
        (vector, changes, end) => {
          const bytes = Buffer.from(vector.subarray(0, end));
          for (const [at, byte] of changes) if (at < bytes.length) bytes[at] = byte;
          try {
            const ranges = readVector(bytes);
            expect(ranges.length).toBeLessThanOrEqual(4 * bytes.length);
          } catch (error) {
            expect(error).toBeInstanceOf(Error);
          }
        },
      ),
      { seed, numRuns: caseCount(3000, 50_000) },
    );
    const stored = storedVector(whole);
    stored[20]! ^= 1;
    expect(() => readStoredVector(stored)).toThrow('checksum');
    expect(() => decodeZ85('abcd')).toThrow('no text of Z85');
    expect(() => decodeZ85('abc d')).toThrow('no text of Z85');
  });
});

it('deleted rows are known by the spans of a file', () => {
  const counts = fc.array(fc.integer({ min: 1, max: 70_000 }), { minLength: 1, maxLength: 4 });
  const ranges = fc.array(fc.tuple(fc.nat(200_000), fc.nat(500)), { maxLength: 20 });
  fc.assert(
    fc.property(counts, ranges, (rowGroupRows, found) => {
      const rows = rowGroupRows.reduce((a, b) => a + b);
      const wanted = found
        .map(([from, count]) => [from, Math.min(rows, from + count)] as const)
        .filter(([from, to]) => from < to)
        .toSorted(([a], [b]) => a - b);
      const deleted = encodeDeleted(wanted);
      const expected = new Set(rowsOf(wanted));
      expect(deleted.rows).toBe(expected.size);
      const spans = spansOfFile(rowGroupRows);
      const bits = deletedOfSpans(deleted, spans);
      let first = 0;
      const is: number[] = [];
      spans.forEach(({ from, to }, span) => {
        const own = bits.get(span);
        for (let i = 0; i < to - from; i++)
          if (own !== undefined && (own[i >> 3]! >> (i & 7)) & 1) is.push(first + i);
        first += to - from;
      });
      expect(is).toEqual([...expected].toSorted((a, b) => a - b));
      expect(() => deletedOfSpans(encodeDeleted([[rows, rows + 1]]), spans)).toThrow('behind the end');
    }),
    { seed, numRuns: caseCount(30, 300) },
  );
});
