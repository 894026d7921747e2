import { describe, expect, it } from 'vitest';
import { caseCount, fc, isWhole } from '../cases.js';
import { executeScan, Answer, newScanStats } from '../../engine/scan/answer.js';
import type { AnswerForm, Query, Predicate } from '../../engine/scan/query.js';
import type { PieceIterator } from '../../engine/scan/scan.js';
import { LogstrataError } from '../../engine/core/errors.js';
import type { RowGroup, Snapshot } from '../../engine/store/reading/snapshot.js';
import { answerOf } from '../model/answer.js';
import { datasets, forms, queries } from '../model/arbitraries.js';
import type { Dataset } from '../model/dataset.js';
import { makeSnapshot, type Layout } from '../model/model-snapshot.js';

const numRuns = caseCount(500, 20_000);

const layouts: fc.Arbitrary<Layout> = fc.record({
  seed: fc.integer(),
  segments: fc.integer({ min: 1, max: 3 }),
  rowGroupRows: fc.constantFrom(3, 20, 64),
  statistics: fc.constantFrom('exact' as const, 'chance' as const),
});

interface Asked {
  readonly dataset: Dataset;
  readonly layout: Layout;
  readonly query: Query;
}

const asked: fc.Arbitrary<Asked> = datasets(80).chain((dataset) =>
  fc.record({
    dataset: fc.constant(dataset),
    layout: layouts,
    query: fc
      .tuple(queries(dataset), fc.option(forms(dataset), { nil: undefined }))
      .map(([query, form]) => ({ ...query, form })),
  }),
);

/** Long answers, which have many pieces. */
const unfiltered = asked.map((each) => ({ ...each, query: { ...each.query, predicates: [], limit: 1000 } }));

async function textOf(lines: AsyncIterable<Uint8Array>): Promise<string> {
  const pieces: Buffer[] = [];
  for await (const piece of lines) pieces.push(Buffer.from(piece));
  return Buffer.concat(pieces).toString();
}

/** A state whose files are gone once `left` row groups have been opened. */
function vanishing(snapshot: Snapshot, left: { rowGroups: number }): Snapshot {
  const wrapped = new Map<RowGroup, RowGroup>();
  const wrap = (rowGroup: RowGroup): RowGroup => {
    const known = wrapped.get(rowGroup);
    if (known !== undefined) return known;
    const open: RowGroup['open'] = (...parameters) => {
      if (--left.rowGroups < 0) throw new LogstrataError('not_found', 'the file has gone');
      return rowGroup.open(...parameters);
    };
    const made = Object.create(rowGroup, {
      open: { value: open },
    }) as RowGroup;
    // Private members belong to the row group itself.
    for (const name of ['opened', 'isInMemory', 'zone', 'columns'] as const) {
      const member: unknown = Reflect.get(rowGroup, name);
      if (typeof member === 'function')
        Object.defineProperty(made, name, { value: member.bind(rowGroup) as unknown });
    }
    wrapped.set(rowGroup, made);
    return made;
  };
  return { ...snapshot, runs: [...snapshot.runs].map((run) => ({ ...run, rowGroup: wrap(run.rowGroup) })) };
}

