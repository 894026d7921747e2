import { gunzipSync } from 'node:zlib';
import { expect, it, onTestFinished } from 'vitest';
import type { AgentStore } from '../../engine/archive/agent-store.js';
import type { ReadableStore } from '../../engine/archive/reading-store.js';
import { LogstrataError } from '../../engine/index.js';
import type { CountQuery, Counts } from '../../engine/scan/count-query.js';
import { startConsole } from '../../server/console/console.js';
import { QueryTally, SlowQueries } from '../../server/route/query-tally.js';
import { CountRoute } from '../../server/console/count-route.js';
import { Admission } from '../../server/pace/admission.js';
import { newScanStats } from '../../engine/scan/answer.js';
import { append, openOn, schema } from '../engine/store/memory-archive.js';
import { MemoryDirectory } from '../storage-doubles/memory-directory.js';
import { ScriptedStore } from './scripted-store.js';
import { ask, Wire, type WireResponse } from './wire.js';

/** A store whose counts take as long as the test wants. */
class CountingStore extends ScriptedStore {
  readonly #counted: (query: CountQuery, signal: AbortSignal) => Promise<Counts>;
  signal: AbortSignal | undefined;

  constructor(counted: (query: CountQuery, signal: AbortSignal) => Promise<Counts>) {
    super(() => []);
    this.#counted = counted;
  }

  override count(
    query?: CountQuery,
    options?: { readonly signal?: AbortSignal | undefined },
  ): Promise<never> {
    this.signal = options!.signal!;
    return this.#counted(query!, this.signal) as Promise<never>;
  }
}

/** The slow queries; the threshold is set so that every query counts as slow. */
const noted = (): SlowQueries => new SlowQueries(0, () => undefined);

const noTroubles = (): Promise<[]> => Promise.resolve([]);

async function serveCounts(
  store: ReadableStore | ReadonlyMap<string, ReadableStore>,
  { queriesMax = 4, queryTimeoutMs = 60_000, tally = new QueryTally(), slow = noted() } = {},
): Promise<(query: string, headers?: Record<string, string>, method?: string) => Promise<WireResponse>> {
  const running = await startConsole({
    address: { host: '127.0.0.1', port: 0 },
    hosts: ['test'],
    clientTimeoutMs: 10_000,
    log: () => undefined,
  });
  onTestFinished(() => running.close({ timeoutMs: 0 }));
  const stores = store instanceof Map ? store : new Map([['nginx', store as ReadableStore]]);
  const agents = new Map(
    [...stores].map(([name, each]) => [name, { definition: undefined as never, store: each }]),
  );
  const options = { timezone: 'UTC', queryTimeoutMs, now: () => Date.UTC(2026, 10, 24), tally, slow };
  running.open({ '/api/count/': new CountRoute(agents, new Admission(queriesMax), options) }, noTroubles);
  return (query, headers = {}, method = 'GET') =>
    ask(running.address, `/api/count/${query}`, { headers, method });
}

const rowsOf = (count: number): [bigint, bigint, number, string][] =>
  Array.from({ length: count }, (_, i) => [
    BigInt(Date.UTC(2026, 10, 20, 10) + i * 60_000),
    i % 5 === 0 ? 500n : 200n,
    i / 2,
    `line ${i % 7}`,
  ]);

async function storedRecords(): Promise<AgentStore> {
  const archive = await openOn(new MemoryDirectory());
  onTestFinished(() => archive.close());
  const store = await archive.agent('nginx', schema);
  await append(store, rowsOf(90), 'live');
  return store;
}

it('answers a count as JSON and as CSV, compressed on request, and only the headers for HEAD', async () => {
  const get = await serveCounts(await storedRecords());
  const sum = await get('nginx');
  expect(sum.status).toBe(200);
  expect(sum.headers.get('content-type')).toBe('application/json');
  expect(sum.headers.get('cache-control')).toBe('no-store');
  expect(sum.headers.get('server-timing')).toMatch(/^first;dur=/);
  expect(sum.body.toString()).toBe('{"agent":"nginx","count":90}\n');
  const query = 'nginx?by=time:1h&by=status&status__gte=0&took__lt=40';
  const both = await get(query);
  expect(JSON.parse(both.body.toString())).toEqual({
    agent: 'nginx',
    count: 80,
    time: {
      field: 'time',
      step: '1h',
      zone: 'UTC',
      nulls: 0,
      buckets: [
        { from: Date.UTC(2026, 10, 20, 10), until: Date.UTC(2026, 10, 20, 11), count: 60, values: [48, 12] },
        { from: Date.UTC(2026, 10, 20, 11), until: Date.UTC(2026, 10, 20, 12), count: 20, values: [16, 4] },
      ],
    },
    values: {
      field: 'status',
      top: [
        { value: 200, count: 64 },
        { value: 500, count: 16 },
      ],
      other: 0,
      nulls: 0,
      distinct: 2,
    },
  });
  const packed = await get(query, { 'Accept-Encoding': 'gzip' });
  expect(packed.headers.get('content-encoding')).toBe('gzip');
  expect(packed.headers.get('vary')).toBe('Accept-Encoding');
  expect(gunzipSync(packed.body)).toEqual(both.body);
  const csv = await get('nginx?by=status&format=csv');
  expect(csv.headers.get('content-type')).toBe('text/csv; charset=utf-8; header=present');
  expect(csv.body.toString()).toBe('status,count\r\n200,72\r\n500,18\r\n');
  const head = await get(query, {}, 'HEAD');
  expect([head.status, head.body.length]).toEqual([200, 0]);
  expect((await get('nginx?by=nothing', {}, 'HEAD')).status).toBe(400);
});

