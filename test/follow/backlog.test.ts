import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import type { Archive } from '../../engine/archive/archive.js';
import type { AgentStore, Query, ScanOptions, SeenState } from '../../engine/index.js';
import { formatCursor, parseCursor } from '../../engine/core/cursor.js';
import { followKeptBytesMax, followNearRecords } from '../../server/http/http-limits.js';
import { append, noon, openOn, schema } from '../engine/store/memory-archive.js';
import { MemoryDirectory } from '../storage-doubles/memory-directory.js';
import { ClientDouble } from './client-double.js';
import { follow, followersOf, settled } from './followed-store.js';

const first = '0'.repeat(16);
const recordBytes = 10_000;
/** Records that take three times what a backlog keeps. */
const many = Math.ceil((3 * followKeptBytesMax) / recordBytes);

let archive: Archive;
let store: AgentStore;
let written = 0;
/** The scans of whole states, the latest last. */
let scans: Query[] = [];
let rests: Query[] = [];

beforeEach(async () => {
  archive = await openOn(new MemoryDirectory());
  store = await archive.agent('web', schema);
  written = 0;
  scans = [];
  rests = [];
  const scanAdded = store.scanAdded.bind(store);
  store.scanAdded = (query: Query, seen: SeenState | null, options?: ScanOptions) => {
    if (seen === null) scans.push(query);
    return scanAdded(query, seen, options);
  };
  const scanSeen = store.scanSeen.bind(store);
  store.scanSeen = (query: Query, seen: SeenState, options?: ScanOptions) => {
    rests.push(query);
    return scanSeen(query, seen, options);
  };
});
afterEach(() => archive.close());

async function add(count: number, bytes = 10, timeMs = noon): Promise<void> {
  const text = 'x'.repeat(bytes);
  for (let left = count; left > 0; left -= 100) {
    const rows = Array.from({ length: Math.min(100, left) }, () => [
      BigInt(timeMs),
      BigInt(written++),
      null,
      text,
    ]);
    await append(store, rows, 'live');
  }
}

/** The cursor of the record that is this many after another one, in the same hour. */
function later(cursor: string, records: number): string {
  const { partition, ordinal } = parseCursor(cursor)!;
  return formatCursor({ partition, ordinal: ordinal + records });
}

const have = (client: ClientDouble, count: number) => (): boolean => client.ids.length === count;

it('clients that begin near to each other share one scan, and each gets what comes after its own place', async () => {
  await add(60);
  const { followers } = followersOf(store);
  const whole = follow(followers, store);
  await settled([whole], have(whole, 60));
  scans = [];
  const places = [40, 12, 59, 13, 27, 12];
  const clients = places.map((place) => follow(followers, store, {}, whole.ids[place]));
  // The first hour of all is another place, and so is one that is far behind the others.
  const far = follow(followers, store, {}, later(whole.ids[0]!, followNearRecords + 100));
  const early = follow(followers, store, {}, first);
  const newest = follow(followers, store, { limit: 3 });
  await settled([...clients, early, newest], () => have(early, 60)() && have(newest, 3)());
  expect(scans.length).toBe(4);
  expect(scans.map(({ after }) => after?.ordinal)).toContain(parseCursor(whole.ids[12]!)!.ordinal);
  await add(1);
  await settled([...clients, early, newest], () => have(early, 61)());
  for (const [i, { ids }] of clients.entries()) expect(ids).toEqual(early.ids.slice(places[i]! + 1));
  expect(newest.ids).toEqual(early.ids.slice(57));
  expect(far.ids).toEqual([]);
  // The record before the place of the client that is far ahead is the only one that anybody is told of.
  expect(clients.flatMap((client) => client.named('behind'))).toEqual([]);
  expect(far.named('behind').map(({ data }) => data['count'])).toEqual([1]);
  followers.stop();
});