describe('answers of every form', () => {
  it('equal those of the model, byte for byte, in pieces of any size', async () => {
    await fc.assert(
      fc.asyncProperty(
        asked,
        fc.constantFrom(undefined, 1, 300),
        async ({ dataset, layout, query }, pieceBytes) => {
          const snapshot = makeSnapshot(dataset, layout);
          expect(await textOf(executeScan(snapshot, query, { pieceBytes }).lines)).toBe(
            answerOf(dataset, query),
          );
          // By now the columns are in memory, and an answer of one piece is kept.
          const page = executeScan(snapshot, query, { lends: true, joins: true });
          expect(await textOf(page.lines)).toBe(answerOf(dataset, query));
          const again = executeScan(snapshot, query, { lends: true, joins: true });
          expect(await textOf(again.lines)).toBe(answerOf(dataset, query));
          expect(snapshot.released()).toBe(3);
        },
      ),
      { numRuns },
    );
  });

  it('continue after a pause with the next record', async () => {
    let pauses = 0;
    await fc.assert(
      fc.asyncProperty(unfiltered, async ({ dataset, layout, query }) => {
        const snapshot = makeSnapshot(dataset, layout);
        const lines = new Answer(snapshot, query, { lends: true, pieceBytes: 100 }, newScanStats());
        const paused: PieceIterator = {
          [Symbol.asyncIterator]: () => paused,
          get isAtEnd() {
            return lines.isAtEnd;
          },
          next: async () => {
            const { done, value } = await lines.next();
            if (done === true) return { done, value };
            const copy = Buffer.from(value);
            if (!lines.isAtEnd) {
              void lines.pause();
              pauses++;
            }
            return { done: false, value: copy };
          },
          return: () => lines.return(),
        };
        expect(await textOf(paused)).toBe(answerOf(dataset, query));
      }),
      { numRuns },
    );
    if (isWhole) expect(pauses).toBeGreaterThan(numRuns / 10);
  });

  it('continue in another state when files are gone', async () => {
    let resumed = 0;
    await fc.assert(
      fc.asyncProperty(unfiltered, fc.nat(3), async ({ dataset, layout, query }, rowGroups) => {
        let taken = 0;
        const take = (): Promise<Snapshot> => {
          taken++;
          const snapshot = makeSnapshot(dataset, { ...layout, seed: layout.seed + taken });
          return Promise.resolve(taken === 1 ? vanishing(snapshot, { rowGroups }) : snapshot);
        };
        const scan = executeScan(await take(), query, { pieceBytes: 100, takeRest: take });
        expect(await textOf(scan.lines)).toBe(answerOf(dataset, query));
        if (taken > 1) resumed++;
      }),
      { numRuns },
    );
    if (isWhole) expect(resumed).toBeGreaterThan(numRuns / 50);
  });

  it('read the columns that they show or filter by, and no others', async () => {
    await fc.assert(
      fc.asyncProperty(asked, async ({ dataset, layout, query }) => {
        const snapshot = makeSnapshot(dataset, layout);
        await textOf(executeScan(snapshot, query).lines);
        const all = dataset.schema.fields.map((_, field) => field);
        const texts = all.filter((field) => dataset.schema.fields[field]!.type === 'string');
        const fieldsOf = (predicate: Predicate): readonly number[] => {
          if (predicate.kind === 'any') return predicate.members.flatMap(fieldsOf);
          return predicate.kind === 'anywhere' ? texts : [predicate.field];
        };
        const wanted = new Set([...(query.form?.fields ?? all), ...query.predicates.flatMap(fieldsOf)]);
        for (const { fieldsRead } of snapshot.rowGroups)
          expect([...fieldsRead].filter((field) => !wanted.has(field))).toEqual([]);
      }),
      { numRuns },
    );
  });

  it('are JSON and CSV that other programs read', async () => {
    const read = async ({ dataset, layout, query }: Asked, format: AnswerForm['format']): Promise<string> => {
      const form = { format, fields: query.form?.fields ?? null };
      return textOf(executeScan(makeSnapshot(dataset, layout), { ...query, form }).lines);
    };
    await fc.assert(
      fc.asyncProperty(asked, async (each) => {
        const lines = (await read(each, 'jsonl')).split('\n').slice(0, -1);
        const records = lines.map((line) => JSON.parse(line) as Record<string, unknown>);
        expect(JSON.parse(await read(each, 'json'))).toEqual(records);
        const [header, ...rows] = readCsv(await read(each, 'csv'));
        expect(rows).toHaveLength(records.length);
        for (const [i, row] of rows.entries()) {
          const texts = Object.entries(records[i]!).map(([, value]) => textOfValue(value));
          expect(
            row.map((text, column) => (typeof texts[column] === 'number' ? Number(text) : text)),
          ).toEqual(texts);
          expect(Object.keys(records[i]!)).toEqual(header);
        }
      }),
      { numRuns: Math.ceil(numRuns / 2) },
    );
  });
});

function textOfValue(value: unknown): unknown {
  return typeof value === 'boolean' ? String(value) : value;
}

/** The records of CSV by the grammar of RFC 4180, character by character: null for an empty field without quotes. */
function readCsv(text: string): (string | null)[][] {
  const records: (string | null)[][] = [];
  let at = 0;
  while (at < text.length) {
    const record: (string | null)[] = [];
    for (;;) {
      let field: string | null = null;
      if (text[at] === '"') {
        field = '';
        for (at++; text[at] !== '"' || text[at + 1] === '"'; at++) {
          if (text[at] === '"') at++;
          field += text[at]!;
        }
        at++;
      } else {
        const start = at;
        while (text[at] !== ',' && text[at] !== '\r') at++;
        if (at > start) field = text.slice(start, at);
      }
      record.push(field);
      if (text[at++] !== ',') break;
    }
    expect(text[at++]).toBe('\n');
    records.push(record);
  }
  return records;
}
