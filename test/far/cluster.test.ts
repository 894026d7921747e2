import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { isLong, seed } from '../cases.js';
import type { Query } from '../../engine/scan/query.js';
import { isLogstrataError } from '../../engine/core/errors.js';
import { makeSchema } from '../../engine/core/schema.js';
import { noon, schema } from '../engine/store/memory-archive.js';
import { seededRandom } from '../model/random.js';
import type { Value } from '../model/dataset.js';
import { MemoryDirectory } from '../storage-doubles/memory-directory.js';
import { ClickHouseServer, describeWithClickHouse } from './clickhouse-server.js';
import { FarClusterBed } from './far-cluster-bed.js';
import { FarStore, freshName, tierOf, type TestTier } from './far-store.js';

/** Rows of one hour, each different. */
function rowsOf(count: number, from = 0): Value[][] {
  return Array.from({ length: count }, (_, i) => [
    BigInt(noon - 3_600_000 + from + i),
    BigInt(200 + (i % 7)),
    i / 8,
    `message ${from + i} of Ünïcode`,
  ]);
}

const all: Query = { limit: 1_000_000, predicates: [] };

describeWithClickHouse('a cluster of two shards with two replicas each', () => {
  let bed: FarClusterBed;
  let tier: TestTier;

  beforeAll(async () => {
    bed = await FarClusterBed.start(2, 2);
    tier = await tierOf(bed.settings());
  });
  afterAll(async () => {
    await tier.cluster.close();
    await bed.close();
  });

  /** Two units, one in each shard. */
  async function shipped(name = freshName()): Promise<FarStore> {
    const store = await FarStore.open(tier, schema, name);
    await store.load(rowsOf(300));
    await store.store.shipFar();
    await store.load(rowsOf(300, 300));
    await store.store.shipFar();
    return store;
  }

  /** Number of attempts in a table, for each server. */
  async function attempts(agent: string): Promise<number[]> {
    const sql = `SELECT uniqExact(partition) FROM system.parts WHERE active AND table = '${agent}'`;
    return Promise.all(bed.servers.flat().map(async (server) => Number(await server.ask(sql))));
  }

  it('does not take another server that has the port for the one that was started', async () => {
    const { port } = bed.servers[1]![0]!;
    const second = await ClickHouseServer.make(join(bed.folder, 'second'), null, port);
    await expect(second.start()).rejects.toThrow(/has ended by itself with \d+: .*Address already in use/s);
  });

  it('has each unit on every replica of one shard', async () => {
    const store = await shipped();
    expect(await attempts(store.store.name)).toEqual([1, 1, 1, 1]);
    const { far, segments } = await store.store.stats();
    expect(far).toMatchObject({ units: 2, records: 600, onlyRecords: 600, leftovers: 0 });
    expect(segments).toBe(0);
    expect(await store.answer(all)).toBe(store.expected(all));
    await store.close();
  });

  it('loses and repeats nothing, whatever shipping statement fails or loses its answer', async () => {
    const random = seededRandom(isLong ? 7 : seed);
    let isOver = false;
    for (let k = 1; !isOver; k += isLong ? 1 : 1 + Math.floor(random() * 8)) {
      for (const kind of ['refused', 'lost'] as const) {
        const store = await FarStore.open(tier, schema);
        await store.load(rowsOf(50));
        let asked = 0;
        tier.transport.fault = () => (++asked >= k && asked < k + 7 ? kind : undefined);
        const failure = await store.store.shipFar().catch((error: unknown) => error);
        tier.transport.fault = () => undefined;
        if (failure instanceof Error) expect(isLogstrataError(failure), String(failure.stack)).toBe(true);
        isOver = asked < k;
        expect(await store.answer(all), `${kind} at ${k}`).toBe(store.expected(all));
        await store.store.shipFar();
        expect(await store.answer(all), `${kind} at ${k}`).toBe(store.expected(all));
        const { name } = store.store;
        await expect
          .poll(() => attempts(name).then((all) => all.filter((count) => count > 0)))
          .toEqual([1, 1]);
        await store.close();
      }
    }
  });

  it('drops leftovers of failed attempts, also after their segments were compacted', async () => {
    const directory = new MemoryDirectory();
    const name = freshName();
    const store = await FarStore.open(tier, schema, name, directory);
    await store.load(rowsOf(80));
    await store.load(rowsOf(40, 80));
    // All rows are sent and the attempt is not committed, as if the process had ended then.
    tier.transport.fault = (_, sql) =>
      sql.startsWith('SELECT partition, sum(rows)') ? 'refused' : undefined;
    await expect(store.store.shipFar()).rejects.toMatchObject({ code: 'unavailable' });
    tier.transport.fault = () => undefined;
    await expect.poll(() => attempts(name)).toEqual([1, 1, 0, 0]);
    expect((await store.store.stats()).far).toMatchObject({ units: 0, leftovers: 0 });
    expect(await store.store.compact()).toMatchObject({ segmentsBefore: 2, segmentsAfter: 1 });
    expect((await store.store.stats()).far).toMatchObject({ units: 0, leftovers: 1 });
    await store.close();
    const again = await FarStore.open(tier, schema, name, directory, store.model);
    expect(await again.store.shipFar()).toMatchObject({ segments: 1, rows: 120, dropped: 1 });
    await expect.poll(() => attempts(name)).toEqual([1, 1, 0, 0]);
    expect(await again.store.verifyFar()).toMatchObject({ units: 1, damages: [], strays: [] });
    expect(await again.answer(all)).toBe(store.expected(all));
    await again.close();
  });

  it('commits one of two concurrent attempts', async () => {
    const store = await FarStore.open(tier, schema);
    await store.load(rowsOf(90));
    let second: Promise<unknown> | undefined;
    tier.transport.before = async (_, sql) => {
      if (second !== undefined || !sql.startsWith('INSERT')) return;
      second = store.store.shipFar();
      await second;
    };
    await expect(store.store.shipFar()).rejects.toMatchObject({ code: 'conflict' });
    tier.transport.before = () => {};
    expect(await second).toMatchObject({ segments: 1 });
    expect(await store.answer(all)).toBe(store.expected(all));
    await store.store.shipFar();
    await expect.poll(() => attempts(store.store.name)).toEqual([1, 1, 0, 0]);
    await store.close();
  });

  it('continues with another replica if one is killed during an answer, and fails if none is left', async () => {
    const store = await FarStore.open(tier, schema);
    // Long records, so that an answer takes several queries.
    const long = 'x'.repeat(26_000);
    await store.load(
      rowsOf(1500).map(([time, status, took, message]) => [
        time!,
        status!,
        took!,
        `${String(message)}${long}`,
      ]),
    );
    await store.store.shipFar();
    const [first, second] = bed.servers[0]!;
    const query: Query = { limit: 1500, predicates: [{ kind: 'int', field: 1, op: 'ne', value: 3n }] };
    let reads = 0;
    tier.transport.before = async (url, sql) => {
      if (sql.startsWith('SELECT _cursor') && ++reads === 2)
        await [first!, second!].find((server) => server.url === url)!.end();
    };
    expect(await store.answer(query)).toBe(store.expected(query));
    expect(reads).toBeGreaterThan(3);
    await Promise.all([first!.end(), second!.end()]);
    const failure: unknown = await store.answer(query).catch((error: unknown) => error);
    expect(failure).toMatchObject({ code: 'unavailable' });
    expect(String(failure)).toContain(first!.url);
    expect(String(failure)).toContain(second!.url);
    tier.transport.before = () => {};
    await Promise.all([first!.start(), second!.start()]);
    await expect.poll(() => store.answer(query).catch(() => '')).toBe(store.expected(query));
    await store.close();
  });

  it('never leaves out records because a replica has lost its disk', async () => {
    const store = await shipped();
    const [first, second] = bed.servers[0]!;
    await first!.end();
    await first!.lose();
    await first!.start();
    expect(await store.answer(all)).toBe(store.expected(all));
    await second!.end();
    await expect(store.answer(all)).rejects.toMatchObject({ code: 'unavailable' });
    const like: Query = { ...all, predicates: [{ kind: 'string', field: 3, op: 'like', value: 'ünïcode' }] };
    await expect(store.answer(like)).rejects.toMatchObject({ code: 'unavailable' });
    await expect(store.store.count({ predicates: like.predicates })).rejects.toMatchObject({
      code: 'unavailable',
    });
    await second!.start();
    await expect.poll(() => store.answer(all).catch(() => '')).toBe(store.expected(all));
    await store.close();
  });

  it('brings units back under the same cursors, keeps them, and drops them in the cluster', async () => {
    const store = await shipped();
    const before = await store.answer(all);
    const whole = await store.store.verifyFar();
    expect(whole).toMatchObject({ units: 2, records: 600, replicas: 4, damages: [], strays: [] });
    const fetched = await store.store.fetchFar({ sinceMs: null, untilMs: null });
    expect(fetched).toEqual({ units: 2, rows: 600, stillHere: 0 });
    const { far, segments } = await store.store.stats();
    expect({ far, segments }).toMatchObject({ far: { units: 0, leftovers: 2 }, segments: 2 });
    const asked = tier.transport.asked.length;
    expect(await store.answer(all)).toBe(before);
    expect(tier.transport.asked).toHaveLength(asked);
    // On demand they are shipped again, and the earlier attempt is dropped.
    await store.store.shipFar();
    await expect.poll(() => attempts(store.store.name)).toEqual([1, 1, 1, 1]);
    expect(await store.answer(all)).toBe(before);
    await store.close();
  });

  it('reports replicas that lack shipped units, and units that no manifest names', async () => {
    const store = await shipped();
    const { name } = store.store;
    const [server] = bed.servers[1]!;
    const partition = (
      await server!.ask(`SELECT partition FROM system.parts WHERE active AND table = '${name}'`)
    ).trim();
    await server!.ask(`ALTER TABLE logs.${name} DROP PARTITION ${partition}`);
    await server!.ask(`INSERT INTO logs.${name} (_cursor, _unit, _attempt) VALUES (1, 2, 3)`);
    const report = await store.store.verifyFar();
    expect(report.damages.map(({ url, reason }) => `${url}: ${reason}`)).toContain(
      `${server!.url}: it has 0 of 300 rows`,
    );
    expect(report.strays.map(({ partition: stray, rows }) => `${stray} ${rows}`)).toContain('(2,3) 1');
    await expect(store.answer(all)).rejects.toMatchObject({ code: 'unavailable' });
    await store.close();
  });

  it('drops units that retention removes, once no query can be reading them', async () => {
    const store = await FarStore.open(tier, schema);
    const { name } = store.store;
    const old = rowsOf(100).map(([time, ...rest]) => [(time as bigint) - 36_000_000n, ...rest]);
    await store.load(old);
    await store.store.shipFar();
    await store.load(rowsOf(3));
    const policy = { periodMs: 3_600_000, bytesMax: null };
    await store.archive.redefine(name, schema, { ...policy, graceMs: 0, intervalMs: 60_000 });
    await store.archive.applyRetention(name, policy);
    const left = (await store.answer(all)).trim().split('\n');
    expect(left).toHaveLength(3);
    expect((await store.store.stats()).far).toMatchObject({ units: 0, leftovers: 1 });
    expect(await attempts(name)).toEqual([1, 1, 0, 0]);
    await store.store.shipFar();
    expect((await store.store.stats()).far).toMatchObject({ units: 1, leftovers: 0 });
    await expect
      .poll(async () => (await bed.servers[0]![0]!.ask(`SELECT count() FROM logs.${name}`)).trim())
      .toBe('3');
    await store.close();
  });

  it('cancels a query at its server when its client has gone', async () => {
    const [server] = bed.servers[0]!;
    const stopping = new AbortController();
    const running = async (): Promise<number> =>
      Number(await server!.ask("SELECT count() FROM system.processes WHERE query_id LIKE 'logstrata-%'"));
    const endless = tier.cluster.read(server!.url, 'SELECT sum(number) FROM system.numbers', {
      signal: stopping.signal,
    });
    endless.catch(() => undefined);
    await expect.poll(running).toBe(1);
    stopping.abort(new Error('the client has gone'));
    await expect(endless).rejects.toThrow('the client has gone');
    await expect.poll(running).toBe(0);
  });

  it('keeps a local file as long as a replica does not have all of it', async () => {
    const patient = await tierOf(bed.settings(), 60_000_000);
    const directory = new MemoryDirectory();
    const name = freshName();
    const kept = await FarStore.open(patient, schema, name, directory);
    await kept.load(rowsOf(20));
    await kept.store.shipFar();
    expect((await kept.store.stats()).far).toMatchObject({ units: 1, onlyRecords: 0 });
    await kept.close();
    await patient.cluster.close();
    const [server] = bed.servers[0]!;
    const store = await FarStore.open(tier, schema, name, directory, kept.model);
    await server!.end();
    await expect(store.store.shipFar()).rejects.toThrow(/stays here, because http/);
    expect((await store.store.stats()).far).toMatchObject({ units: 1, onlyRecords: 0 });
    expect(await store.answer(all)).toBe(store.expected(all));
    await server!.start();
    await expect
      .poll(() =>
        store.store.shipFar().then(
          ({ freed }) => freed,
          () => 0,
        ),
      )
      .toBe(1);
    expect(await store.answer(all)).toBe(store.expected(all));
    await store.close();
  });

  it('reads units of earlier fields as the current fields', async () => {
    const directory = new MemoryDirectory();
    const name = freshName();
    const store = await FarStore.open(tier, schema, name, directory);
    await store.load(rowsOf(40));
    await store.store.shipFar();
    const later = makeSchema([
      { name: 'time', type: 'time' },
      { name: 'status', type: 'string' },
      { name: 'took', type: 'int' },
      { name: 'extra', type: 'bool' },
    ]);
    await store.archive.redefine(name, later, undefined);
    const answered = await store.answer({
      limit: 2,
      predicates: [{ kind: 'string', field: 1, op: 'exact', value: '203' }],
    });
    const lines = answered
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as Record<string, unknown>);
    expect(lines).toHaveLength(2);
    for (const line of lines) expect(line).toMatchObject({ status: '203', took: null, extra: null });
    expect(
      await store.answer({ limit: 2, predicates: [{ kind: 'int', field: 2, op: 'gte', value: 0n }] }),
    ).toBe('');
    await store.close();
  });
});
