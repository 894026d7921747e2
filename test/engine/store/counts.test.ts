import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { expect, it, onTestFinished } from 'vitest';
import { seed } from '../../cases.js';
import type { AgentStore } from '../../../engine/archive/agent-store.js';
import type { CountQuery, Counts } from '../../../engine/scan/count-query.js';
import { makeSchema, type Schema } from '../../../engine/core/schema.js';
import { parseCountRequest } from '../../../server/http/count-request.js';
import { writeParquet } from '../../foreign/write-parquet.js';
import { countsOf, type ModelCounts } from '../../model/count.js';
import type { Value } from '../../model/dataset.js';
import { MemoryDirectory } from '../../storage-doubles/memory-directory.js';
import { append, load, noon, openOn, openToRead, schema } from './memory-archive.js';

type Row = readonly Value[];

/** Records of several hours, with late records, equal times and nulls. */
const rows = (count: number, seed: number): Row[] =>
  fc.sample(
    fc.tuple<Value[]>(
      fc.option<Value>(
        fc.nat(6 * 3_600_000).map((ms) => BigInt(noon - ms)),
        { freq: 20 },
      ),
      fc.option<Value>(fc.constantFrom(200n, 404n, 500n), { freq: 20 }),
      fc.constantFrom(0, -0, 1.5),
      fc.nat(30).map((id) => `message ${id}`),
    ),
    { seed, numRuns: count },
  );

const queries = [
  '',
  'by=time:1h',
  'by=time:1h&by=status&zone=Asia/Kathmandu',
  'by=took&top=1',
  'by=message&top=3&status__gte=400',
  'by=time:5m&by=message&top=2&message__like=2',
];

const parse = (query: string, fields: Schema): CountQuery =>
  parseCountRequest(query, { schema: fields, now: noon, timezone: 'UTC' }).query;

const withoutStats = ({ stats: _, ...counts }: Counts): ModelCounts => counts;

/** Counts do not depend on the order of the records. */
async function compare(store: AgentStore, stored: readonly Row[], seed: number): Promise<void> {
  const records = stored.map((values, i) => ({ position: { partition: 1, ordinal: i + 1 }, values }));
  for (const query of queries) {
    const asked = parse(query, store.schema);
    const counts = await store.count(asked);
    expect(withoutStats(counts), `${query}, seed ${seed}`).toEqual(
      countsOf({ schema: store.schema, records }, asked),
    );
  }
}

it('counts hot records, sealed records, both, and the records of another process', async () => {
  const directory = new MemoryDirectory();
  const archive = await openOn(directory);
  onTestFinished(() => archive.close());
  const store = await archive.agent('web', schema);
  const all = rows(900, seed);
  await compare(store, [], seed);
  await append(store, all.slice(0, 300), 'live');
  await compare(store, all.slice(0, 300), seed);
  await load(store, all.slice(300, 600), 100);
  await compare(store, all.slice(0, 600), seed);
  await store.compact();
  await append(store, all.slice(600), 'live');
  await compare(store, all, seed);
  await store.compact();
  const reader = await openToRead(directory);
  onTestFinished(() => reader.close());
  await compare(await reader.agent('web'), all, seed);
});

it('counts records of older fields as records of the current fields', async () => {
  const directory = new MemoryDirectory();
  const before = await openOn(directory);
  const old = rows(300, seed);
  const store = await before.agent('web', schema);
  await load(store, old.slice(0, 200), 50);
  await append(store, old.slice(200), 'live');
  await before.close();
  // The numbers become strings, and one field is added.
  const changed = makeSchema([
    { name: 'host', type: 'string' },
    { name: 'time', type: 'time' },
    { name: 'message', type: 'string' },
    { name: 'status', type: 'string' },
    { name: 'took', type: 'string' },
  ]);
  const archive = await openOn(directory);
  onTestFinished(() => archive.close());
  const later = await archive.agent('web', changed);
  await append(later, [['db1', BigInt(noon), 'message 2', '404', '1.5']], 'live');
  const text = (value: Value): Value => (value === null ? null : Object.is(value, -0) ? '-0' : String(value));
  const records = [
    ...old.map(([time, status, took, message]) => [null, time!, message!, text(status!), text(took!)]),
    ['db1', BigInt(noon), 'message 2', '404', '1.5'],
  ].map((values, i) => ({ position: { partition: 1, ordinal: i + 1 }, values }));
  for (const query of ['by=host', 'by=status&by=time:1h', 'by=took', 'host__exact=db1&by=time:1h&by=host']) {
    const asked = parse(query, changed);
    const counts = await later.count(asked);
    expect(withoutStats(counts), `${query}, seed ${seed}`).toEqual(
      countsOf({ schema: changed, records }, asked),
    );
  }
});

it('counts records of attached files', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'logstrata-counts-'));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  const archive = await openOn(new MemoryDirectory());
  onTestFinished(() => archive.close());
  const fields = schema.fields.map((field) =>
    field.type === 'time' ? { ...field, attached: { column: 'time', unit: 'ms' as const } } : field,
  );
  const attached = makeSchema(fields);
  const store = await archive.agent('web', attached);
  const all = rows(500, seed);
  const path = join(folder, 'part.parquet');
  await writeParquet(path, attached, all.slice(0, 400), { rowGroupRows: 100, pageBytes: 1000 });
  const { problems } = await store.attach({
    adds: [{ path, format: 'parquet', constants: {} }],
    moves: [],
    removes: [],
  });
  expect(problems).toEqual([]);
  await compare(store, all.slice(0, 400), seed);
  await append(store, all.slice(400), 'live');
  await compare(store, all, seed);
  await store.indexAttached();
  await compare(store, all, seed);
});
