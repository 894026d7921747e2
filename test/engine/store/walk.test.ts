import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { AgentStore } from '../../../engine/archive.js';
import { comparePositions, parseCursor, type Position } from '../../../engine/cursor.js';
import type { Predicate } from '../../../engine/scan/query.js';
import { MemoryDirectory } from '../../../engine/storage/memory-directory.js';
import { seededRandom, between, type Random } from '../../model/random.js';
import type { Value } from '../../model/dataset.js';
import { answer, append, load, noon, openOn, schema } from './memory-archive.js';

const long = process.env.LOGSTRATA_LONG === '1';
const hour = 3_600_000;

const odd: Predicate[] = [{ kind: 'int', field: 1, op: 'eq', value: 1n }];

interface Line {
  readonly cursor: string;
  readonly id: string;
  readonly position: Position;
}

function linesOf(text: string): Line[] {
  return text
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => {
      const record = JSON.parse(line) as { _cursor: string; message: string };
      return { cursor: record._cursor, id: record.message, position: parseCursor(record._cursor)! };
    });
}

/** All pages from the first record on, or from the newest back, with whatever is committed in between. */
async function walk(
  store: AgentStore,
  direction: 'forward' | 'backward',
  limit: number,
  predicates: Predicate[],
): Promise<Line[]> {
  const seen: Line[] = [];
  let from: Position | undefined = direction === 'forward' ? { partition: 0, ordinal: 0 } : undefined;
  for (;;) {
    const cursor = direction === 'forward' ? { after: from } : { before: from };
    const page = linesOf(await answer(store, { limit, predicates, ...cursor }));
    if (page.length === 0) return seen;
    const ascending = page.every(
      (line, i) => i === 0 || comparePositions(page[i - 1]!.position, line.position) < 0,
    );
    expect(ascending).toBe(true);
    seen.push(...page);
    from = direction === 'forward' ? page.at(-1)!.position : page[0]!.position;
    await new Promise((resolve) => setImmediate(resolve));
  }
}

function makeRows(random: Random, from: number, count: number, spreadHours: number): Value[][] {
  return Array.from({ length: count }, (_, i) => [
    BigInt(noon - Math.floor(random() * spreadHours * hour)),
    BigInt((from + i) % 2),
    null,
    `record ${from + i}`,
  ]);
}

async function disturb(store: AgentStore, random: Random, steps: number, from: number): Promise<void> {
  let next = from;
  for (let i = 0; i < steps; i++) {
    const count = between(random, 1, 12);
    const what = between(random, 0, 4);
    if (what === 3) await store.compact();
    else if (what === 0) await load(store, makeRows(random, next, count, 80), 5);
    else
      await append(store, makeRows(random, next, count, what === 1 ? 0.5 : 30), what === 1 ? 'live' : 'load');
    next += count;
    await new Promise((resolve) => setImmediate(resolve));
  }
}

describe('a walk over pages', () => {
  it('sees each record that is there throughout exactly once, forward and back, while others come', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.nat(),
        fc.integer({ min: 1, max: 20 }),
        fc.boolean(),
        async (seed, limit, filtered) => {
          const random = seededRandom(seed);
          const archive = await openOn(new MemoryDirectory());
          const store = await archive.agent('web', schema);
          await disturb(store, random, 8, 0);
          const predicates = filtered ? odd : [];
          const there = new Set(linesOf(await answer(store, { predicates })).map((line) => line.cursor));
          const [forward, backward] = await Promise.all([
            walk(store, 'forward', limit, predicates),
            walk(store, 'backward', limit, predicates),
            disturb(store, random, 12, 100_000),
          ]);
          for (const seen of [forward, backward]) {
            const cursors = seen.map((line) => line.cursor);
            expect(new Set(cursors).size).toBe(cursors.length);
            expect(new Set(seen.map((line) => line.id)).size).toBe(seen.length);
            expect([...there].filter((cursor) => !cursors.includes(cursor))).toEqual([]);
          }
          await archive.close();
        },
      ),
      { numRuns: long ? 1000 : 25 },
    );
  });

  it('that follows live records with after=<last> gets each once, in the order of its cursor', async () => {
    await fc.assert(
      fc.asyncProperty(fc.nat(), async (seed) => {
        const random = seededRandom(seed);
        let now = noon;
        const archive = await openOn(new MemoryDirectory(), () => now);
        const store = await archive.agent('web', schema);
        let written = 0;
        let writing = true;
        const writer = (async () => {
          for (let i = 0; i < 40; i++) {
            now += Math.floor(random() * 400_000);
            // Sources interleave: lines arrive up to half an hour behind the newest.
            const rows = Array.from({ length: between(random, 1, 6) }, (): Value[] => [
              BigInt(now - Math.floor(random() * 1_800_000)),
              1n,
              null,
              `record ${written++}`,
            ]);
            await append(store, rows, 'live');
            if (i % 13 === 12) await store.compact();
            await new Promise((resolve) => setImmediate(resolve));
          }
          writing = false;
        })();
        const seen: Line[] = [];
        for (;;) {
          const last = !writing;
          const page = linesOf(
            await answer(store, { limit: 7, after: seen.at(-1)?.position ?? { partition: 0, ordinal: 0 } }),
          );
          seen.push(...page);
          if (page.length === 0 && last) break;
          await new Promise((resolve) => setImmediate(resolve));
        }
        await writer;
        expect(seen.map((line) => line.id).sort()).toEqual(
          Array.from({ length: written }, (_, i) => `record ${i}`).sort(),
        );
        await archive.close();
      }),
      { numRuns: long ? 500 : 15 },
    );
  });
});