it('a client that comes while a scan is open joins it, unless a scan of its own would give it other records', async () => {
  await add(20);
  const { followers } = followersOf(store);
  // The scan stays open until this clock is moved.
  vi.useFakeTimers({ toFake: ['setTimeout'] });
  try {
    const early = follow(followers, store, {}, first);
    await settled([early], have(early, 20));
    const hour = follow(followers, store, {}, early.ids[0]);
    await settled([hour], have(hour, 19));
    await add(1);
    await settled([early], have(early, 21));
    const late = follow(followers, store, {}, later(first, 5));
    await settled([late], have(late, 21));
    expect(scans.length).toBe(2);
    // The newest records are another matter, and the other client has a record that the scan of its hour has not read.
    const newest = follow(followers, store, { limit: 3 });
    const ahead = follow(followers, store, {}, early.ids[20]);
    await settled([newest, ahead], have(newest, 3));
    expect(scans.length).toBe(4);
    expect(ahead.ids).toEqual([]);
    // This record is before those that the scan has read, so who comes now has to get it in its place.
    await add(1, 10, noon - 3 * 3_600_000);
    const last = follow(followers, store, {}, first);
    await settled([early, last], have(last, 22));
    expect(scans.length).toBe(5);
    await add(1);
    const all = [early, hour, late, newest, ahead, last];
    await settled(all, have(last, 23));
    expect(last.ids.slice(1)).toEqual(early.ids);
    expect(late.ids).toEqual(early.ids);
    expect(hour.ids).toEqual(early.ids.slice(1));
    expect(newest.ids).toEqual(early.ids.slice(18));
    expect(ahead.ids).toEqual(early.ids.slice(21));
    expect(all.map((client) => client.named('behind').length)).toEqual([1, 1, 1, 1, 1, 0]);
    expect(followers.keptBytes).toBeGreaterThan(0);
    vi.runAllTimers();
    expect(followers.keptBytes).toBe(0);
  } finally {
    vi.useRealTimers();
  }
  const after = follow(followers, store, {}, first);
  await settled([after], have(after, 23));
  expect(scans.length).toBe(6);
  followers.stop();
});

it('a client gets what others were sent while its scan began', async () => {
  await add(5);
  const { followers } = followersOf(store);
  const ahead = follow(followers, store, {}, first);
  await settled([ahead], have(ahead, 5));
  const { scanAdded } = store;
  store.scanAdded = async (...asked) => {
    const begun = await scanAdded(...asked);
    if (asked[1] === null) {
      await add(1);
      await settled([ahead], have(ahead, 6));
    }
    return begun;
  };
  const behind = follow(followers, store, {}, ahead.ids[2]);
  await settled([ahead, behind], have(behind, 3));
  expect(behind.ids).toEqual(ahead.ids.slice(3));
});

it('a client that takes nothing neither holds up the others nor loses or repeats anything', async () => {
  await add(many, recordBytes);
  const { followers } = followersOf(store);
  const slow = new ClientDouble();
  slow.stop();
  follow(followers, store, {}, first, slow);
  const quick = Array.from({ length: 3 }, () => follow(followers, store, {}, first));
  let most = 0;
  const note = (): boolean => {
    most = Math.max(most, followers.keptBytes);
    return quick.every((client) => have(client, many)());
  };
  await settled(quick, note);
  expect(scans.length).toBe(1);
  expect(most).toBeLessThan(followKeptBytesMax + 1024 * 1024);
  // The slow client has no place yet; this record is after whatever it is sent, and these are before all of it.
  await add(1);
  await add(2, 10, noon - 3 * 3_600_000);
  await settled(quick, () => quick.every((client) => have(client, many + 1)()));
  slow.goOn();
  await settled([slow], have(slow, many + 1));
  expect(rests.length).toBe(1);
  expect(slow.ids).toEqual(quick[0]!.ids);
  for (const client of [slow, ...quick])
    expect(client.named('behind').map(({ data }) => data['count'])).toEqual([2]);
  expect(slow.named('lagging')).toEqual([]);
  followers.stop();
});

it('the scan goes on for the others when the client leaves for which it was begun', async () => {
  await add(many, recordBytes);
  const { followers } = followersOf(store);
  const clients = Array.from({ length: 3 }, () => new ClientDouble());
  for (const client of clients) {
    client.stop();
    follow(followers, store, {}, first, client);
  }
  const [initiator, ...others] = clients;
  await settled([], () => clients.every(({ waitingBytes }) => waitingBytes > 0));
  initiator!.leave();
  for (const client of others) client.goOn();
  await settled(others, () => others.every((client) => have(client, many)()));
  expect(scans.length).toBe(1);
  expect(rests).toEqual([]);
  expect(followers.keptBytes).toBe(0);
  followers.stop();
  expect(followers.count).toBe(0);
});

it('a scan that fails ends the streams of all that share it', async () => {
  await add(3);
  const { followers, logged } = followersOf(store);
  store.scanAdded = () => Promise.reject(new Error('a bug of ours'));
  const clients = Array.from({ length: 20 }, () => follow(followers, store, {}, first));
  await settled(clients, () => clients.every(({ isEnded }) => isEnded));
  for (const client of clients) expect(client.named('failed')).toMatchObject([{ data: { status: 500 } }]);
  expect(logged.join()).toContain('a bug of ours');
  expect(followers.count).toBe(0);
});