it('names the wrong parameter, and answers no other paths', async () => {
  const get = await serveCounts(await storedRecords());
  const mistake = await get('nginx?limit=3');
  expect(mistake.status).toBe(400);
  expect(JSON.parse(mistake.body.toString())).toMatchObject({ parameter: 'limit' });
  expect((await get('nobody')).status).toBe(404);
  expect((await get('nginx/more')).status).toBe(404);
  expect(JSON.parse((await get('nginx,nobody')).body.toString())).toMatchObject({
    status: 404,
    detail: 'there is no agent "nobody"',
  });
  expect((await get('nginx,nginx')).status).toBe(400);
});

it('adds up the counts of several agents', async () => {
  const archive = await openOn(new MemoryDirectory());
  onTestFinished(() => archive.close());
  const [nginx, app] = [await archive.agent('nginx', schema), await archive.agent('app', schema)];
  await append(nginx, rowsOf(90), 'live');
  await append(app, rowsOf(30), 'live');
  const tally = new QueryTally();
  const get = await serveCounts(
    new Map([
      ['nginx', nginx],
      ['app', app],
    ]),
    { tally },
  );
  const { body } = await get('nginx%2Capp?by=status&of=took&fn=max,avg&status__gte=0');
  expect(JSON.parse(body.toString())).toEqual({
    agent: 'nginx,app',
    count: 120,
    approximate: [],
    values: {
      field: 'status',
      top: [
        { value: 200, count: 96, of: { took: { max: 44.5, avg: 18.75 } } },
        { value: 500, count: 24, of: { took: { max: 42.5, avg: 17.5 } } },
      ],
      other: 0,
      nulls: 0,
      distinct: 2,
    },
  });
  expect([...tally.byAgent.keys()]).toEqual(['several agents']);
});

const counts = (count: number): Counts => ({ count, stats: newScanStats() });

it('ends a count that takes too long, and one whose client has disconnected', async () => {
  const store = new CountingStore(
    (_query, signal) =>
      new Promise((_resolve, reject) =>
        signal.addEventListener('abort', () => reject(signal.reason as Error)),
      ),
  );
  const get = await serveCounts(store, { queryTimeoutMs: 30 });
  const late = await get('nginx');
  expect(late.status).toBe(504);
  expect(JSON.parse(late.body.toString())).toMatchObject({ detail: expect.stringContaining('time limit') });

  const patient = new CountingStore(
    (_query, signal) =>
      new Promise((_resolve, reject) =>
        signal.addEventListener('abort', () => reject(signal.reason as Error)),
      ),
  );
  const running = await startConsole({
    address: { host: '127.0.0.1', port: 0 },
    hosts: ['test'],
    clientTimeoutMs: 10_000,
    log: () => undefined,
  });
  onTestFinished(() => running.close({ timeoutMs: 0 }));
  const agents = new Map([['nginx', { definition: undefined as never, store: patient }]]);
  const admission = new Admission(1);
  const noting = { tally: new QueryTally(), slow: noted() };
  const settings = { timezone: 'UTC', queryTimeoutMs: 60_000, now: Date.now, ...noting };
  running.open({ '/api/count/': new CountRoute(agents, admission, settings) }, noTroubles);
  const wire = await Wire.open(running.address);
  wire.send('GET /api/count/nginx HTTP/1.1\r\nHost: localhost\r\n\r\n');
  while (patient.signal === undefined) await new Promise((resolve) => setTimeout(resolve, 5));
  wire.socket.destroy();
  await new Promise<void>((resolve) => patient.signal!.addEventListener('abort', () => resolve()));
  expect(patient.signal.reason).toBeInstanceOf(LogstrataError);
});

it('takes a slot like a query', async () => {
  let finish: (() => void) | undefined;
  const store = new CountingStore(() => new Promise((resolve) => (finish = () => resolve(counts(3)))));
  const get = await serveCounts(store, { queriesMax: 1 });
  const first = get('nginx');
  while (finish === undefined) await new Promise((resolve) => setTimeout(resolve, 5));
  const refused = await get('nginx');
  expect(refused.status).toBe(429);
  finish();
  expect((await first).body.toString()).toBe('{"agent":"nginx","count":3}\n');
});

it('adds up the cost of counts, and lists a slow one among the queries', async () => {
  const tally = new QueryTally();
  const slow = noted();
  const get = await serveCounts(await storedRecords(), { tally, slow });
  const { body } = await get('nginx?by=status&took__lt=40');
  expect(tally.byAgent.get('nginx')).toMatchObject({ queries: 1, bytesReturned: body.length });
  expect(tally.byAgent.get('nginx')!.rowsScanned).toBeGreaterThan(0);
  expect((await get('nginx?by=took:1h')).status).toBe(400);
  expect(slow.list()).toMatchObject([
    { kind: 'count', agent: 'nginx', parameters: ['by=status', 'took__lt=40'], failure: null },
  ]);
});
