import { expect, it } from 'vitest';
import { caseCount, fc } from '../cases.js';
import { between, seededRandom } from '../model/random.js';
import { beginning } from '../model/several.js';
import { anyFilter, filters, SeveralBed } from './several-bed.js';

it('pages of several agents are those of the rules, whatever is committed between them', async () => {
  await fc.assert(
    fc.asyncProperty(fc.integer(), async (seed) => {
      const random = seededRandom(seed);
      const bed = await SeveralBed.open(random, between(random, 2, 5));
      const known = [beginning];
      const one = <T>(list: readonly T[]): T => list[between(random, 0, list.length)]!;
      for (let step = 0; step < 25; step++) {
        if (step < 6 || random() < 0.4) await bed.commit();
        const kind = random();
        const filter = kind < 0.3 ? filters[0]! : kind < 0.5 ? one(filters) : anyFilter(random);
        const query = {
          limit: random() < 0.2 ? 1000 : between(random, 0, 8),
          after: random() < 0.5 ? one(known) : undefined,
          before: random() < 0.5 ? one(known) : undefined,
        };
        const page = await bed.page(query, filter);
        expect(page, JSON.stringify(query)).toEqual(await bed.expected(query, filter));
        known.push(...page.map(({ _cursor }) => _cursor));
      }
      await bed.archive.close();
    }),
    { numRuns: caseCount(60, 3000) },
  );
});

it('walks both ways hold each record once, by every size', async () => {
  await fc.assert(
    fc.asyncProperty(fc.integer(), fc.integer({ min: 1, max: 7 }), async (seed, size) => {
      const random = seededRandom(seed);
      const bed = await SeveralBed.open(random, between(random, 2, 5));
      for (let step = 0; step < 8; step++) await bed.commit();
      for (const filter of [...filters, anyFilter(random)]) {
        const all = await bed.expected({ limit: 1000, after: beginning }, filter);
        const forward = [];
        for (let after = beginning; ;) {
          const page = await bed.page({ limit: size, after }, filter);
          if (page.length === 0) break;
          forward.push(...page);
          after = page.at(-1)!._cursor;
        }
        expect(forward).toEqual(all);
        const backward = [];
        for (let before: string | undefined; ;) {
          const page = await bed.page({ limit: size, before }, filter);
          if (page.length === 0) break;
          backward.unshift(...page);
          before = page[0]!._cursor;
        }
        expect(backward).toEqual(all);
      }
      await bed.archive.close();
    }),
    { numRuns: caseCount(30, 1500) },
  );
});
