import { describe, expect, test } from 'vitest';
import { caseCount, fc, isWhole } from '../cases.js';
import type { Predicate } from '../../engine/scan/plan/query.js';
import { heap } from '../../engine/memory/arena.js';
import type { SegmentEntry } from '../../engine/store/manifest/manifest.js';
import { ruling } from '../../engine/store/sealed/segment-rulings.js';
import type { FilterQuestion } from '../../engine/store/sealed/filter-question.js';
import { keepFilters, keptRuling, type KeptOfField } from '../../engine/store/sealed/kept-filters.js';
import { decodeSummary, filterParts } from '../../engine/store/sealed/segment-filters.js';
import { makeSchema, type Schema } from '../../engine/terms/schema.js';
import { batchFromRows, type Value } from '../model/rows.js';
import { fileBytes, openSegment, questionsOf, rulingOf, sealBatches } from '../parquet/segment-sample.js';
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

/** The filters of the field in memory, read from `bytes`. */
function keptOf(segment: Sealed, bytes = segment.bytes): KeptOfField {
  const filters = filtersOf(segment);
  const read = (offset: number, length: number): Uint8Array => bytes.subarray(offset, offset + length);
  return {
    values: keepFilters('values', filters, 0, heap, read),
    grams: keepFilters('grams', filters, 0, heap, read),
  };
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

describe('filters in memory', () => {
  test('give the same verdict for every row group as the filters in the file', async () => {
    let ruledOut = 0;
    await fc.assert(
      fc.asyncProperty(stored, async ({ type, index, groups }) => {
        const segment = await sealed(type, index, groups);
        const kept = keptOf(segment);
        const { directory, entry, schema } = segment;
        const rowGroups = (await openSegment(directory, entry, schema)).rowGroups(schema);
        for (const predicate of predicatesOf(type, groups)) {
          const [question] = questionsOf(schema, predicate);
          if (question === undefined) continue;
          for (const [i, rowGroup] of rowGroups.entries()) {
            const said = keptRuling(kept, i, question.asked);
            expect(said, `${predicate.kind} of ${type}`).toBe(await rulingOf(rowGroup, [question]));
            if (said !== ruling.mayMatch) ruledOut++;
          }
        }
      }),
      { numRuns: caseCount(25, 300) },
    );
    if (isWhole) expect(ruledOut).toBeGreaterThan(100);
  });

  test('give no verdict while a filter that could rule out the row group is not in memory', async () => {
    const ids = [0, 1].map((group) => Array.from({ length: 300 }, (_, i) => `${group}/${i * 7919}/of many`));
    const segment = await sealed('string', true, ids);
    const { values, grams } = keptOf(segment);
    const of = (predicate: Predicate) => questionOf(segment.schema, predicate).asked;
    const whole = of(exact('nobody has this id'));
    expect(keptRuling({ values: null, grams }, 0, whole)).toBeNull();
    expect(keptRuling({ values, grams: null }, 0, whole)).toBe(ruling.byValue);
    expect(keptRuling({ values, grams: null }, 0, of(like('which nobody has')))).toBeNull();
    expect(keptRuling({ values: null, grams }, 0, of(like('which nobody has')))).toBe(ruling.byGram);
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
          const kept = keptOf(segment, flipped);
          for (const [group, values] of groups.entries()) {
            const value = values[at % values.length]!;
            for (const predicate of type === 'int' ? [exact(value)] : [exact(value), like(String(value))]) {
              const { asked } = questionOf(segment.schema, predicate);
              expect(keptRuling(kept, group, asked), `byte ${at}`).toBe(ruling.mayMatch);
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
