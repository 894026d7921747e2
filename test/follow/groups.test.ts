import { setTimeout as delay } from 'node:timers/promises';
import { afterEach, expect, it } from 'vitest';
import type { AgentStore, ScanOptions, SeenState } from '../../engine/index.js';
import type { Query } from '../../engine/scan/query.js';
import { makeSchema } from '../../engine/core/schema.js';
import { EventStream } from '../../server/follow/event-stream.js';
import { followKeptBytesMax } from '../../server/http/http-limits.js';
import { ProblemError } from '../../server/http/problem.js';
import { AnswerWatch } from '../../server/pace/answer-watch.js';
import type { Archive } from '../../engine/archive/archive.js';
import { append, load, noon, openOn, schema } from '../engine/store/memory-archive.js';
import type { Value } from '../model/dataset.js';
import { MemoryDirectory } from '../storage-doubles/memory-directory.js';
import { ClientDouble } from './client-double.js';
import { follow, followersOf, settled } from './followed-store.js';

const hourMs = 3_600_000;
const opened: Archive[] = [];
afterEach(async () => {
  for (const archive of opened.splice(0)) await archive.close();
});

async function openStore(): Promise<{ archive: Archive; store: AgentStore }> {
  const archive = await openOn(new MemoryDirectory());
  opened.push(archive);
  return { archive, store: await archive.agent('web', schema) };
}

let written = 0;
const rows = (count: number, hoursAgo = 0, text = ''): Value[][] =>
  Array.from({ length: count }, () => {
    const n = written++;
    return [BigInt(noon - hoursAgo * hourMs), BigInt(n), null, `record ${n}${text}`];
  });

/** Counts how often newly visible records are read. */
function counting(store: AgentStore): { scans: number; states: (SeenState | null)[] } {
  const counted = { scans: 0, states: [] as (SeenState | null)[] };
  const scanAdded = store.scanAdded.bind(store);
  store.scanAdded = (query: Query, seen: SeenState | null, options?: ScanOptions) => {
    counted.scans++;
    counted.states.push(seen);
    return scanAdded(query, seen, options);
  };
  return counted;
}

it('a thousand followers of one filter cause one read of each commit', async () => {
  const { store } = await openStore();
  await append(store, rows(3), 'live');
  const { followers } = followersOf(store);
  const predicates = [{ kind: 'int', field: 1, op: 'gte', value: 0n }] as const;
  const clients = Array.from({ length: 1000 }, () => follow(followers, store, { limit: 2, predicates }));
  await settled(clients, () => clients.every(({ ids }) => ids.length === 2));
  const counted = counting(store);
  for (let commit = 1; commit <= 3; commit++) {
    await append(store, rows(2), 'live');
    await settled(clients, () => clients.every(({ ids }) => ids.length === 2 + 2 * commit));
  }
  expect(counted.scans).toBe(3);
  // Another filter causes another read.
  const other = follow(followers, store, { limit: 0 });
  await settled([other]);
  counted.scans = 0;
  await append(store, rows(1), 'live');
  await settled([other, ...clients], () => other.ids.length === 1 && clients[0]!.ids.length === 9);
  expect(counted.scans).toBe(2);
  followers.stop();
  expect(clients.every(({ isEnded }) => isEnded)).toBe(true);
  counted.scans = 0;
  await append(store, rows(1), 'live');
  await delay(60);
  expect(counted.scans).toBe(0);
});

it('one filter of a group has to match', async () => {
  const { store } = await openStore();
  const { followers } = followersOf(store);
  const first = written;
  const is = (n: number) => ({ kind: 'int', field: 1, op: 'eq', value: BigInt(first + n) }) as const;
  const predicates = [{ kind: 'any', members: [is(1), is(3), is(8)] }] as const;
  const client = follow(followers, store, { predicates });
  const all = follow(followers, store);
  for (let commit = 0; commit < 3; commit++) await append(store, rows(3), 'live');
  await settled([client, all], () => all.ids.length === 9 && client.ids.length === 3);
  expect(client.ids).toEqual([1, 3, 8].map((n) => all.ids[n]));
});

it('begins with the newest records, after a cursor, or with future records only', async () => {
  const { store } = await openStore();
  await append(store, rows(5), 'live');
  const { followers } = followersOf(store);
  const newest = follow(followers, store, { limit: 2 });
  const all = follow(followers, store, {}, '0'.repeat(16));
  const none = follow(followers, store, { limit: 0 });
  await settled([newest, all, none]);
  expect(all.ids.length).toBe(5);
  expect(newest.ids).toEqual(all.ids.slice(3));
  expect(none.ids).toEqual([]);
  await append(store, rows(1), 'live');
  await settled([newest, all, none], () => none.ids.length === 1);
  expect(all.ids.length).toBe(6);
  expect(newest.ids).toEqual(all.ids.slice(3));
  expect(none.ids).toEqual(all.ids.slice(5));
});

