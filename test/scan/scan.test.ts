import { describe, expect, it } from 'vitest';
import { caseCount, fc } from '../cases.js';
import { parseCursor } from '../../engine/core/cursor.js';
import { executeScan } from '../../engine/scan/answer.js';
import type { Query } from '../../engine/scan/query.js';
import type { Snapshot } from '../../engine/store/reading/snapshot.js';
import { answerOf } from '../model/answer.js';
import { datasets, predicates, queries } from '../model/arbitraries.js';
import type { Dataset } from '../model/dataset.js';
import { makeSnapshot, type Layout } from '../model/model-snapshot.js';

const runs = caseCount(2500, 50_000);

const layouts: fc.Arbitrary<Layout> = fc.record({
  seed: fc.integer(),
  segments: fc.integer({ min: 1, max: 3 }),
  rowGroupRows: fc.constantFrom(3, 8, 20, 64),
  statistics: fc.constantFrom('exact' as const, 'chance' as const),
});

async function textOf(snapshot: Snapshot, query: Query, pieceBytes?: number): Promise<string> {
  const pieces: Uint8Array[] = [];
  for await (const piece of executeScan(snapshot, query, { pieceBytes }).lines) {
    expect(piece.at(-1)).toBe(10);
    if (pieceBytes !== undefined && piece.length > pieceBytes)
      expect(piece.indexOf(10)).toBe(piece.length - 1);
    pieces.push(piece);
  }
  return Buffer.concat(pieces).toString('utf8');
}

function linesOf(text: string): string[] {
  return text === '' ? [] : text.slice(0, -1).split('\n');
}

function cursorOf(line: string): { partition: number; ordinal: number } {
  return parseCursor(line.slice(12, 28))!;
}

describe('executeScan', () => {
  it('answers like the model, byte for byte, whatever the layout', async () => {
    const cases = datasets(120).chain((dataset) =>
      fc.tuple(fc.constant(dataset), layouts, fc.array(queries(dataset), { minLength: 1, maxLength: 4 })),
    );
    await fc.assert(
      fc.asyncProperty(
        cases,
        fc.constantFrom(undefined, 1, 300),
        async ([dataset, layout, asked], pieceBytes) => {
          const snapshot = makeSnapshot(dataset, layout);
          for (const query of asked) {
            expect(await textOf(snapshot, query, pieceBytes)).toBe(answerOf(dataset, query));
          }
          expect(snapshot.released()).toBe(asked.length);
        },
      ),
      { numRuns: runs },
    );
  });

  it('pages forward and backward over every match exactly once', async () => {
    const cases = datasets(80).chain((dataset) =>
      fc.tuple(
        fc.constant(dataset),
        layouts,
        fc.array(predicates(dataset), { maxLength: 2 }),
        fc.integer({ min: 1, max: 30 }),
      ),
    );
    await fc.assert(
      fc.asyncProperty(cases, async ([dataset, layout, filters, limit]) => {
        const all = linesOf(answerOf(dataset, { limit: 1_000_000, predicates: filters }));
        expect(await walkForward(dataset, layout, { limit, predicates: filters })).toEqual(all);
        expect(await walkBackward(dataset, layout, { limit, predicates: filters })).toEqual(all);
      }),
      { numRuns: Math.ceil(runs / 4) },
    );
  });
});

async function walkForward(dataset: Dataset, layout: Layout, query: Query): Promise<string[]> {
  const seen: string[] = [];
  let after = parseCursor('0000000000000000');
  for (;;) {
    const page = linesOf(await textOf(makeSnapshot(dataset, layout), { ...query, after }));
    if (page.length === 0) return seen;
    seen.push(...page);
    after = cursorOf(page.at(-1)!);
  }
}

async function walkBackward(dataset: Dataset, layout: Layout, query: Query): Promise<string[]> {
  let page = linesOf(await textOf(makeSnapshot(dataset, layout), query));
  const seen: string[] = [];
  while (page.length > 0) {
    seen.unshift(...page);
    const before = cursorOf(page[0]!);
    page = linesOf(await textOf(makeSnapshot(dataset, layout), { ...query, before }));
  }
  return seen;
}
