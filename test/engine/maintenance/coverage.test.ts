import fc from 'fast-check';
import { expect, it } from 'vitest';
import { Coverage } from '../../../engine/store/manifest/coverage.js';

it('coverage returns the part of each run that no earlier run covered, as sets of positions would', () => {
  const runs = fc.array(
    fc.record({
      partition: fc.nat(2),
      firstOrdinal: fc.integer({ min: 1, max: 30 }),
      rows: fc.integer({ min: 1, max: 12 }),
    }),
    { maxLength: 30 },
  );
  fc.assert(
    fc.property(runs, (list) => {
      const coverage = new Coverage();
      const seen = new Set<string>();
      for (const each of list) {
        const run = { ...each, firstRow: 7 };
        const expected: string[] = [];
        for (let i = 0; i < run.rows; i++) expected.push(`${run.partition}:${run.firstOrdinal + i}:${7 + i}`);
        const isNew = (place: string): boolean => !seen.has(place.slice(0, place.lastIndexOf(':')));
        expect(coverage.touches(run)).toBe(!expected.every(isNew));
        const found: string[] = [];
        for (const part of coverage.missing(run))
          for (let i = 0; i < part.rows; i++)
            found.push(`${part.partition}:${part.firstOrdinal + i}:${part.firstRow + i}`);
        expect(found).toEqual(expected.filter(isNew));
        coverage.add(run);
        for (const place of expected) seen.add(place.slice(0, place.lastIndexOf(':')));
      }
    }),
  );
});
