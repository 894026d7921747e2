import fc from 'fast-check';
import { expect, it } from 'vitest';
import { hasExpected } from '../../engine/store/far/far-cluster.js';
import { comparePositions, type Position } from '../../engine/terms/cursor.js';

const runs = fc
  .array(fc.record({ gap: fc.nat(3), rows: fc.integer({ min: 1, max: 5 }), hour: fc.nat(1) }), {
    maxLength: 6,
  })
  .map((steps) => {
    let [partition, next] = [1, 1];
    return steps.map(({ gap, rows, hour }) => {
      if (hour > 0) [partition, next] = [partition + 1, 1];
      const firstOrdinal = next + gap;
      next = firstOrdinal + rows;
      return { partition, firstOrdinal, rows };
    });
  });

const position = fc.record({ partition: fc.integer({ min: 0, max: 8 }), ordinal: fc.nat(30) });
const direction = fc.constantFrom('forward' as const, 'backward' as const);

it('an answer has every row that has to be there, as far as it goes, and rows of others do not stand for them', () => {
  const cases = fc.record({
    runs,
    others: fc.array(position),
    ends: fc.tuple(position, position),
    direction,
    limit: fc.integer({ min: 1, max: 40 }),
    gone: fc.nat(40),
  });
  fc.assert(
    fc.property(cases, ({ runs: expected, others, ends, direction, limit, gone }) => {
      const [from, to] = ends.sort(comparePositions) as [Position, Position];
      const keyOf = ({ partition, ordinal }: Position): string => `${partition} ${ordinal}`;
      const live = expected.flatMap(({ partition, firstOrdinal, rows }) =>
        Array.from({ length: rows }, (_, i) => ({ partition, ordinal: firstOrdinal + i })),
      );
      const isExpected = new Set(live.map(keyOf));
      const all = [...new Map([...live, ...others].map((each) => [keyOf(each), each])).values()]
        .filter((each) => comparePositions(each, from) >= 0 && comparePositions(each, to) <= 0)
        .sort(comparePositions);
      const answerOf = (rows: readonly Position[]): Parameters<typeof hasExpected>[1] => {
        const taken = direction === 'forward' ? rows.slice(0, limit) : rows.slice(-limit);
        return {
          partitions: Uint32Array.from(taken, ({ partition }) => partition),
          ordinals: Float64Array.from(taken, ({ ordinal }) => ordinal),
          isCut: taken.length >= limit,
        };
      };
      const question = { expected, from, to, direction };
      const whole = answerOf(all);
      expect(hasExpected(question, whole)).toBe(true);
      if (all.length === 0) return;
      // One row that the server has not.
      const lost = all[gone % all.length]!;
      const place = all.indexOf(lost);
      const isBehindCut = direction === 'forward' ? place >= limit : place < all.length - limit;
      const given = answerOf(all.filter((each) => each !== lost));
      expect(hasExpected(question, given)).toBe(isBehindCut || !isExpected.has(keyOf(lost)));
    }),
    { numRuns: 500 },
  );
});
