import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import type { Archive } from '../../engine/archive/archive.js';
import type { AgentStore, Query, ScanOptions, SeenState } from '../../engine/index.js';
import { newScanStats } from '../../engine/scan/answer.js';
import type { PieceIterator, Scan } from '../../engine/scan/scan.js';
import { catchUpsMax } from '../../server/http/http-limits.js';
import { append, noon, openOn, schema } from '../engine/store/memory-archive.js';
import { MemoryDirectory } from '../storage-doubles/memory-directory.js';
import type { ClientDouble } from './client-double.js';
import { follow, followersOf, settled } from './followed-store.js';

const first = '0'.repeat(16);
const filtered = [{ kind: 'int', field: 1, op: 'gte', value: 0n }] as const;

let archive: Archive;
let store: AgentStore;
let written = 0;

beforeEach(async () => {
  archive = await openOn(new MemoryDirectory());
  store = await archive.agent('web', schema);
  written = 0;
  await add(5);
});
afterEach(() => archive.close());

const add = (count: number, timeMs = noon): Promise<void> =>
  append(
    store,
    Array.from({ length: count }, () => [BigInt(timeMs), BigInt(written++), null, `record ${written}`]),
    'live',
  );

const have = (clients: readonly ClientDouble[], count: number) => (): boolean =>
  clients.every(({ ids }) => ids.length === count);

/** Has scans with a filter do what is said, and others what they do. */
function scripted(scan: (options: ScanOptions) => AsyncIterator<Uint8Array, undefined>): void {
  const scanAdded = store.scanAdded.bind(store);
  store.scanAdded = async (query: Query, seen: SeenState | null, options: ScanOptions = {}) => {
    if (query.predicates.length === 0) return scanAdded(query, seen, options);
    const iterator = scan(options);
    return {
      scan: { stats: newScanStats(), lines: { [Symbol.asyncIterator]: () => iterator } },
      state: await store.seen(),
    };
  };
}

/** A promise, and what resolves it. */
function gate(): { readonly opened: Promise<void>; readonly open: () => void } {
  let open = (): void => undefined;
  const opened = new Promise<void>((resolve) => (open = resolve));
  return { opened, open: () => open() };
}

/** The lines of a scan, the first of them once `opened` resolves. What says that they have ended says so here as well. */
function behindGate(lines: Scan['lines'], opened: Promise<void>): PieceIterator {
  const iterator = lines[Symbol.asyncIterator]();
  return {
    get isAtEnd() {
      return 'isAtEnd' in lines && lines.isAtEnd;
    },
    next: async () => {
      await opened;
      return iterator.next();
    },
    return: async () => (await iterator.return?.()) ?? over,
    [Symbol.asyncIterator]() {
      return this;
    },
  };
}

const never = new Promise<never>(() => undefined);
const over = { done: true, value: undefined } as const;

it('clients that wait to begin at the same place are answered by one scan, and follow from there', async () => {
  let scans = 0;
  const scanAdded = store.scanAdded.bind(store);
  store.scanAdded = (query: Query, seen: SeenState | null, options?: ScanOptions) => {
    if (seen === null) scans++;
    return scanAdded(query, seen, options);
  };
  const { followers } = followersOf(store);
  const all = Array.from({ length: 200 }, () => follow(followers, store, { predicates: filtered }, first));
  await settled(all, have(all, 5));
  expect(scans).toBe(1);
  await add(2);
  await settled(all, have(all, 7));
  const later = follow(followers, store, { predicates: filtered }, first);
  await settled([later], have([later], 7));
  for (const { ids } of all) expect(ids).toEqual(later.ids);
  expect(all.flatMap((client) => client.named('behind'))).toEqual([]);
  followers.stop();
});

it('clients of a shared scan get each record once that comes while it runs, and are told of one before', async () => {
  const { followers } = followersOf(store);
  const early = follow(followers, store, { predicates: filtered });
  await settled([early], have([early], 5));
  const readings = gate();
  const scans = gate();
  let begun = 0;
  const scanAdded = store.scanAdded.bind(store);
  store.scanAdded = async (query: Query, seen: SeenState | null, options?: ScanOptions) => {
    if (seen !== null) {
      await readings.opened;
      return scanAdded(query, seen, options);
    }
    const found = await scanAdded(query, seen, options);
    begun++;
    return { ...found, scan: { ...found.scan, lines: behindGate(found.scan.lines, scans.opened) } };
  };
  // The scans find this record, and the group's reading, which continues from the state before it, publishes it as well.
  await add(1);
  const all = Array.from({ length: 5 * catchUpsMax }, () =>
    follow(followers, store, { predicates: filtered }, first),
  );
  await vi.waitFor(() => expect(begun).toBe(1), 60_000);
  // These are in the log alone; the second stands before all that the clients have.
  await add(1);
  await add(1, noon - 3 * 3_600_000);
  readings.open();
  await settled([early], have([early], 7));
  expect(have(all, 0)()).toBe(true);
  scans.open();
  await settled(all, have(all, 7));
  expect(begun).toBe(1);
  await add(1);
  await settled([early, ...all], have([early, ...all], 8));
  for (const client of all) {
    expect(client.ids).toEqual(early.ids);
    expect(client.named('behind').map(({ data }) => data['count'])).toEqual([1]);
  }
  followers.stop();
});

it('clients at other places wait for scans of their own', async () => {
  const { followers } = followersOf(store);
  const whole = follow(followers, store, {}, first);
  await settled([whole], have([whole], 5));
  const places = [first, ...whole.ids];
  const clients = Array.from({ length: 60 }, (_, i) =>
    follow(followers, store, {}, places[i % places.length]),
  );
  const newest = Array.from({ length: 20 }, (_, i) => follow(followers, store, { limit: 2 + (i % 2) }));
  const isThere = (): boolean =>
    clients.every(({ ids }, i) => ids.length === 5 - (i % places.length)) &&
    newest.every(({ ids }, i) => ids.length === 2 + (i % 2));
  await settled([...clients, ...newest], isThere);
  for (const [i, { ids }] of clients.entries()) expect(ids).toEqual(whole.ids.slice(i % places.length));
  for (const [i, { ids }] of newest.entries()) expect(ids).toEqual(whole.ids.slice(3 - (i % 2)));
  followers.stop();
});

it('nobody who begins waits for those whose turn to read much has not come', async () => {
  scripted(({ onTurn }) => ({
    next: () => {
      onTurn?.(true);
      return never;
    },
    return: () => Promise.resolve(over),
  }));
  const { followers } = followersOf(store);
  const long = Array.from({ length: 2 * catchUpsMax }, () =>
    follow(followers, store, { predicates: filtered }, first),
  );
  const short = follow(followers, store, {}, first);
  await settled([short], have([short], 5));
  expect(have(long, 0)()).toBe(true);
  followers.stop();
});

it('nobody who begins waits for those who have their first records and are to have more', async () => {
  const line = Buffer.from(`{"_cursor":"${first.slice(1)}1","status":1}\n`);
  scripted(() => {
    let given = 0;
    return {
      next: () => (given++ === 0 ? Promise.resolve({ value: line, done: false }) : never),
      return: () => Promise.resolve(over),
    };
  });
  const { followers } = followersOf(store);
  const long = Array.from({ length: 2 * catchUpsMax }, () =>
    follow(followers, store, { predicates: filtered }, first),
  );
  const short = follow(followers, store, {}, first);
  await settled([short, ...long], () => have(long, 1)() && have([short], 5)());
  followers.stop();
});
