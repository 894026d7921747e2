import { describe, expect, test } from 'vitest';
import { caseCount, fc, isWhole } from '../cases.js';
import type { Predicate } from '../../engine/scan/query.js';
import type { SegmentEntry } from '../../engine/store/manifest/manifest.js';
import { ruling, SegmentRulings, type Ruling } from '../../engine/store/sealed/segment-rulings.js';
import type { FilterQuestion } from '../../engine/store/sealed/filter-question.js';
import { FilterEvaluator } from '../../engine/store/sealed/filter-evaluator.js';
import { checkedPiece } from '../../engine/store/sealed/filter-piece.js';
import { decodeSummary, filterParts } from '../../engine/store/sealed/segment-filters.js';
import { makeSchema, type Schema } from '../../engine/core/schema.js';
import { batchFromRows, type Value } from '../model/rows.js';
import {
  fileBytes,
  noReads,
  openSegment,
  questionsOf,
  rulingOf,
  sealBatches,
} from '../parquet/segment-sample.js';
import { MemoryDirectory } from '../storage-doubles/memory-directory.js';

interface Sealed {
  readonly directory: MemoryDirectory;
  readonly schema: Schema;
  readonly entry: SegmentEntry;
  readonly bytes: Uint8Array;
}

/** Seals values of one field, with one row group for each list. */
async function sealed(
  type: 'string' | 'int',
  index: boolean | undefined,
  groups: readonly (readonly Value[])[],
): Promise<Sealed> {
  const directory = new MemoryDirectory();
  const schema = makeSchema([{ name: 'id', type, index }]);
  const batches = groups.map((values) =>
    batchFromRows(
      schema,
      values.map((value) => [value]),
    ),
  );
  const entry = await sealBatches(directory, 'a.parquet', schema, batches, 'lz4');
  return { directory, schema, entry, bytes: await fileBytes(directory, 'a.parquet') };
}

function filtersOf({ entry, bytes }: Sealed) {
  const { footerOffset, summaryBytes, rowGroupRows } = entry;
  return decodeSummary(bytes.subarray(footerOffset - summaryBytes, footerOffset), rowGroupRows.length)!;
}

/** What the filters in `bytes` say of a row group. */
function said(segment: Sealed, question: FilterQuestion, rowGroup: number, bytes = segment.bytes): Ruling {
  const filters = filtersOf(segment);
  const rulings = new SegmentRulings(filters.rowGroups, 1);
  rulings.set(rowGroup, ruling.mayMatch);
  const asking = new FilterEvaluator([question]).evaluate(filters, [0], [rowGroup], rulings);
  for (let wanted = asking.next(); wanted.done !== true;) {
    const { offset, bytes: length, checksumOffset } = wanted.value;
    const checksum = bytes.subarray(checksumOffset, checksumOffset + 4);
    const stored = Uint8Array.of(...bytes.subarray(offset, offset + length), ...checksum);
    wanted = asking.next(checkedPiece(wanted.value, stored, noReads()));
  }
  return rulings.of(rowGroup);
}

function questionOf(schema: Schema, predicate: Predicate): FilterQuestion {
  return questionsOf(schema, predicate)[0]!;
}

const exact = (value: Value): Predicate =>
  typeof value === 'bigint'
    ? { kind: 'int', field: 0, op: 'eq', value }
    : { kind: 'string', field: 0, op: 'exact', value: String(value) };
const oneOf = (values: readonly Value[]): Predicate => ({
  kind: 'set',
  field: 0,
  members: values.map(exact) as never,
});
const like = (value: string): Predicate => ({ kind: 'string', field: 0, op: 'like', value });

const text = fc.oneof(
  fc.string({ unit: 'grapheme', maxLength: 20 }),
  fc.string({ unit: fc.constantFrom(...'0123456789abcdef'), minLength: 30, maxLength: 34 }),
  fc.string({ unit: fc.constantFrom(...'abc '), minLength: 80, maxLength: 120 }),
);
const integer = fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n });
const groupsOf = (value: fc.Arbitrary<string | bigint>) =>
  fc.array(fc.array(fc.option(value, { nil: null, freq: 5 }), { minLength: 1, maxLength: 60 }), {
    minLength: 1,
    maxLength: 6,
  });
const stored = fc.oneof(
  fc.record({
    type: fc.constant('string' as const),
    index: fc.constantFrom(true, undefined, false),
    groups: groupsOf(text),
  }),
  fc.record({
    type: fc.constant('int' as const),
    index: fc.constantFrom(true, undefined),
    groups: groupsOf(integer),
  }),
);

/** Predicates on stored values, and on values that are not stored. */
function predicatesOf(type: 'string' | 'int', groups: readonly (readonly Value[])[]): Predicate[] {
  const values = groups.flat().filter((value) => value !== null);
  const absent = type === 'int' ? [77n, -5n] : ['77', 'fedcba987654', 'a b c a b c'];
  const wholes = [...values, ...absent];
  const sets = wholes.map((value, i) => oneOf([value, wholes[(i * 7 + 3) % wholes.length]!]));
  const parts =
    type === 'int' ? [] : wholes.map((value) => like(Array.from(String(value)).slice(1, 13).join('')));
  return [...wholes.map(exact), ...sets, ...parts];
}

describe('pieces of filters', () => {
  test('give the same verdict for every row group as the filters in the file', async () => {
    let ruledOut = 0;
    await fc.assert(
      fc.asyncProperty(stored, async ({ type, index, groups }) => {
        const segment = await sealed(type, index, groups);
        const { directory, entry, schema } = segment;
        const rowGroups = (await openSegment(directory, entry, schema)).rowGroups(schema);
        for (const predicate of predicatesOf(type, groups)) {
          const [question] = questionsOf(schema, predicate);
          if (question === undefined) continue;
          for (const [i, rowGroup] of rowGroups.entries()) {
            const expected = await rulingOf(rowGroup, [question]);
            const name = `${predicate.kind} of ${type}`;
            expect(said(segment, question, i), name).toBe(expected);
            if (expected !== ruling.mayMatch) ruledOut++;
          }
        }
      }),
      { numRuns: caseCount(25, 300) },
    );
    if (isWhole) expect(ruledOut).toBeGreaterThan(100);
  });

  test('rule nothing out if the file is damaged', async () => {
    const ids = [0, 1, 2].map((group) => Array.from({ length: 200 }, (_, i) => `${group}/${i * 7919}`));
    for (const [type, groups] of [
      ['string', ids],
      ['int', ids.map((values, group) => values.map((_, i) => BigInt(group * 1000 + i) * 7919n))],
    ] as const) {
      const segment = await sealed(type, type === 'string' ? true : undefined, groups);
      const { rowGroups } = filtersOf(segment);
      const parts = filterParts(await placesOf(segment), rowGroups);
      expect(parts.length).toBeGreaterThan(0);
      for (const { offset, bytes } of parts) {
        for (let at = offset; at < offset + bytes; at += 11) {
          const flipped = segment.bytes.slice();
          flipped[at]! ^= 1 << (at & 7);
          for (const [group, values] of groups.entries()) {
            const value = values[at % values.length]!;
            for (const predicate of type === 'int' ? [exact(value)] : [exact(value), like(String(value))]) {
              const question = questionOf(segment.schema, predicate);
              expect(said(segment, question, group, flipped), `byte ${at}`).toBe(ruling.mayMatch);
            }
          }
        }
      }
    }
  });
});

async function placesOf({ directory, entry, schema }: Sealed) {
  return (await (await openSegment(directory, entry, schema)).footer()).metadata;
}
