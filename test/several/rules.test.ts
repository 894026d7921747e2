import { existsSync } from 'node:fs';
import { pathToFileURL } from 'node:url';
import { join } from 'node:path';
import { expect } from 'vitest';
import { caseCount, fc } from '../cases.js';
import { between, seededRandom } from '../model/random.js';
import { beginning, pageOfSeveral, type ListedAgent, type ListedRecord } from '../model/several.js';
import { itUnless } from '../needs.js';
import { root } from '../tidy/source-files.js';

// The rules as a program of their own, which is beside the repository where it is developed.
const path = ['../shared', '../../shared']
  .map((folder) => join(root, folder, 'lab/several-agents/model.mjs'))
  .find((each) => existsSync(each));

interface Rules {
  answer(
    agents: readonly { name: string; records: readonly { position: string; time: number | null }[] }[],
    query: { limit: number; after?: string; before?: string },
  ): readonly { readonly _cursor: string }[];
}

const whyNot = path === undefined ? 'the rules are not here as a program' : null;

itUnless(whyNot, 'the pages that tests expect are those of the rules', async () => {
  const rules = (await import(pathToFileURL(path!).href)) as Rules;
  fc.assert(
    fc.property(fc.integer(), (seed) => {
      const random = seededRandom(seed);
      const agents = Array.from({ length: between(random, 2, 5) }, (_, k): ListedAgent => {
        const cursors = Array.from({ length: between(random, 0, 9) }, () => {
          const hour = between(random, 0, 4);
          return hour.toString(16).padStart(6, '0') + between(random, 1, 40).toString(16).padStart(10, '0');
        });
        const records = [...new Set(cursors)].sort().map((_cursor): ListedRecord => {
          const time = random() < 0.2 ? null : between(random, 0, 5) * 3_600_000 + between(random, 0, 6);
          return { _cursor, time };
        });
        return { name: `agent-${'dbca'[k]}`, fields: ['time'], time: 'time', records, matches: () => true };
      });
      const listed = agents.map(({ name, records }) => ({
        name,
        records: records.map(({ _cursor, time }) => ({ position: _cursor, time: time as number | null })),
      }));
      const known = [beginning, ...pageOfSeveral(agents, { limit: 99 }).map(({ _cursor }) => _cursor)];
      for (let n = 0; n < 8; n++) {
        const one = (): string | undefined =>
          random() < 0.4 ? undefined : known[between(random, 0, known.length)];
        const [limit, after, before] = [between(random, 0, 9), one(), one()];
        const query = { limit, ...(after && { after }), ...(before && { before }) };
        expect(pageOfSeveral(agents, query).map(({ _cursor }) => _cursor)).toEqual(
          rules.answer(listed, query).map(({ _cursor }) => _cursor),
        );
      }
    }),
    { numRuns: caseCount(200, 5000) },
  );
});
