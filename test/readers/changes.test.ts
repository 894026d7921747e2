import { afterEach, beforeEach, expect, it } from 'vitest';
import type { Archive } from '../../engine/archive/archive.js';
import type { AgentStore } from '../../engine/archive/agent-store.js';
import type { ReadableStore } from '../../engine/archive/reading-store.js';
import { ReaderArchive } from '../../engine/far/reader-archive.js';
import type { Query } from '../../engine/scan/query.js';
import type { WriterQuestion, WriterClient } from '../../engine/far/reader-state.js';
import { makeSchema } from '../../engine/core/schema.js';
import { WorkerPool } from '../../engine/workers/worker-pool.js';
import { HttpWriterClient } from '../../server/http/http-writer-client.js';
import { load, noon, openOn, schema, textOf } from '../engine/store/memory-archive.js';
import type { Value } from '../model/dataset.js';
import { MemoryDirectory } from '../storage-doubles/memory-directory.js';
import { LyingCluster, LyingDoor } from './lying-cluster.js';
import { WriterBed } from './writer-bed.js';

const workers = new WorkerPool(0);
const all: Query = { limit: 1_000_000, predicates: [] };

function rowsOf(count: number, from: number): Value[][] {
  return Array.from({ length: count }, (_, i) => [
    BigInt(noon - 60_000 + from + i),
    BigInt(200 + (i % 7)),
    i / 8,
    `message ${from + i}`,
  ]);
}

let archive: Archive;
let writer: AgentStore;
let bed: WriterBed;
let door: LyingDoor;
let cluster: LyingCluster;
let reader: ReaderArchive;
let store: ReadableStore;
let nowMs: number;
let ends: (() => void)[] = [];

/** A reader on the clock of the test, for which an answer of the writer is valid for a second. */
beforeEach(async () => {
  nowMs = 0;
  archive = await openOn(new MemoryDirectory());
  writer = await archive.agent('a', schema);
  await load(writer, rowsOf(100, 0));
  await load(writer, rowsOf(100, 100));
  bed = await WriterBed.start(new Map([['a', writer]]));
  // The cluster ships the last record.
  cluster = new LyingCluster(writer, () => 0.999);
  const http = bed.door();
  ends = [() => http.close()];
  door = new LyingDoor(http, writer, cluster, () => 0.999_999);
  reader = readerOf(door, cluster);
  store = reader.agent('a');
  // Queries name the fields that the writer has reported.
  await store.snapshot();
});

/** A reader on the clock of the test, for which an answer of the writer is valid for a second. */
function readerOf(door: WriterClient, cluster: LyingCluster | undefined): ReaderArchive {
  return new ReaderArchive({ writer: door, cluster, lagMsMax: 1000, workers, now: () => nowMs });
}

afterEach(async () => {
  for (const end of ends) end();
  await bed.close();
  await archive.close();
});

async function answer(from: ReadableStore, query = all): Promise<string> {
  const { lines } = await from.scan(query);
  return textOf(lines);
}

it('answer from a state that is no older than the maximum lag', async () => {
  const before = await answer(writer);
  expect(await answer(store)).toBe(before);
  await load(writer, rowsOf(10, 300));
  nowMs = 1000;
  expect(await answer(store)).toBe(before);
  expect((await reader.figures()).agents[0]).toMatchObject({ records: 200, lagMs: 1000 });
  nowMs = 1001;
  expect(await answer(store)).toBe(await answer(writer));
  expect((await reader.figures()).agents[0]).toMatchObject({ records: 210, lagMs: 0 });
});

it('continue in a newer state if records that they know of have been removed', async () => {
  expect(await answer(store)).toBe(await answer(writer));
  const removed = await writer.remove({ kind: 'times', sinceMs: null, untilMs: noon - 60_000 + 50 });
  expect(removed.records).toBe(50);
  expect(await answer(store)).toBe(await answer(writer));
});

it('report that the fields have changed, and answer with the new ones', async () => {
  await answer(store);
  const old = store.schema;
  const fields = [
    ...schema.fields.filter(({ name }) => name !== 'took'),
    { name: 'level', type: 'int' as const },
  ];
  await archive.redefine('a', makeSchema(fields), undefined);
  // The known state is still valid, but the writer has other fields by now.
  await expect(answer(store)).rejects.toMatchObject({ code: 'conflict' });
  expect(store.schema).not.toBe(old);
  expect(await answer(store)).toBe(await answer(writer));
  expect(await answer(store)).toContain('"level":null');
});

