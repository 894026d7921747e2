import { expect, it } from 'vitest';
import { caseCount, fc } from '../cases.js';
import { between, seededRandom } from '../model/random.js';
import { beginning, pageOfSeveral, type ListedRecord } from '../model/several.js';
import { serve } from '../server/running.js';
import { Caller } from '../../server/http/access.js';
import { recordsOf, SeveralBed } from './several-bed.js';

const names = (bed: SeveralBed): string => bed.stores.map(({ name }) => name).join();

async function served(
  bed: SeveralBed,
  options = {},
): Promise<(path: string, init?: RequestInit) => Promise<Response>> {
  const lookup = (name: string) => bed.stores.find((store) => store.name === name);
  const { address } = await serve('node', bed.stores[0]!, { lookup, ...options });
  return (path, init) => fetch(`${address}/api/query/${path}`, init);
}

/** A filter as a query string has it, and whether a record of an agent with these fields matches it. */
type Case = readonly [string, (record: ListedRecord, has: (field: string) => boolean) => boolean];

const text = (record: ListedRecord, field: string): string => String(record[field] ?? '');
const cases: readonly Case[] = [
  ['', () => true],
  ['message__like=1', (record) => text(record, 'message').includes('1')],
  ['level__exists=false', (record, has) => !has('level') || record['level'] === null],
  ['level__exists=true', (record) => (record['level'] ?? null) !== null],
  [
    'level__gt=1&message__like=2',
    (record) => Number(record['level'] ?? 0) > 1 && text(record, 'message').includes('2'),
  ],
  ['level__ne=1', (record) => (record['level'] ?? null) !== null && record['level'] !== 1],
  [
    'any=level__eq%3D1&any=message__like%3D3',
    (record) => record['level'] === 1 || text(record, 'message').includes('3'),
  ],
  [
    'any=level__exists%3Dfalse&any=message__like%3D3',
    (record, has) => !has('level') || record['level'] === null || text(record, 'message').includes('3'),
  ],
  ['any=level__eq%3D1&any=level__eq%3D2', (record) => record['level'] === 1 || record['level'] === 2],
  ['level__in=0&level__in=3', (record) => record['level'] === 0 || record['level'] === 3],
  [
    '*__like=record%201',
    (record) =>
      ['message', 'status'].some(
        (field) => typeof record[field] === 'string' && text(record, field).includes('record 1'),
      ),
  ],
];

it('the route answers several agents as the rules say, in every format', async () => {
  await fc.assert(
    fc.asyncProperty(fc.integer(), async (seed) => {
      const random = seededRandom(seed);
      const bed = await SeveralBed.open(random, between(random, 2, 5));
      const ask = await served(bed);
      for (let step = 0; step < 8; step++) await bed.commit();
      const known = [beginning];
      const all = await bed.listed({ matches: () => true, predicates: () => [] });
      for (let step = 0; step < 12; step++) {
        const [filter, matches] = cases[between(random, 0, cases.length)]!;
        const fields = [...new Set(all.flatMap((agent) => agent.fields))];
        const isKnown = [...filter.matchAll(/(?:^|[&=])(\w+)__/g)].every(([, field]) =>
          fields.includes(field!),
        );
        const query = {
          limit: between(random, 0, 9),
          after: random() < 0.5 ? known[between(random, 0, known.length)] : undefined,
          before: random() < 0.5 ? known[between(random, 0, known.length)] : undefined,
          fields: random() < 0.3 ? fields.filter(() => random() < 0.5).reverse() : undefined,
        };
        const { limit, after, before } = query;
        const path = [
          `${names(bed)}?limit=${limit}`,
          filter,
          after && `after=${after}`,
          before && `before=${before}`,
          query.fields && `fields=${query.fields.join()}`,
        ];
        const separator = random() < 0.5 ? ',' : '%2C';
        const target = path
          .filter(Boolean)
          .join('&')
          .replace(names(bed), names(bed).replaceAll(',', separator));
        const response = await ask(target);
        if (!isKnown) {
          expect(response.status, target).toBe(400);
          continue;
        }
        expect(response.status, target).toBe(200);
        const agents = all.map((agent) => ({
          ...agent,
          matches: (record: ListedRecord) => matches(record, (field) => agent.fields.includes(field)),
        }));
        const expected = pageOfSeveral(agents, query);
        const body = await response.text();
        expect(recordsOf(body), target).toEqual(expected);
        for (const record of recordsOf(body))
          expect(Object.keys(record).slice(0, 2)).toEqual(['_cursor', '_agent']);
        expect(await (await ask(`${target}&format=json`)).json()).toEqual(expected);
        const csv = await (await ask(`${target}&format=csv`)).text();
        expect(csv.split('\r\n').slice(0, -1)).toEqual([
          ['_cursor', '_agent', ...(query.fields ?? fields)].join(),
          ...expected.map((record) =>
            Object.values(record)
              .map((value) => value ?? '')
              .join(),
          ),
        ]);
        known.push(...expected.map(({ _cursor }) => _cursor));
      }
      await bed.archive.close();
    }),
    { numRuns: caseCount(30, 600) },
  );
}, 60_000);

