import { expect, it } from 'vitest';
import { caseCount, fc } from '../cases.js';
import { anyPattern, patternText } from '../model/any-pattern.js';
import { patternSearch } from '../../engine/patterns/pattern-search.js';
import { searchPattern } from '../../engine/patterns/search-pattern.js';
import { stringsOf } from '../kernels/strings.js';
import { queryDuckDb } from './duckdb.js';

/** A SQL literal of any text. */
function literal(text: string): string {
  return `decode(unhex('${Buffer.from(text).toString('hex')}'))`;
}

it('DuckDB finds random patterns in the same texts', async () => {
  const texts = fc.array(patternText, { minLength: 1, maxLength: 20 });
  await fc.assert(
    fc.asyncProperty(
      fc.array(anyPattern(), { minLength: 20, maxLength: 20 }),
      texts,
      async (patterns, all) => {
        const rows = all.map((text, i) => `(${i}, ${literal(text)})`).join(', ');
        const columns = patterns.map((pattern, k) => `regexp_matches(t, ${literal(pattern)}, 'c') AS p${k}`);
        const found = await queryDuckDb(
          `SELECT ${columns.join(', ')} FROM (VALUES ${rows}) AS v(i, t) ORDER BY i`,
        );
        const { offsets, bytes } = stringsOf(all.map((text) => Buffer.from(text)));
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
      },
    ),
    { numRuns: caseCount(30, 1000) },
  );
});