it('ask the writer for near records, the far tier for others, and neither for records that are ruled out', async () => {
  await cluster.ship();
  const [unit] = cluster.units;
  const rows = unit!.copy.rows;
  expect(rows).toBe(1);
  nowMs = 1001;
  const last = { ...all, limit: 1 };
  await answer(store, last);
  expect([door.questions.length, cluster.asked]).toEqual([0, 1]);
  await answer(store, { ...all, limit: 1, after: { partition: 0, ordinal: 0 } });
  expect([door.questions.length, cluster.asked]).toEqual([1, 1]);
  expect(await answer(store)).toBe(await answer(writer));
  // 199 records, of which the writer returns 60 at once.
  expect([door.questions.length, cluster.asked]).toEqual([5, 2]);
});

it('ask the writer for no record in the far tier between near records', async () => {
  const middle = new LyingCluster(writer, () => 0.5);
  const http = bed.door();
  ends.push(() => http.close());
  const own = new LyingDoor(http, writer, middle, () => 0.5);
  await middle.ship();
  const [unit] = middle.units[0]!.runs;
  const last = unit!.firstOrdinal + unit!.rows - 1;
  expect([unit!.firstOrdinal, last]).toEqual([101, 121]);
  const other = readerOf(own, middle).agent('a');
  await other.snapshot();
  const rare: Query = { limit: 100, predicates: [{ kind: 'int', field: 1, op: 'gte', value: 206n }] };
  for (const query of [
    rare,
    { ...rare, limit: 1 },
    { ...all, limit: 99 },
    { ...all, after: { partition: 0, ordinal: 0 } },
  ])
    expect(await answer(other, query)).toBe(await answer(writer, query));
  const spans = own.questions.map(({ from, to }) => [from.ordinal, to.ordinal] as const);
  expect(spans.length).toBeGreaterThan(4);
  for (const [from, to] of spans)
    expect(to < unit!.firstOrdinal || from > last, `${from} to ${to}`).toBe(true);
});

it.each([
  ['from the first record on', { limit: 1000, after: { partition: 0, ordinal: 0 } }],
  ['from the last record back', { limit: 499 }],
])('receive long answers in parts, %s', async (_, part) => {
  const long = 'x'.repeat(50_000);
  await load(
    writer,
    rowsOf(300, 1000).map(([time, status, took, message]) => [
      time!,
      status!,
      took!,
      `${String(message)} ${long}`,
    ]),
  );
  nowMs = 1001;
  const http = bed.door();
  ends.push(() => http.close());
  const lengths: number[] = [];
  const counted = Object.assign(Object.create(http) as HttpWriterClient, {
    border: (agent: string, known: string | null) => http.border(agent, known),
    rows: async (question: WriterQuestion) => {
      const given = await http.rows(question);
      lengths.push(given.bytes.length);
      return given;
    },
  });
  const reading = readerOf(counted, undefined).agent('a');
  await reading.snapshot();
  const query: Query = { ...part, predicates: [{ kind: 'string', field: 3, op: 'like', value: 'message' }] };
  expect(await answer(reading, query)).toBe(await answer(writer, query));
  expect(lengths.length).toBeGreaterThan(1);
  for (const length of lengths) expect(length).toBeLessThan(12 * 1024 * 1024);
});

it('name a writer that is unreachable, at once for all queries, and recover with it', async () => {
  const { address } = bed.console;
  await answer(store);
  await bed.close();
  nowMs = 500;
  // Nothing has changed, but the records are on the writer.
  await expect(answer(store)).rejects.toMatchObject({
    code: 'unavailable',
    message: expect.stringContaining(address) as string,
  });
  nowMs = 2000;
  for (const failing of [answer(store), answer(store, { ...all, limit: 1 }), store.count({ predicates: [] })])
    await expect(failing).rejects.toMatchObject({
      code: 'unavailable',
      message: expect.stringContaining(address) as string,
    });
  expect(await reader.troubles()).toEqual([{ reason: expect.stringContaining(address) as string }]);
  expect((await reader.figures()).agents[0]).toMatchObject({ lagMs: 2000 });
});

it("report the writer's reason for a refusal", async () => {
  const wrong = new HttpWriterClient({ address: bed.server.address, token: null, ca: null });
  ends.push(() => wrong.close());
  await expect(wrong.agents()).rejects.toMatchObject({
    code: 'unavailable',
    message: expect.stringContaining('404') as string,
  });
  const right = bed.door();
  ends.push(() => right.close());
  await expect(right.border('nobody', null)).rejects.toMatchObject({ code: 'unavailable' });
});
