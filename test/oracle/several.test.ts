import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { openRealDirectory } from '../../engine/index.js';
import { formatCursor } from '../../engine/core/cursor.js';
import { caseCount, fc } from '../cases.js';
import { between, seededRandom } from '../model/random.js';
import { beginning } from '../model/several.js';
import { anyFilter, SeveralBed } from '../several/several-bed.js';
import { queryAllDuckDb } from './duckdb.js';
import { recordOf, sqlOf } from './sql-query.js';

const limit = 1_000_000;

it('groups and patterns over several agents find what DuckDB finds in the files of each', async () => {
  const place = await mkdtemp(join(tmpdir(), 'logstrata-oracle-several-'));
  onTestFinished(() => rm(place, { recursive: true, force: true }));
  let folders = 0;
  await fc.assert(
    fc.asyncProperty(fc.integer(), async (seed) => {
      const random = seededRandom(seed);
      const folder = join(place, `${folders++}`);
      const bed = await SeveralBed.open(
        random,
        between(random, 2, 5),
        undefined,
        await openRealDirectory(folder, { create: true }),
      );
      for (let step = 0; step < 12; step++) await bed.commit(40, 'load');
      const asked: { readonly own: string[]; readonly of: readonly number[] }[] = [];
      const statements: string[] = [];
      for (let n = 0; n < 100; n++) {
        const filter = anyFilter(random);
        const own = (await bed.page({ limit, after: beginning }, filter)).map(({ _cursor }) => {
          const [, agent, ...positions] = _cursor.split('.');
          return `${agent} ${positions[Number(agent) - 1]}`;
        });
        const of: number[] = [];
        for (const [k, { name, schema }] of bed.stores.entries()) {
          const predicates = filter.predicates(schema);
          if (predicates === null || (await bed.stores[k]!.stats()).segments === 0) continue;
          of.push(k);
          statements.push(sqlOf({ limit, predicates }, schema, join(folder, name)));
        }
        asked.push({ own: own.sort(), of });
      }
      const answers = await queryAllDuckDb(statements);
      for (const { own, of } of asked) {
        const found = of.flatMap((k) =>
          answers.shift()!.map((row) => {
            const { position } = recordOf(row, bed.stores[k]!.schema);
            return `${k + 1} ${formatCursor(position)}`;
          }),
        );
        expect(own).toEqual(found.sort());
      }
      await bed.archive.close();
    }),
    { numRuns: caseCount(10, 100) },
  );
});
