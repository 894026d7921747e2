import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import type { AgentStore } from '../../engine/archive/agent-store.js';
import { idleScansMax } from '../../engine/core/limits.js';
import { makeSchema } from '../../engine/core/schema.js';
import type { SeveralStore } from '../../engine/several/several-store.js';
import type { PieceIterator } from '../../engine/scan/scan.js';
import { WorkerPool } from '../../engine/workers/worker-pool.js';
import { caseCount, fc } from '../cases.js';
import { append, load, openCompacting, openOn, openToRead, textOf } from '../engine/store/memory-archive.js';
import { writeParquet } from '../foreign/write-parquet.js';
import type { Row } from '../foreign/placed-rows.js';
import { between, seededRandom, type Random } from '../model/random.js';
import { beginning, pageOfSeveral, type ListedRecord } from '../model/several.js';
import { MemoryDirectory } from '../storage-doubles/memory-directory.js';
import { listedOf, recordsOf } from './several-bed.js';

const hourMs = 3_600_000;
const dayMs = 24 * hourMs;
const nowMs = Date.UTC(2026, 10, 20, 12);

const schema = makeSchema([
  { name: 'time', type: 'time' },
  { name: 'level', type: 'int' },
  { name: 'message', type: 'string' },
]);
const attachedSchema = makeSchema([
  { name: 'time', type: 'time', attached: { column: '@timestamp', unit: 'ms' } },
  { name: 'level', type: 'int' },
  { name: 'message', type: 'string' },
]);

let number = 0;
/** Rows of some hours, in no order, some without a time. */
function rowsOf(random: Random, count: number, hours = 5): Row[] {
  return Array.from({ length: count }, () => {
    const time = nowMs - between(random, 1, hours * 60) * 60_000;
    return [random() < 0.1 ? null : BigInt(time), BigInt(between(random, 0, 4)), `record ${number++}`];
  });
}

async function pageOf(
  store: SeveralStore,
  limit: number,
  place: { after?: string; before?: string },
): Promise<ListedRecord[]> {
  const positionOf = (cursor: string | undefined) =>
    cursor === undefined ? undefined : (store.cursors.parse(cursor) as never);
  const of = store.stores.map(() => []);
  const bounds = { after: positionOf(place.after), before: positionOf(place.before) };
  return recordsOf(await textOf((await store.scan({ limit, predicates: [], of, ...bounds })).lines));
}

/** The agent and the position of a record, whose cursor may name other positions of the other agents later. */
function idOf({ _cursor }: ListedRecord): string {
  const [, agent, ...positions] = _cursor.split('.');
  return `${agent} ${positions[Number(agent) - 1]}`;
}

/** The records of pages from the beginning on. `change` is called after each page. */
async function walk(
  store: SeveralStore,
  size: number,
  change: (page: number) => Promise<void>,
): Promise<string[]> {
  const seen: string[] = [];
  for (let [after, page] = [beginning, 0]; ; page++) {
    const records = await pageOf(store, size, { after });
    if (records.length === 0) return seen;
    seen.push(...records.map(idOf));
    after = records.at(-1)!._cursor;
    await change(page);
  }
}

async function idsOf(store: SeveralStore): Promise<string[]> {
  return (await pageOf(store, 1_000_000, { after: beginning })).map(idOf);
}

function joinedOf([first, ...others]: readonly AgentStore[]): SeveralStore {
  return first!.joined(others);
}

it('agents whose files lie where others wrote them are merged by the rules, also while a file goes away', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'logstrata-several-'));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  let files = 0;
  await fc.assert(
    fc.asyncProperty(fc.integer(), async (seed) => {
      const random = seededRandom(seed);
      const archive = await openOn(new MemoryDirectory(), () => nowMs);
      const stores: AgentStore[] = [];
      for (let k = 0; k < 3; k++) {
        const store = await archive.agent(`agent-${'cab'[k]}`, k === 2 ? schema : attachedSchema);
        stores.push(store);
        if (k === 2) await load(store, rowsOf(random, 40));
        for (let file = 0; file < 2 && k < 2; file++) {
          const path = join(folder, `${files++}.parquet`);
          await writeParquet(path, attachedSchema, rowsOf(random, 40), {
            rowGroupRows: between(random, 5, 30),
            pageBytes: 100,
          });
          const adds = [{ path, format: 'parquet' as const, constants: {} }];
          const { problems } = await store.attach({ adds, moves: [], removes: [] });
          expect(problems).toEqual([]);
        }
      }
      const store = joinedOf(stores);
      const known = [beginning];
      for (let n = 0; n < 12; n++) {
        const one = (): string | undefined =>
          random() < 0.4 ? undefined : known[between(random, 0, known.length)];
        const query = { limit: between(random, 0, 60), after: one(), before: one() };
        const page = await pageOf(store, query.limit, query as never);
        expect(page).toEqual(pageOfSeveral(await listedOf(stores, () => true), query));
        known.push(...page.map(({ _cursor }) => _cursor));
      }
      const all = await idsOf(store);
      let left: string[] = [];
      const seen = await walk(store, 7, async (page) => {
        if (page !== 4) return;
        const [file] = await stores[0]!.attachedFiles();
        await stores[0]!.attach({ adds: [], moves: [], removes: [file!.id] });
        left = await idsOf(store);
      });
      expect(left.length).toBe(all.length - 40);
      expect(new Set(seen).size).toBe(seen.length);
      // Nothing that is still there is missing, and nothing comes that was not there.
      expect(left.filter((id) => !seen.includes(id))).toEqual([]);
      expect(seen.filter((id) => !all.includes(id))).toEqual([]);
      expect(seen.slice(35).filter((id) => !left.includes(id))).toEqual([]);
      await archive.close();
    }),
    { numRuns: caseCount(20, 400) },
  );
});

