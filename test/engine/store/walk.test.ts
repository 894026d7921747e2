import { describe, expect, it } from 'vitest';
import { caseCount, fc, isWhole, seed } from '../../cases.js';
import { parseCursor, type Position } from '../../../engine/core/cursor.js';
import type { Predicate } from '../../../engine/scan/query.js';
import { MemoryDirectory } from '../../storage-doubles/memory-directory.js';
import { seededRandom, between } from '../../model/random.js';
import type { Value } from '../../model/dataset.js';
import { answer, append, noon, openOn, schema } from './memory-archive.js';
import { nextTurn, ShiftingStore, type Disturbances } from './shifting-store.js';

const stores = caseCount(15, 500);

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

interface Stored {
  readonly _cursor: string;
  readonly status: number;
  readonly took: number | null;
  readonly message: string;
}

interface Filter {
  readonly predicates: Predicate[];
  readonly matches: (record: Stored) => boolean;
}

const filters: readonly Filter[] = [
  { predicates: [], matches: () => true },
  {
    predicates: [{ kind: 'int', field: 1, op: 'eq', value: 1n }],
    matches: ({ status }) => status === 1,
  },
  {
    predicates: [{ kind: 'float', field: 2, op: 'gte', value: 3 }],
    matches: ({ took }) => took !== null && took >= 3,
  },
  {
    predicates: [
      { kind: 'string', field: 3, op: 'prefix', value: 'RECORD 1' },
      { kind: 'int', field: 1, op: 'ne', value: 1n },
    ],
    matches: ({ message, status }) => message.startsWith('record 1') && status !== 1,
  },
];

interface Walk {
  readonly direction: 'forward' | 'backward';
  readonly limit: number;
  readonly filter: Filter;
}

interface Walked {
  readonly pages: number;
  /** The cursors in the order in which they were returned: a backward walk returns the newest page first. */
  readonly lines: readonly string[];
}

const recordOf = (line: string): Stored => JSON.parse(line) as Stored;
const cursorOf = (line: string): string => recordOf(line)._cursor;

/** All pages from the first record on, or backwards from the newest, as a client requests them. */
async function walk(store: ShiftingStore, { direction, limit, filter }: Walk): Promise<Walked> {
  const isForward = direction === 'forward';
  const lines: string[] = [];
  let at: string | undefined = isForward ? '0000000000000000' : undefined;
  for (let pages = 0; ; pages++) {
    const from = at === undefined ? undefined : parseCursor(at);
    const bounds = isForward ? { after: from } : { before: from };
    const page = await store.ask({ limit, predicates: filter.predicates, ...bounds });
    if (page.length === 0) return { pages, lines };
    const cursors = page.map(cursorOf);
    expect(page.length).toBeLessThanOrEqual(limit);
    expect(cursors).toEqual([...new Set(cursors)].sort());
    if (at !== undefined) expect(isForward ? cursors[0]! > at : cursors.at(-1)! < at).toBe(true);
    lines.push(...page);
    at = isForward ? cursors.at(-1)! : cursors[0]!;
    await nextTurn();
  }
}

/** The result of a walk with the records stored at its beginning and end: the records missed, and those repeated. */
function faults({ lines }: Walked, { filter }: Walk, before: readonly string[], after: readonly string[]) {
  const stayed = new Set(after);
  const there = before.filter((line) => stayed.has(line) && filter.matches(recordOf(line)));
  const seen = new Set(lines);
  const known = new Map([...before, ...after].map((line) => [cursorOf(line), line]));
  const changed = lines.filter((line) => (known.get(cursorOf(line)) ?? line) !== line);
  const ids = new Set(lines.map((line) => recordOf(line).message));
  expect(lines.filter((line) => !filter.matches(recordOf(line)))).toEqual([]);
  return {
    there: there.length,
    missed: there.filter((line) => !seen.has(line)),
    repeated: lines.length - Math.min(ids.size, new Set(lines.map(cursorOf)).size),
    changed,
  };
}

const aWalk = (direction: Walk['direction']): fc.Arbitrary<Walk> =>
  fc.record({
    direction: fc.constant(direction),
    limit: fc.integer({ min: 1, max: 25 }),
    filter: fc.constantFrom(...filters),
  });

describe('a walk over pages', () => {
  it('returns each record that is there throughout exactly once, whatever happens to the store', async () => {
    const done: Disturbances = { appends: 0, loads: 0, compactions: 0, retired: 0, restarts: 0, crashes: 0 };
    const total = { walks: 0, pages: 0, there: 0, gone: 0 };
    await fc.assert(
      fc.asyncProperty(fc.nat(), fc.tuple(aWalk('forward'), aWalk('backward')), async (storeSeed, walks) => {
        const store = new ShiftingStore(seededRandom(storeSeed), done);
        await store.disturb(14);
        const before = await store.ask({});
        const [walked] = await Promise.all([
          Promise.all(walks.map((each) => walk(store, each))),
          store.disturb(18),
        ]);
        const after = await store.ask({});
        walked.forEach((seen, i) => {
          const { there, ...wrong } = faults(seen, walks[i]!, before, after);
          expect(wrong).toEqual({ missed: [], repeated: 0, changed: [] });
          total.walks++;
          total.pages += seen.pages;
          total.there += there;
        });
        const stayed = new Set(after);
        total.gone += before.filter((line) => !stayed.has(line)).length;
        await store.close();
      }),
      { numRuns: stores, seed },
    );
    process.stdout.write(
      `page walks: ${total.walks} walks, ${total.pages} pages, ${total.there} records there throughout, 0 missed, 0 repeated; ` +
        `${total.gone} went meanwhile; ${JSON.stringify(done)} (seed ${seed})\n`,
    );
    if (!isWhole) return;
    for (const count of [...Object.values(done), ...Object.values(total)]) expect(count).toBeGreaterThan(0);
  });

  it('that follows live records with after=<last> returns each once, in the order of its cursor', async () => {
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
            await nextTurn();
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
          await nextTurn();
        }
        await writer;
        expect(seen.map((line) => line.id).sort()).toEqual(
          Array.from({ length: written }, (_, i) => `record ${i}`).sort(),
        );
        await archive.close();
      }),
      { numRuns: caseCount(15, 500) },
    );
  });
});