it("announces records before the client's position, and sends those after it, of one load over many hours", async () => {
  const { store } = await openStore();
  await append(store, rows(2, 5), 'load');
  const { followers } = followersOf(store);
  const client = follow(followers, store);
  await settled([client]);
  expect(client.ids.length).toBe(2);
  await load(store, [...rows(2, 9), ...rows(3, 7), ...rows(4, 5), ...rows(1, 2)]);
  await settled([client], () => client.ids.length === 7);
  expect(client.ids).toEqual([...client.ids].sort());
  const [behind, ...others] = client.named('behind');
  expect(others).toEqual([]);
  const hour = Math.floor((noon - 9 * hourMs) / hourMs)
    .toString(16)
    .padStart(6, '0');
  expect(behind).toEqual({ name: 'behind', id: undefined, data: { count: 5, lowest: `${hour}0000000001` } });
});

it('disconnects a client that takes no data, and buffers no more for it than the limit', async () => {
  const { store } = await openStore();
  const { followers } = followersOf(store);
  const quick = follow(followers, store);
  const slow = follow(followers, store);
  await settled([quick, slow]);
  slow.stop();
  const text = ` ${'x'.repeat(10_000)}`;
  let most = 0;
  let commits = 0;
  for (; followers.count === 2 && commits < 100; commits++) {
    await append(store, rows(20, 0, text), 'live');
    await settled([quick], () => quick.ids.length === 20 * (commits + 1));
    most = Math.max(most, followers.keptBytes);
  }
  expect(followers.count).toBe(1);
  expect(most).toBeGreaterThan(followKeptBytesMax / 2);
  expect(most).toBeLessThanOrEqual(followKeptBytesMax);
  // Nothing is buffered for it any more; one write is still on its way.
  expect(followers.keptBytes).toBe(0);
  expect(slow.waitingBytes).toBeLessThan(500_000);
  slow.goOn();
  await settled([slow], () => slow.isEnded);
  expect(slow.named('lagging')).toHaveLength(1);
  expect(slow.ids.length).toBeLessThan(20 * commits);
  const again = follow(followers, store, {}, slow.ids.at(-1) ?? '0'.repeat(16));
  await settled([again], () => slow.ids.length + again.ids.length === 20 * commits);
  expect([...slow.ids, ...again.ids]).toEqual(quick.ids);
});

it('refuses more followers than the limit, and accepts a new one for each that leaves', async () => {
  const { store } = await openStore();
  const { followers } = followersOf(store, { followersMax: 2 });
  const first = follow(followers, store);
  follow(followers, store);
  const refusal = (): unknown => {
    try {
      follow(followers, store);
      return undefined;
    } catch (error) {
      return error;
    }
  };
  const refused = refusal();
  expect(refused).toBeInstanceOf(ProblemError);
  expect(refused).toMatchObject({ status: 503, headers: { 'Retry-After': '5' } });
  first.leave();
  expect(refusal()).toBeUndefined();
  expect(followers.count).toBe(2);
});

it('ends streams when the fields change, and sends the new fields to clients that return', async () => {
  const { archive, store } = await openStore();
  await append(store, rows(1), 'live');
  const { followers } = followersOf(store);
  const before = follow(followers, store);
  await settled([before]);
  const fewer = makeSchema(schema.fields.filter(({ name }) => name !== 'took'));
  await archive.redefine('web', fewer, undefined);
  await settled([before], () => before.isEnded);
  expect(before.named('failed')).toEqual([]);
  const after = follow(followers, store, {}, '0'.repeat(16));
  await settled([after], () => after.ids.length === 1);
  expect(Object.keys(after.reader.events[0]!.data)).toEqual(['_cursor', 'time', 'status', 'message']);
});

it('reports a failure, and ends the stream', async () => {
  const { store } = await openStore();
  const { followers, logged } = followersOf(store);
  const client = follow(followers, store);
  await settled([client]);
  store.scanAdded = () => Promise.reject(new Error('a bug of ours'));
  await append(store, rows(1), 'live');
  await settled([client], () => client.isEnded);
  expect(client.named('failed')).toMatchObject([{ data: { status: 500 } }]);
  expect(logged.join()).toContain('a bug of ours');
  expect(followers.count).toBe(0);
});

it('sends a sign of life at most every 5 seconds if there are no records', () => {
  const client = new ClientDouble();
  const watched = new AnswerWatch({ clientRateMin: 0, answerTimeoutMs: Infinity }).begin(() => undefined);
  const stream = new EventStream(client, { status: 200, headers: {} }, watched);
  stream.begin();
  const nowMs = performance.now();
  for (const [afterMs, comments] of [
    [4_500, 0],
    [5_100, 1],
  ] as const) {
    stream.comment(nowMs + afterMs);
    expect(client.reader.comments).toBe(comments);
  }
  client.stop();
  void stream.write(Buffer.from(':\n\n')).catch(() => undefined);
  stream.comment(nowMs + 100_000);
  client.goOn();
  expect(client.reader.comments).toBe(2);
  stream.end(null);
});