it('retention of one agent between two pages repeats no record and skips none that is left', async () => {
  const clock = { now: nowMs };
  const archive = await openCompacting(new MemoryDirectory(), () => clock.now);
  const twoDays = { periodMs: 2 * dayMs, bytesMax: null, intervalMs: hourMs, graceMs: 0 };
  const short = await archive.agent('short', schema, twoDays);
  const long = await archive.agent('long', schema);
  const hourly = (endMs: number, hours: number): Row[] =>
    Array.from({ length: hours }, (_, i) => [BigInt(endMs - (hours - i) * hourMs), 1n, `record ${number++}`]);
  for (const store of [short, long])
    for (let half = 0; half < 4; half++) await load(store, hourly(nowMs - (3 - half) * 12 * hourMs, 12));
  const store = joinedOf([short, long]);
  const all = await idsOf(store);
  expect(all).toHaveLength(96);
  let left: string[] = [];
  const seen = await walk(store, 10, async (page) => {
    if (page !== 2) return;
    clock.now += 18 * hourMs;
    await load(short, [[BigInt(clock.now - 1), 1n, 'the newest']]);
    await archive.applyRetention('short', twoDays);
    left = await idsOf(store);
    expect(left.length).toBeLessThan(all.length);
  });
  expect(new Set(seen).size).toBe(seen.length);
  expect(left.filter((id) => !seen.includes(id))).toEqual([]);
  // Of the records that were removed, those that came before are all there are.
  expect(seen.slice(30).filter((id) => !left.includes(id))).toEqual([]);
  await archive.close();
});

it.each([0, 2])(
  'a long answer that its reader pauses is of one state, with %i threads',
  async (threads) => {
    const random = seededRandom(5);
    const workers = new WorkerPool(threads);
    const archive = await openOn(new MemoryDirectory(), () => nowMs, workers);
    const stores = [await archive.agent('a', schema), await archive.agent('b', schema)];
    for (const store of stores) for (let part = 0; part < 3; part++) await load(store, rowsOf(random, 3000));
    const store = joinedOf(stores);
    const query = { limit: 1_000_000, after: store.cursors.parse(beginning) as never, predicates: [] };
    const asked = { ...query, of: [[], []] };
    const expected = await textOf((await store.scan(asked)).lines);
    // The scan that has been idle longest gives back all that it holds, and goes on after the last record that its reader has.
    const idle: PieceIterator[] = [];
    const begun: Buffer[] = [];
    for (let n = 0; n <= idleScansMax; n++) {
      const { lines } = await store.scan(asked, { lends: true, pieceBytes: 5000 });
      const pieces = lines[Symbol.asyncIterator]() as PieceIterator;
      idle.push(pieces);
      begun.push(Buffer.from((await pieces.next()).value as Uint8Array));
    }
    await load(stores[0]!, rowsOf(random, 500));
    await append(stores[1]!, rowsOf(random, 50), 'live');
    for (const each of stores) await each.compact();
    for (const which of [0, idleScansMax]) {
      const text = [begun[which]!];
      for (let result = await idle[which]!.next(); result.done !== true; result = await idle[which]!.next())
        text.push(Buffer.from(result.value));
      expect(Buffer.concat(text).toString()).toBe(expected);
    }
    for (const pieces of idle) await pieces.return!();
    await archive.close();
    await workers.close();
  },
  60_000,
);

it('an answer goes on where another process has replaced the files of its agents', async () => {
  const random = seededRandom(6);
  const directory = new MemoryDirectory();
  const writer = await openOn(directory, () => nowMs);
  const written = [await writer.agent('a', schema), await writer.agent('b', schema)];
  for (const store of written) for (let part = 0; part < 6; part++) await load(store, rowsOf(random, 200));
  const reader = await openToRead(directory);
  const store = joinedOf([await reader.agent('a', schema), await reader.agent('b', schema)]);
  const query = { limit: 1_000_000, after: store.cursors.parse(beginning) as never, predicates: [] };
  const scan = await store.scan({ ...query, of: [[], []] }, { pieceBytes: 3000 });
  const expected = await textOf((await joinedOf(written).scan({ ...query, of: [[], []] })).lines);
  const files = (await written[0]!.stats()).segments;
  const text: Buffer[] = [];
  for await (const piece of scan.lines) {
    text.push(Buffer.from(piece));
    if (text.length > 1) continue;
    for (const each of written) await each.compact();
    expect((await written[0]!.stats()).segments).toBeLessThan(files);
    await load(written[0]!, rowsOf(random, 100));
  }
  expect(Buffer.concat(text).toString()).toBe(expected);
  await reader.close();
  await writer.close();
});
