import { expect, it } from 'vitest';
import { caseCount, fc, isWhole } from '../cases.js';
import type { AgentStore } from '../../engine/index.js';
import type { Predicate } from '../../engine/scan/query.js';
import type { Retention } from '../../engine/store/manifest/retention-policy.js';
import type { Followers } from '../../server/follow/followers.js';
import { MemoryDirectory } from '../storage-doubles/memory-directory.js';
import { answer, append, load, noon, openCompacting, schema } from '../engine/store/memory-archive.js';
import type { Value } from '../model/dataset.js';
import type { ClientDouble } from './client-double.js';
import { follow, followersOf, settled } from './followed-store.js';

const numRuns = caseCount(12, 1500);
const hourMs = 3_600_000;
const retention: Retention = { periodMs: 30 * hourMs, bytesMax: null, intervalMs: hourMs, graceMs: 0 };

/** Filters that clients follow: all records, some of them, and few of them. */
const filters: readonly (readonly Predicate[])[] = [
  [],
  [{ kind: 'int', field: 1, op: 'eq', value: 1n }],
  [{ kind: 'string', field: 3, op: 'suffix', value: '7' }],
];

const matches = [() => true, (n: number) => n % 2 === 1, (n: number) => n % 10 === 7];

/** One client over all of its connections. */
interface Follower {
  readonly filter: number;
  /** The position where it starts; undefined for the newest. */
  readonly after: string | undefined;
  readonly limit: number;
  client: ClientDouble;
  /** The records that it received before the present connection. */
  readonly ids: string[];
  connections: number;
}

interface Step {
  readonly kind:
    'live' | 'late' | 'load' | 'compact' | 'retire' | 'begin' | 'leave' | 'stop' | 'go on' | 'rest';
  readonly which: number;
  readonly count: number;
}

const steps: fc.Arbitrary<Step[]> = fc.array(
  fc.record({
    kind: fc.constantFrom(
      'live',
      'live',
      'late',
      'load',
      'compact',
      'retire',
      'begin',
      'begin',
      'leave',
      'stop',
      'go on',
      'rest',
    ),
    which: fc.nat(1000),
    count: fc.integer({ min: 1, max: 12 }),
  }),
  { minLength: 15, maxLength: 45 },
);

/** Commits become visible one after another; this maps the cursor of a record to its commit. */
class History {
  readonly commitOf = new Map<string, number>();
  readonly numberOf = new Map<string, number>();
  commits = 0;
  written = 0;

  async note(store: AgentStore): Promise<void> {
    this.commits++;
    for (const line of (await answer(store)).split('\n').slice(0, -1)) {
      const record = JSON.parse(line) as { _cursor: string; message: string };
      if (this.commitOf.has(record._cursor)) continue;
      this.commitOf.set(record._cursor, this.commits);
      this.numberOf.set(record._cursor, Number(record.message.slice('record '.length)));
    }
  }
}

class Run {
  readonly history = new History();
  readonly clients: Follower[] = [];

  constructor(
    readonly archive: Awaited<ReturnType<typeof openCompacting>>,
    readonly store: AgentStore,
    readonly followers: Followers,
    readonly clock: { now: number },
  ) {}

  rows(count: number, hours: number): Value[][] {
    return Array.from({ length: count }, (_, i) => {
      const n = this.history.written++;
      const timeMs = this.clock.now - Math.floor((((i * 7 + n) % 11) / 11) * hours * hourMs);
      return [BigInt(timeMs), BigInt(n % 2), null, `record ${n}`];
    });
  }

  async step({ kind, which, count }: Step): Promise<void> {
    const { store, clients, archive } = this;
    const chosen = clients[which % Math.max(1, clients.length)];
    switch (kind) {
      case 'live':
        this.clock.now += (which % 3) * 600_000;
        await append(store, this.rows(count, 0.4), 'live');
        return this.history.note(store);
      case 'late':
        await append(store, this.rows(count, 20), 'live');
        return this.history.note(store);
      case 'load':
        await load(store, this.rows(count, 25), 5);
        return this.history.note(store);
      case 'compact':
        await (which % 2 === 0 ? store.compact() : archive.compactNext());
        return;
      case 'retire':
        this.clock.now += (which % 9) * hourMs;
        await archive.retireNow();
        return;
      case 'begin':
        this.begin(which, count);
        return;
      case 'leave':
        if (chosen !== undefined) this.reconnect(chosen);
        return;
      case 'stop':
        chosen?.client.stop();
        return;
      case 'go on':
        chosen?.client.goOn();
        return;
      case 'rest':
        await settled([]);
    }
  }

