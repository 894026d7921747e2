import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { caseCount, fc, isLong } from '../cases.js';
import type { AgentStore } from '../../engine/archive/agent-store.js';
import type { Archive } from '../../engine/archive/archive.js';
import { formatCursor } from '../../engine/core/cursor.js';
import { openArchive } from '../../engine/index.js';
import type { Query } from '../../engine/scan/query.js';
import { makeSchema, type Schema } from '../../engine/core/schema.js';
import { answer, append, load } from '../engine/store/memory-archive.js';
import { answerOf } from '../model/answer.js';
import { datasets, predicates, queries, strangeSchema } from '../model/arbitraries.js';
import type { Value } from '../model/dataset.js';
import { queryAllDuckDb, queryDuckDb } from './duckdb.js';
import { isSayable, recordOf, sealed, sqlOf } from './sql-query.js';
import type { Codec } from '../../engine/parquet/compression.js';
import type { StoreStats } from '../../engine/maintenance/stats.js';

const hourMs = 3_600_000;
const nowMs = Date.UTC(2025, 2, 1);
const everything: Query = { limit: 1_000_000, after: undefined, before: undefined, predicates: [] };

/** The schema after a change: two new fields, and another order. */
const changedSchema = makeSchema([
  { name: 'extra', type: 'int' },
  ...strangeSchema.fields.slice().reverse(),
  { name: 'note', type: 'string' },
]);

let folder: string;
let folders = 0;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'logstrata-oracle-'));
});
afterAll(async () => {
  await rm(folder, { recursive: true, force: true });
});

type Row = readonly Value[];

interface Story {
  readonly rows: readonly Row[];
  readonly codec: Codec;
  readonly seed: number;
}

/** Rows of several days, some of which are close together. */
const stories: fc.Arbitrary<Story> = fc
  .record({
    parts: fc.tuple(...Array.from({ length: 4 }, () => datasets(isLong ? 100 : 30))),
    hours: fc.array(fc.nat(80), { minLength: 1, maxLength: 30 }),
    codec: fc.constantFrom<Codec>('lz4', 'zstd'),
    seed: fc.nat(),
  })
  .map(({ parts, hours, codec, seed }) => {
    const records = parts.flatMap((part) => part.records);
    const rows = records.map(({ values: [time, ...others] }, i) => {
      const hour = BigInt(hours[i % hours.length]! * hourMs);
      return [time === null ? null : (time as bigint) + hour, ...others];
    });
    return { rows, codec, seed };
  });

/** Changes the archive's only agent, queries it, and closes the archive, so that all replaced files are removed. */
async function asked(
  place: string,
  schema: Schema,
  { codec, seed }: Story,
  act: (store: AgentStore) => Promise<void>,
): Promise<{ stats: StoreStats; answers: { query: Query; text: string }[] }> {
  const archive: Archive = await openArchive(place, { mode: 'write', role: 'test', now: () => nowMs, codec });
  try {
    const store = await archive.agent('web', schema);
    await act(store);
    const stats = await store.stats();
    const answers: { query: Query; text: string }[] = [];
    for (const query of await questions(place, schema, stats, seed))
      answers.push({ query, text: await answer(store, query) });
    return { stats, answers };
  } finally {
    await archive.close();
  }
}

/** All records, then random queries and single filters, made from existing values and positions. */
async function questions(place: string, schema: Schema, stats: StoreStats, seed: number): Promise<Query[]> {
  const all = stats.segments === 0 ? [] : await queryDuckDb(sqlOf(everything, schema, join(place, 'web')));
  const dataset = { schema, records: all.map((row) => recordOf(row, schema)) };
  const drawn = fc.sample(queries(dataset), { seed, numRuns: caseCount(15, 40) });
  const filters = fc.sample(predicates(dataset), { seed, numRuns: caseCount(20, 80) });
  return [everything, ...drawn, ...filters.map((each) => ({ ...everything, predicates: [each] }))].map(
    (query) => ({ ...query, predicates: query.predicates.filter(isSayable) }),
  );
}

/** Checks that DuckDB gives the same answers and figures. Returns the number of records. */
async function compare(
  place: string,
  schema: Schema,
  { stats, answers }: Awaited<ReturnType<typeof asked>>,
): Promise<void> {
  expect(stats.hotRecords).toBe(0);
  if (stats.segments === 0) {
    for (const { text } of answers) expect(text).toBe('');
    return;
  }
  const web = join(place, 'web');
  const statements = answers.map(({ query }) => sqlOf(query, schema, web));
  const bounds = 'count(*) AS n, min(_cursor) AS low, max(_cursor) AS high';
  statements.push(`SELECT ${bounds} FROM ${sealed(web)}`);
  const results = await queryAllDuckDb(statements);
  for (const [i, { text }] of answers.entries()) {
    const records = results[i]!.map((row) => recordOf(row, schema));
    expect(text, statements[i]).toBe(answerOf({ schema, records }, everything));
  }
  const [figures] = results.at(-1)!;
  expect({
    n: BigInt(stats.records),
    low: asInteger(stats.firstCursor),
    high: asInteger(stats.lastCursor),
  }).toEqual(figures);
}

function asInteger(cursor: string | null): bigint | null {
  return cursor === null ? null : BigInt(`0x${cursor}`);
}

/** Only the values of the records, in a fixed order: the stored values must be those that were given. */
function valuesOf(schema: Schema, rows: readonly Row[]): string[] {
  const position = { partition: 1, ordinal: 1 };
  return rows.map((values) => answerOf({ schema, records: [{ position, values }] }, everything)).sort();
}

function withoutCursors(text: string): string[] {
  const cursor = formatCursor({ partition: 1, ordinal: 1 });
  const lines = text.split('\n').filter((line) => line !== '');
  return lines
    .map((line) => `${line.replace(/^\{"_cursor":"[0-9a-f]{16}"/, `{"_cursor":"${cursor}"`)}\n`)
    .sort();
}

describe('the folder of sealed segments as DuckDB reads it', () => {
  it('holds the stored records, and gives the same answers as the engine: loaded, compacted, and after a schema change', async () => {
    await fc.assert(
      fc.asyncProperty(stories, async (story) => {
        const place = join(folder, String(folders++));
        const { rows } = story;
        const third = Math.ceil(rows.length / 3);

        const loaded = await asked(place, strangeSchema, story, async (store) => {
          await load(store, rows.slice(0, third), 7);
          await load(store, rows.slice(third, 2 * third));
        });
        await compare(place, strangeSchema, loaded);
        expect(withoutCursors(loaded.answers[0]!.text)).toEqual(
          valuesOf(strangeSchema, rows.slice(0, 2 * third)),
        );

        const compacted = await asked(place, strangeSchema, story, async (store) => {
          await append(store, rows.slice(2 * third), 'live');
          await store.compact({ codec: story.codec === 'lz4' ? 'zstd' : 'lz4' });
        });
        await compare(place, strangeSchema, compacted);
        expect(withoutCursors(compacted.answers[0]!.text)).toEqual(valuesOf(strangeSchema, rows));

        const old = rows.map((row) => [null, ...[...row].reverse(), null]);
        const fresh = rows.slice(0, third).map((row, i) => [BigInt(i), ...[...row].reverse(), `note ${i}`]);
        const changed = await asked(place, changedSchema, story, async (store) => {
          await load(store, fresh);
        });
        await compare(place, changedSchema, changed);
        expect(withoutCursors(changed.answers[0]!.text)).toEqual(valuesOf(changedSchema, [...old, ...fresh]));
      }),
      { numRuns: caseCount(6, 200) },
    );
  });
});
