import { expect, it } from 'vitest';
import { makeSchema, type Predicate } from '../../engine/core/schema.js';
import { WorkerPool } from '../../engine/workers/worker-pool.js';
import { between, seededRandom } from '../model/random.js';
import { beginning } from '../model/several.js';
import { append, load, noon, openOn, textOf } from '../engine/store/memory-archive.js';
import { MemoryDirectory } from '../storage-doubles/memory-directory.js';
import { filters, recordsOf, SeveralBed } from './several-bed.js';

const schema = makeSchema([
  { name: 'time', type: 'time' },
  { name: 'took', type: 'float' },
]);
/** Neither bounds nor filters rule this out where both lower and higher values are. */
const between4And6: readonly Predicate[] = [
  { kind: 'float', field: 1, op: 'gt', value: 4 },
  { kind: 'float', field: 1, op: 'lt', value: 6 },
];

it.each(['forward', 'backward'])('an agent without a match is searched once on a walk %s', async (way) => {
  const archive = await openOn(new MemoryDirectory());
  const [busy, quiet] = [await archive.agent('busy', schema), await archive.agent('quiet', schema)];
  for (let part = 0; part < 6; part++) {
    const rows = (valueOf: (i: number) => number) =>
      Array.from({ length: 20 }, (_, i) => [BigInt(noon - 3_600_000 + part * 60_000 + i), valueOf(i)]);
    await load(
      busy,
      rows(() => 5),
    );
    await load(
      quiet,
      rows((i) => (i % 2) * 10),
    );
  }
  const several = busy.joined([quiet]);
  const scanned: number[] = [];
  let cursor: string | undefined = way === 'forward' ? beginning : undefined;
  const seen = new Set<string>();
  for (let page = 0; page < 30; page++) {
    const position = cursor === undefined ? undefined : several.cursors.parse(cursor);
    const place = way === 'forward' ? { after: position } : { before: position };
    const query = { limit: 5, predicates: [], of: [between4And6, between4And6], ...place } as never;
    const { lines, stats } = await several.scan(query);
    const records = recordsOf(await textOf(lines));
    if (records.length === 0) break;
    scanned.push(stats.rowGroupsScanned);
    for (const { _cursor } of records) seen.add(_cursor);
    cursor = records.at(way === 'forward' ? -1 : 0)!._cursor;
    // What is added is searched, and nothing else again.
    if (page === 9)
      await append(
        quiet,
        [
          [BigInt(noon), 0],
          [BigInt(noon), 10],
        ],
        'live',
      );
  }
  expect(seen.size).toBe(120);
  // The first page has read all six row groups of the agent without a match.
  expect(scanned[0]).toBeGreaterThan(6);
  expect(Math.max(...scanned.slice(1, 10))).toBeLessThanOrEqual(2);
  expect(Math.max(...scanned.slice(10))).toBeLessThanOrEqual(3);
  await archive.close();
});

it.each([0, 2])(
  'long answers with %i threads are those of the rules, in every format',
  async (threads) => {
    const random = seededRandom(11);
    const workers = new WorkerPool(threads);
    const bed = await SeveralBed.open(random, 3, workers);
    for (let step = 0; step < 12; step++) await bed.commit(900);
    const expected = await bed.expected({ limit: 100_000, after: beginning }, filters[0]!);
    expect(expected.length).toBeGreaterThan(3000);
    const query = bed.query({ limit: 100_000, after: beginning }, filters[0]!);
    for (const format of ['jsonl', 'json', 'csv'] as const) {
      const asked = { ...query, form: { format, fields: null } };
      const own = await textOf((await bed.store.scan(asked)).lines);
      const pieces: Buffer[] = [];
      for await (const piece of (await bed.store.scan(asked, { lends: true, pieceBytes: 1000 })).lines)
        pieces.push(Buffer.from(piece));
      expect(Buffer.concat(pieces).toString()).toBe(own);
      if (format === 'jsonl') expect(recordsOf(own)).toEqual(expected);
      if (format === 'json') expect(JSON.parse(own)).toEqual(expected);
      if (format === 'csv') expect(own.split('\r\n').length).toBe(expected.length + 2);
    }
    // An answer that is ended early gives back what it holds.
    for await (const piece of (await bed.store.scan(query, { lends: true })).lines) {
      expect(piece.length).toBeGreaterThan(0);
      if (between(random, 0, 3) === 0) break;
    }
    await bed.archive.close();
    await workers.close();
  },
  60_000,
);