it('says what is wrong with agents, cursors and filters', async () => {
  const random = seededRandom(3);
  const bed = await SeveralBed.open(random, 4);
  for (let step = 0; step < 8; step++) await bed.commit();
  const leftOut = new Map([['broken', 'its file is wrong']]);
  const ask = await served(bed, { leftOut });
  const [a, b] = bed.stores.map(({ name }) => name);
  const problem = async (path: string): Promise<readonly [number, string]> => {
    const response = await ask(path);
    return [response.status, ((await response.json()) as { detail: string }).detail];
  };
  const own = (await bed.page({ limit: 1 }, { matches: () => true, predicates: () => [] }))[0]!._cursor;
  const plain = own.slice(-16);
  expect(await problem(`${a},${a}`)).toEqual([400, `the agent "${a}" is named twice`]);
  expect(await problem(`${a},`)).toEqual([400, `a name is empty among the agents "${a},"`]);
  const many = Array.from({ length: 17 }, (_, i) => `x${i}`).join();
  expect(await problem(many)).toEqual([400, '17 agents, but at most 16 can be asked together']);
  expect(await problem(`${a},nobody`)).toEqual([404, 'there is no agent "nobody"']);
  expect(await problem(`${a},b%20d`)).toEqual([404, 'there is no agent "b d"']);
  expect(await problem(`${a},broken`)).toEqual([
    503,
    `the agent "broken" can't be served: its file is wrong`,
  ]);
  expect((await problem(`${names(bed)}?after=${plain}`))[1]).toContain('is a cursor of one agent');
  expect((await problem(`${names(bed)}?before=x`))[1]).toContain('is no cursor');
  expect((await problem(`${a},${b}?after=${own}`))[1]).toContain('is a cursor of 4 agents, but 2 are asked');
  const turned = names(bed).split(',').reverse().join();
  expect((await problem(`${turned}?after=${own}`))[1]).toContain('in another order');
  expect((await problem(`${a}?after=${own}`))[0]).toBe(400);
  expect((await problem(`${names(bed)}?nowhere__eq=1`))[1]).toContain('unknown field "nowhere"');
  expect((await problem(`${names(bed)}?any=nowhere__eq%3D1`))[1]).toContain('unknown field "nowhere"');
  expect((await problem(`${names(bed)}?fields=_agent`))[1]).toContain('every record has anyway');
  expect((await problem(`${names(bed)}?limit=x`))[1]).toContain('"limit"');
  expect((await problem(`${names(bed)}?nonsense=1`))[1]).toContain('unknown parameter "nonsense"');
  const typed = bed.stores.find(({ schema }) =>
    schema.fields.some(({ name, type }) => name === 'status' && type === 'int'),
  )!;
  expect((await problem(`${names(bed)}?status__prefix=1`))[1]).toContain(`agent "${typed.name}"`);
  expect((await problem(`${names(bed)}?status__ne=x`))[1]).toContain(`agent "${typed.name}"`);
  await bed.archive.close();
});

it('a token must cover every agent', async () => {
  const random = seededRandom(5);
  const bed = await SeveralBed.open(random, 3);
  await bed.commit();
  const [a, b, c] = bed.stores.map(({ name }) => name);
  let may = [a!, b!, c!];
  const guard = { identify: () => new Caller(may) };
  const ask = await served(bed, { guard });
  expect((await ask(`${a},${b},${c}`)).status).toBe(200);
  may = [a!, c!];
  const response = await ask(`${a},${b},${c}`);
  expect(response.status).toBe(403);
  expect(((await response.json()) as { detail: string }).detail).toBe(
    `this token may not read the agent "${b}"`,
  );
  expect((await ask(`${a},${c}`)).status).toBe(200);
  await bed.archive.close();
});

it('answers HEAD, gzip and limit=0 as for one agent', async () => {
  const bed = await SeveralBed.open(seededRandom(7), 2);
  for (let step = 0; step < 4; step++) await bed.commit();
  const ask = await served(bed);
  const path = names(bed);
  const plain = await (await ask(path, { headers: { 'Accept-Encoding': 'identity' } })).text();
  expect(recordsOf(plain)).toEqual(
    await bed.expected({ limit: 100 }, { matches: () => true, predicates: () => [] }),
  );
  const packed = await ask(path, { headers: { 'Accept-Encoding': 'gzip' } });
  expect(packed.headers.get('content-encoding')).toBe('gzip');
  expect(await packed.text()).toBe(plain);
  expect(packed.headers.get('server-timing')).toContain('rows');
  const head = await ask(path, { method: 'HEAD' });
  expect([head.status, await head.text()]).toEqual([200, '']);
  expect(await (await ask(`${path}?limit=0`)).text()).toBe('');
  await bed.archive.close();
});
