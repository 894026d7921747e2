import { expect, it } from 'vitest';
import { caseCount, fc } from '../../cases.js';
import type { AgentStore } from '../../../engine/archive/agent-store.js';
import type { Query, ScanStats } from '../../../engine/scan/query.js';
import { makeSchema, type FieldIndex, type Schema } from '../../../engine/core/schema.js';
import { answerOf } from '../../model/answer.js';
import type { Dataset, Value } from '../../model/dataset.js';
import { seededRandom } from '../../model/random.js';
import { MemoryDirectory } from '../../storage-doubles/memory-directory.js';
import { parseCursor } from '../../../engine/core/cursor.js';
import { answer, load, noon, openOn, textOf } from './memory-archive.js';

const runs = caseCount(50, 2000);
const random = seededRandom(7);
const word = (): string =>
  Math.floor(random() * 2 ** 32)
    .toString(16)
    .padStart(8, '0');
const texts = Array.from(
  { length: 8000 },
  (_, i) =>
    `GET /api/v1/prices/${i % 300} answered 200 by the server at 10.0.1.10:8080 after ${i % 877} ms, request ${word()}${word()}${word()}`,
);
const rows = texts.map((text, i): Value[] => [BigInt(noon - i * 1000), text]);

const schemaOf = (index: FieldIndex): Schema =>
  makeSchema([
    { name: 'time', type: 'time' },
    { name: 'message', type: 'string', index },
  ]);

const like = (value: string): Query => ({
  limit: 100,
  predicates: [{ kind: 'string', field: 1, op: 'like', value }],
});

async function ask(store: AgentStore, query: Query): Promise<{ text: string; stats: ScanStats }> {
  const { lines, stats } = await store.scan(query);
  return { text: await textOf(lines), stats };
}

/** What a search for absent digits reads of filters, and of columns. */
async function costOfNeedles(store: AgentStore): Promise<{ pieces: number; scanned: number }> {
  const cost = { pieces: 0, scanned: 0 };
  const digits = seededRandom(11);
  for (let i = 0; i < 600; i++) {
    const needle = Array.from({ length: 10 }, () => Math.floor(digits() * 16).toString(16)).join('');
    const { text, stats } = await ask(store, like(needle));
    expect(text).toBe('');
    cost.pieces += stats.gramPiecesRead;
    cost.scanned += stats.rowGroupsScanned;
  }
  return cost;
}

function modelOf(lines: string, schema: Schema): Dataset {
  const records = lines
    .trimEnd()
    .split('\n')
    .map((line) => {
      const { _cursor, time, message } = JSON.parse(line) as {
        _cursor: string;
        time: number;
        message: string;
      };
      return { position: parseCursor(_cursor)!, values: [BigInt(time), message] };
    });
  return { schema, records };
}

it('`index: full` reads fewer pieces and scans fewer row groups, and gives the answer of the model', async () => {
  const costs: { pieces: number; scanned: number }[] = [];
  for (const index of [undefined, 'full'] as const) {
    const archive = await openOn(new MemoryDirectory());
    const store = await archive.agent('web', schemaOf(index));
    await load(store, rows);
    const model = modelOf(await answer(store), store.schema);
    costs.push(await costOfNeedles(store));
    await fc.assert(
      fc.asyncProperty(
        fc.nat(texts.length - 1),
        fc.nat(130),
        fc.integer({ min: 1, max: 14 }),
        async (row, from, length) => {
          const query = like(texts[row]!.slice(from, from + length).toUpperCase());
          expect((await ask(store, query)).text).toBe(answerOf(model, query));
        },
      ),
      { numRuns: runs },
    );
    await archive.close();
  }
  const [ofDefault, full] = costs;
  expect(full!.pieces).toBeLessThan(ofDefault!.pieces);
  expect(full!.scanned).toBeLessThan(ofDefault!.scanned / 1.5);
});

it('a field that gets `index: full` has it in later loads, and in everything that is compacted', async () => {
  const directory = new MemoryDirectory();
  const first = await openOn(directory);
  const before = await first.agent('web', schemaOf(undefined));
  await load(before, rows.slice(0, 4000));
  const { bytesGramFilters } = await before.stats();
  expect((await before.stats()).segmentsToRefilter).toBe(0);
  await first.close();

  const archive = await openOn(directory);
  const store = await archive.agent('web', schemaOf('full'));
  await load(
    store,
    rows.slice(4000).map(([time, message]) => [(time as bigint) - 3n * 86_400_000n, message!]),
  );
  const { segments, segmentsToRefilter } = await store.stats();
  expect(segmentsToRefilter).toBeGreaterThan(0);
  expect(segmentsToRefilter).toBeLessThan(segments);
  const lines = await answer(store);
  const cost = await costOfNeedles(store);
  await store.compact();
  const after = await store.stats();
  expect(after.segmentsToRefilter).toBe(0);
  // There are twice as many records; the rest of the growth comes from larger filters.
  expect(after.bytesGramFilters).toBeGreaterThan(2.5 * bytesGramFilters);
  const costAfter = await costOfNeedles(store);
  expect(costAfter.scanned).toBeLessThan(cost.scanned);
  expect(costAfter.pieces).toBeLessThan(1.05 * cost.pieces);
  expect(await answer(store)).toBe(lines);
  expect(await store.verify()).toMatchObject({ damages: [], records: texts.length });
  // There is nothing left to compact.
  const { manifest } = after;
  await store.compact();
  expect((await store.stats()).manifest).toBe(manifest);
  await archive.close();
});
