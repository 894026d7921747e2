import { expect, it } from 'vitest';
import type { ReadableStore, SeveralStore } from '../../engine/index.js';
import { ClientDouble } from '../follow/client-double.js';
import { followersOf, settled } from '../follow/followed-store.js';
import { caseCount, fc } from '../cases.js';
import { between, seededRandom, type Random } from '../model/random.js';
import { beginning, type ListedRecord } from '../model/several.js';
import type { Followers } from '../../server/follow/followers.js';
import { filters, SeveralBed, type SeveralFilter } from './several-bed.js';

/** A client, and what it follows. */
interface Following {
  readonly client: ClientDouble;
  readonly filter: SeveralFilter;
  readonly after: string | undefined;
}

function follow(followers: Followers, bed: SeveralBed, filter: SeveralFilter, after?: string): Following {
  const client = new ClientDouble();
  const limit = after === undefined ? 3 : Number.MAX_SAFE_INTEGER;
  const query = bed.query({ limit, after }, filter);
  const head = { status: 200, headers: {} };
  void followers.follow({ agent: bed.store.name, store: bed.store, query, head, response: client });
  return { client, filter, after };
}

/** The agent and the position of a record, which its cursor names. */
function idOf({ _cursor }: Record<string, unknown>): string {
  const [, agent, ...positions] = String(_cursor).split('.');
  return `${agent} ${positions[Number(agent) - 1]}`;
}

/** The records that a client was sent, each with the id of its event. */
function sentTo({ client }: Following): { readonly id: string; readonly record: string }[] {
  const events = client.reader.events.filter(({ name }) => name === 'message');
  for (const { id, data } of events) expect(data['_cursor']).toBe(id);
  return events.map(({ id, data }) => ({ id: id!, record: idOf(data) }));
}

function behind({ client }: Following): number {
  const events = client.reader.events.filter(({ name }) => name === 'behind');
  return events.reduce((sum, { data }) => sum + Number(data['count']), 0);
}

async function check(bed: SeveralBed, following: Following, random: Random): Promise<void> {
  const { filter, after } = following;
  const sent = sentTo(following);
  const records = sent.map(({ record }) => record);
  expect(new Set(records).size).toBe(records.length);
  const all = (await bed.page({ limit: 10_000, after: after ?? beginning }, filter)).map(idOf);
  if (after === beginning) expect(records.length + behind(following)).toBe(all.length);
  // A client that goes on from an event gets none again, and misses none of those that came after it.
  for (let n = 0; n < 5 && sent.length > 0; n++) {
    const at = between(random, 0, sent.length);
    const rest = new Set((await bed.page({ limit: 10_000, after: sent[at]!.id }, filter)).map(idOf));
    for (const record of records.slice(0, at + 1)) expect(rest.has(record), 'repeated').toBe(false);
    for (const record of records.slice(at + 1)) expect(rest.has(record), 'lost').toBe(true);
  }
}

it('clients that follow several agents get each record once, and can go on from any event', async () => {
  await fc.assert(
    fc.asyncProperty(fc.integer(), async (seed) => {
      const random = seededRandom(seed);
      const bed = await SeveralBed.open(random, between(random, 2, 5));
      for (let step = between(random, 0, 4); step > 0; step--) await bed.commit();
      const store = bed.store as unknown as ReadableStore;
      const { followers } = followersOf(bed.stores[0]!, { lookup: () => store });
      const all: Following[] = [];
      for (let step = 0; step < 8; step++) {
        if (random() < 0.6) {
          const known = all.flatMap(sentTo).map(({ id }) => id);
          const after =
            random() < 0.3 ? undefined : random() < 0.5 ? beginning : known[between(random, 0, known.length)];
          all.push(follow(followers, bed, filters[between(random, 0, 3)]!, after ?? undefined));
        }
        await bed.commit();
        if (random() < 0.5) await settled(all.map(({ client }) => client));
      }
      await settled(all.map(({ client }) => client));
      for (const following of all) await check(bed, following, random);
      followers.stop();
      await bed.archive.close();
    }),
    { numRuns: caseCount(20, 400) },
  );
}, 120_000);

it('tells a record that is late to its hour, and not again', async () => {
  const random = seededRandom(1);
  const bed = await SeveralBed.open(random, 2);
  await bed.commit();
  const store: SeveralStore = bed.store;
  const { followers } = followersOf(bed.stores[0]!, { lookup: () => store });
  const following = follow(followers, bed, filters[0]!, beginning);
  // A client that has been told of all records is past their hours, however slow the machine is.
  const isTold = async (): Promise<void> => {
    const all: ListedRecord[] = await bed.page({ limit: 10_000, after: beginning }, filters[0]!);
    await settled([following.client], () => sentTo(following).length + behind(following) === all.length);
  };
  await isTold();
  for (let n = 0; n < 30; n++) {
    await bed.commit();
    if (n % 5 === 4) await isTold();
  }
  expect(behind(following)).toBeGreaterThan(0);
  followers.stop();
  await bed.archive.close();
});
