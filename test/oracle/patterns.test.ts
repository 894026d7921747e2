import { expect, it } from 'vitest';
import { caseCount, fc } from '../cases.js';
import { anyPattern, patternText } from '../model/any-pattern.js';
import { patternSearch } from '../../engine/patterns/pattern-search.js';
import { searchPattern } from '../../engine/patterns/search-pattern.js';
import { stringsOf } from '../kernels/strings.js';
import { queryDuckDb } from './duckdb.js';
import { regexpMatches, text } from './sql-query.js';

/**
 * Patterns for which RE2 does as its definition, Go and JavaScript do: it finds `\B` also between the bytes of one character, and takes
 * the beginnings of alternatives together though only one of them ignores case.
 */
const searched = anyPattern().filter(
  (pattern) => !pattern.includes('\\B') && !(pattern.includes('(?i') && pattern.includes('|')),
);

it('DuckDB finds random patterns in the same texts', async () => {
  const texts = fc.array(patternText, { minLength: 1, maxLength: 20 });
  await fc.assert(
    fc.asyncProperty(fc.array(searched, { minLength: 20, maxLength: 20 }), texts, async (patterns, all) => {
      const rows = all.map((value, i) => `(${i}, ${text(value)})`).join(', ');
      const columns = patterns.map((pattern, k) => `${regexpMatches('t', pattern)} AS p${k}`);
      const found = await queryDuckDb(
        `SELECT ${columns.join(', ')} FROM (VALUES ${rows}) AS v(i, t) ORDER BY i`,
      );
      const { offsets, bytes } = stringsOf(all.map((value) => Buffer.from(value)));
      patterns.forEach((pattern, k) => {
        const bits = new Uint8Array((all.length + 7) >> 3).fill(0xff);
        const steps = patternSearch(searchPattern(pattern)).narrow({ offsets, bytes }, bits, 0, all.length);
        expect(steps.next().done).toBe(true);
        const own = all.map((_, i) => ((bits[i >> 3]! >> (i & 7)) & 1) === 1);
        expect({ pattern, all, found: own }).toEqual({
          pattern,
          all,
          found: found.map((row) => row[`p${k}`]),
        });
      });
    }),
    { numRuns: caseCount(30, 1000) },
  );
});