  begin(which: number, count: number): void {
    const cursors = [...this.history.commitOf.keys()].sort();
    const after = which % 3 === 0 ? undefined : (cursors[which % (cursors.length + 1)] ?? '0'.repeat(16));
    const filter = which % filters.length;
    const limit = after === undefined ? count - 1 : Infinity;
    const query = { predicates: filters[filter]!, ...(after === undefined ? { limit } : {}) };
    const client = follow(this.followers, this.store, query, after);
    this.clients.push({ filter, after, limit, client, ids: [], connections: 1 });
  }

  /** Disconnects the client, which returns with the last id that it received. Data on its way to it is lost. */
  reconnect(follower: Follower): void {
    const { ids, client, filter } = follower;
    client.leave();
    ids.push(...client.ids);
    const after = ids.at(-1) ?? follower.after;
    // Without an id and a cursor it would start again with the newest.
    if (after === undefined) return;
    follower.client = follow(this.followers, this.store, { predicates: filters[filter]! }, after);
    follower.connections++;
  }

  check({ filter, after, limit, client, ids, connections }: Follower, gone: ReadonlySet<string>): void {
    const { commitOf, numberOf } = this.history;
    const received = [...ids, ...client.ids];
    for (let i = 1; i < received.length; i++) expect(received[i]! > received[i - 1]!).toBe(true);
    for (const { id, data } of client.reader.events) {
      if (id === undefined) continue;
      expect(data['_cursor']).toBe(id);
      expect(data['message']).toBe(`record ${numberOf.get(id)}`);
      expect(matches[filter]!(numberOf.get(id)!)).toBe(true);
    }
    if (client.isGone) return;
    const has = new Set(received);
    const first = after ?? received[0];
    if (first === undefined) return;
    const wanted = [...commitOf.keys()]
      .filter((cursor) => cursor > first && matches[filter]!(numberOf.get(cursor)!) && !gone.has(cursor))
      .sort();
    const missing = wanted.filter((cursor) => !has.has(cursor));
    // A record that it never got became visible after a later position had been sent, which belonged to an earlier commit.
    for (const cursor of missing) {
      const isBehind = received.some((id) => id > cursor && commitOf.get(id)! < commitOf.get(cursor)!);
      if (!isBehind) expect({ lost: cursor, received, limit }).toBe('nothing lost');
    }
    if (connections > 1 || after === undefined || gone.size > 0) return;
    const told = client.named('behind').map(({ data }) => data as { count: number; lowest: string });
    // Records at or before the cursor at which it started are announced too.
    const before = [...commitOf.keys()].filter((c) => c <= after && matches[filter]!(numberOf.get(c)!));
    expect(told.reduce((sum, { count }) => sum + count, 0)).toBeGreaterThanOrEqual(missing.length);
    expect(told.reduce((sum, { count }) => sum + count, 0)).toBeLessThanOrEqual(
      missing.length + before.length,
    );
    const lowest = told.map((each) => each.lowest).sort()[0];
    if (missing.length > 0) expect(lowest! <= missing[0]!).toBe(true);
  }
}

it('followers miss and repeat nothing, however records are stored, merged and removed, and however clients reconnect', async () => {
  let behind = 0;
  let records = 0;
  await fc.assert(
    fc.asyncProperty(steps, async (list) => {
      const clock = { now: noon };
      const archive = await openCompacting(new MemoryDirectory(), () => clock.now);
      const store = await archive.agent('web', schema, retention);
      const { followers, logged } = followersOf(store);
      const run = new Run(archive, store, followers, clock);
      try {
        for (const step of list) await run.step(step);
        for (const { client } of run.clients) client.goOn();
        await settled(run.clients.map(({ client }) => client));
        const stored = new Set(
          (await answer(store))
            .split('\n')
            .slice(0, -1)
            .map((line) => line.slice(12, 28)),
        );
        const gone = new Set([...run.history.commitOf.keys()].filter((cursor) => !stored.has(cursor)));
        for (const follower of run.clients) {
          run.check(follower, gone);
          behind += follower.client.named('behind').length;
          records += follower.client.ids.length;
          expect(follower.client.named('failed')).toEqual([]);
          expect(follower.client.named('lagging')).toEqual([]);
        }
        expect(logged).toEqual([]);
        followers.stop();
        expect(followers.count).toBe(0);
      } finally {
        await archive.close();
      }
    }),
    { numRuns },
  );
  if (!isWhole) return;
  expect(behind).toBeGreaterThan(0);
  expect(records).toBeGreaterThan(numRuns * 10);
});
