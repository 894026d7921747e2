import { expect, it } from 'vitest';
import { caseCount, fc } from '../cases.js';
import type { ReadableStore } from '../../engine/archive/reading-store.js';
import { ReaderArchive } from '../../engine/far/reader-archive.js';
import type { Query } from '../../engine/scan/query.js';
import type { Position } from '../../engine/core/cursor.js';
import { WorkerPool } from '../../engine/workers/worker-pool.js';
import { append, load, noon, openOn, textOf } from '../engine/store/memory-archive.js';
import { ModelStore } from '../engine/store/model-store.js';
import { answerOf, matchesOf } from '../model/answer.js';
import { datasets, forms, queries, strangeSchema } from '../model/arbitraries.js';
import { countsOf } from '../model/count.js';
import type { Value } from '../model/dataset.js';
import { seededRandom } from '../model/random.js';
import { MemoryDirectory } from '../storage-doubles/memory-directory.js';
import { LyingCluster, LyingDoor } from './lying-cluster.js';
import { WriterBed } from './writer-bed.js';

const workers = new WorkerPool(0);

/** A writer behind HTTP, two readers of it, units that only the readers know of, and the model of all of their records. */
class Readers {
  readonly model = new ModelStore(strangeSchema);
  readonly answering: ReadableStore[] = [];

  private constructor(
    readonly writer: Awaited<ReturnType<Awaited<ReturnType<typeof openOn>>['agent']>>,
    readonly cluster: LyingCluster,
    readonly doors: LyingDoor[],
    private readonly ends: (() => Promise<void> | void)[],
  ) {}

  static async open(seed: number): Promise<Readers> {
    const random = seededRandom(seed);
    const archive = await openOn(new MemoryDirectory());
    const writer = await archive.agent('a', strangeSchema);
    const bed = await WriterBed.start(new Map([['a', writer]]));
    const cluster = new LyingCluster(writer, random);
    const doors = [bed.door(), bed.door()];
    const lying = doors.map((door) => new LyingDoor(door, writer, cluster, random));
    const ends = [...doors.map((door) => () => door.close()), () => bed.close(), () => archive.close()];
    const readers = new Readers(writer, cluster, lying, ends);
    readers.answering.push(writer);
    for (const door of lying)
      readers.answering.push(new ReaderArchive({ writer: door, cluster, lagMsMax: 0, workers }).agent('a'));
    return readers;
  }

  async store(rows: readonly (readonly Value[])[], isLive: boolean): Promise<void> {
    if (rows.length === 0) return;
    if (isLive) await append(this.writer, rows, 'load');
    else await load(this.writer, rows);
    this.model.load(rows, noon);
  }

  async close(): Promise<void> {
    for (const end of this.ends) await end();
  }
}

async function answer(store: ReadableStore, query: Query): Promise<string> {
  const { lines } = await store.scan(query);
  return textOf(lines);
}

const seeds = fc.integer({ min: 1, max: 2 ** 31 - 1 });
const sizes = fc.array(fc.integer({ min: 1, max: 25 }), { maxLength: 6 });

it('give the answers of the writer, wherever the border is', async () => {
  await fc.assert(
    fc.asyncProperty(datasets(60), sizes, seeds, fc.gen(), async ({ records }, loads, seed, draw) => {
      const readers = await Readers.open(seed);
      try {
        // They know an empty archive, which is outdated after the first records.
        for (const store of readers.answering) await store.snapshot();
        let at = 0;
        for (const [i, rows] of [...loads, records.length].entries()) {
          await readers.store(
            records.slice(at, at + rows).map(({ values }) => values),
            i % 2 === 1,
          );
          at += rows;
          if (draw(fc.boolean)) await readers.cluster.ship();
        }
        for (let i = 0; i < 40; i++) {
          const query = { ...draw(queries, readers.model), form: draw(forms, readers.model) };
          const store = readers.answering[1 + (i % 2)]!;
          // The fields that filters name are those of a state.
          await store.snapshot();
          expect(await answer(store, query)).toBe(answerOf(readers.model, query));
          if (i % 10 !== 0) continue;
          const { after, before, predicates } = query;
          const counted = { after, before, predicates, values: { field: 3, top: 5 } };
          const { stats: _, ...counts } = await store.count(counted);
          expect(counts).toEqual(countsOf(readers.model, counted));
        }
      } finally {
        await readers.close();
      }
    }),
    { numRuns: caseCount(8, 100), endOnFailure: true },
  );
});

/** A client that resumes at its last cursor, where each page is answered by either reader. */
async function walk(
  readers: Readers,
  query: Query,
  isForward: boolean,
  choose: () => number,
): Promise<Position[]> {
  const seen: Position[] = [];
  let at = query;
  for (;;) {
    const store = readers.answering[choose()]!;
    await store.snapshot();
    const text = await answer(store, at);
    const page = positionsOf(text);
    if (page.length === 0) return seen;
    if (isForward) {
      seen.push(...page);
      at = { ...at, after: page.at(-1) };
    } else {
      seen.unshift(...page);
      at = { ...at, before: page[0] };
    }
  }
}

function positionsOf(text: string): Position[] {
  const lines = text.split('\n').filter((line) => line !== '');
  return lines.map((line) => {
    const cursor = line.slice(12, 28);
    return { partition: parseInt(cursor.slice(0, 6), 16), ordinal: parseInt(cursor.slice(6), 16) };
  });
}

it.each(['forward', 'backward'])(
  'are paged through %s from one to another while records are shipped and added',
  async (way) => {
    const isForward = way === 'forward';
    await fc.assert(
      fc.asyncProperty(datasets(60), seeds, fc.gen(), async ({ records }, seed, draw) => {
        const readers = await Readers.open(seed);
        const random = seededRandom(seed);
        try {
          const half = Math.ceil(records.length / 2);
          await readers.store(
            records.slice(0, half).map(({ values }) => values),
            random() < 0.5,
          );
          const { predicates } = draw(queries, readers.model);
          const query: Query = {
            limit: 1 + Math.floor(random() * 9),
            predicates,
            ...(isForward ? { after: { partition: 0, ordinal: 0 } } : {}),
          };
          const known = matchesOf(readers.model, { ...query, limit: 1e9 }).map(({ position }) => position);
          let isOver = false;
          const going = walk(readers, query, isForward, () => Math.floor(random() * 3)).finally(() => {
            isOver = true;
          });
          going.catch(() => undefined);
          let at = half;
          while (!isOver) {
            await readers.cluster.ship();
            await readers.store(
              records.slice(at, at + 3).map(({ values }) => values),
              random() < 0.5,
            );
            at += 3;
            await new Promise((resolve) => setImmediate(resolve));
          }
          const seen = await going;
          const now = matchesOf(readers.model, { ...query, limit: 1e9 }).map(({ position }) => position);
          const keys = seen.map(({ partition, ordinal }) => `${partition} ${ordinal}`);
          // Ascending and without repetition: all records that were there from the beginning, and none that is missing at the end.
          expect(new Set(keys).size).toBe(keys.length);
          const places = new Map(now.map(({ partition, ordinal }, i) => [`${partition} ${ordinal}`, i]));
          const order = keys.map((key) => places.get(key) ?? NaN);
          expect(order).toEqual(order.toSorted((a, b) => a - b));
          expect(keys).toEqual(
            expect.arrayContaining(known.map(({ partition, ordinal }) => `${partition} ${ordinal}`)),
          );
        } finally {
          await readers.close();
        }
      }),
      { numRuns: caseCount(10, 200), endOnFailure: true },
    );
  },
);
