import { expect, it } from 'vitest';
import { fc } from '../../cases.js';
import { Coverage } from '../../../engine/store/manifest/coverage.js';

it('coverage returns the parts of each run that earlier runs cover, and those that none covers, as sets of positions would', () => {
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
        const known = coverage
          .covered(run)
          .flatMap(({ partition, firstOrdinal, rows }) =>
            Array.from({ length: rows }, (_, i) => `${partition}:${firstOrdinal + i}`),
          );
        expect(known).toEqual(
          expected.filter((place) => !isNew(place)).map((place) => place.slice(0, place.lastIndexOf(':'))),
        );
        coverage.add(run);
        for (const place of expected) seen.add(place.slice(0, place.lastIndexOf(':')));
      }
    }),
  );
});
