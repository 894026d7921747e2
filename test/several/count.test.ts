import { expect, it } from 'vitest';
import { caseCount, fc } from '../cases.js';
import { between, seededRandom } from '../model/random.js';
import { countIn, countJson } from '../../server/http/count-request.js';
import { parseSeveralCount } from '../../server/http/several-request.js';
import { beginning, type ListedRecord } from '../model/several.js';
import { SeveralBed, filters as all } from './several-bed.js';

const everything = all[0]!;

/** Filters as a query string has them, and whether a record with all fields matches. */
const filters: readonly (readonly [string, (record: ListedRecord) => boolean])[] = [
  ['', () => true],
  ['message__like=1', ({ message }) => String(message ?? '').includes('1')],
  ['level__exists=false', ({ level }) => (level ?? null) === null],
  ['level__gt=1', ({ level }) => Number(level ?? 0) > 1],
  [
    'any=level__eq%3D1&any=message__like%3D3',
    ({ level, message }) => level === 1 || String(message).includes('3'),
  ],
];

interface Answer {
  readonly agent: string;
  readonly count: number;
  readonly of?: { readonly level: { readonly sum: number | null; readonly distinct: number | null } };
  readonly values?: {
    readonly top: { readonly value: unknown; readonly count: number }[];
    readonly nulls: number;
  };
}

async function count(bed: SeveralBed, rawQuery: string): Promise<Answer> {
  const { store } = bed;
  const asked = parseSeveralCount(store, rawQuery, { schema: store.schema, timezone: 'UTC', now: bed.now });
  return JSON.parse(countJson(store.name, asked, await countIn(store, asked, undefined))) as Answer;
}

const has = (bed: SeveralBed, field: string): boolean =>
  bed.store.schema.fields.some(({ name }) => name === field);

it('adds up the records that pages of several agents have, between the same cursors', async () => {
  await fc.assert(
    fc.asyncProperty(fc.integer(), async (seed) => {
      const random = seededRandom(seed);
      const bed = await SeveralBed.open(random, between(random, 2, 5));
      for (let step = 0; step < 8; step++) await bed.commit();
      const known = [
        beginning,
        ...(await bed.expected({ limit: 1000 }, everything)).map(({ _cursor }) => _cursor),
      ];
      for (let step = 0; step < 8; step++) {
        const [filter, matches] = filters[between(random, 0, filters.length)]!;
        if ([...filter.matchAll(/(\w+)__/g)].some(([, field]) => !has(bed, field!))) continue;
        const cursor = (): string | undefined =>
          random() < 0.5 ? known[between(random, 0, known.length)] : undefined;
        const [after, before] = [cursor(), cursor()];
        const page = await bed.expected({ limit: 1000, after: after ?? beginning, before }, everything);
        const records = page.filter(matches);
        const bounds = [filter, after && `after=${after}`, before && `before=${before}`]
          .filter(Boolean)
          .join('&');
        expect(await count(bed, bounds)).toEqual({ agent: bed.store.name, count: records.length });
        if (!has(bed, 'level')) continue;
        const levels = records.map(({ level }) => level ?? null).filter((level) => level !== null);
        const answer = await count(bed, `${bounds}&by=level&top=9`);
        const counted = Object.fromEntries(answer.values!.top.map((one) => [String(one.value), one.count]));
        expect(counted).toEqual(
          Object.fromEntries(
            [...new Set(levels)].map((level) => [
              String(level),
              levels.filter((other) => other === level).length,
            ]),
          ),
        );
        expect(answer.values!.nulls).toBe(records.length - levels.length);
        const { of } = await count(bed, `${bounds}&of=level&fn=sum,distinct`);
        expect(of).toEqual({
          level: {
            sum: levels.length === 0 ? null : levels.reduce<number>((sum, level) => sum + Number(level), 0),
            distinct: levels.length === 0 ? null : new Set(levels).size,
          },
        });
      }
      await bed.archive.close();
    }),
    { numRuns: caseCount(25, 500) },
  );
}, 60_000);

it('refuses fields of two types, and names both agents', async () => {
  for (let seed = 0; ; seed++) {
    const bed = await SeveralBed.open(seededRandom(seed), 4);
    const types = new Set(
      bed.stores.flatMap(({ schema }) => schema.fields.find(({ name }) => name === 'status')?.type ?? []),
    );
    if (types.size > 1) {
      for (const query of ['by=status', 'of=status&fn=distinct'])
        await expect(count(bed, query)).rejects.toMatchObject({
          status: 400,
          parameter: query.slice(0, 2),
          detail: expect.stringMatching(
            /^field "status" is of type (\w+) in agent "agent-\w" and of type (?!\1)\w+ in agent "agent-\w"/,
          ),
        });
      await expect(count(bed, 'by=nowhere')).rejects.toMatchObject({ status: 400, parameter: 'by' });
      await expect(count(bed, 'nowhere__eq=1')).rejects.toMatchObject({ status: 400 });
      await expect(count(bed, 'after=079bd70000000007')).rejects.toMatchObject({
        status: 400,
        parameter: 'after',
      });
      await bed.archive.close();
      return;
    }
    await bed.archive.close();
  }
});
