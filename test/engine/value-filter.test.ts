import { describe, expect, test } from 'vitest';
import { caseCount, fc } from '../cases.js';
import { type Value, batchFromRows } from '../model/rows.js';
import type { FieldPredicate, Predicate } from '../../engine/scan/query.js';
import type { SegmentEntry } from '../../engine/store/manifest/manifest.js';
import type { RowGroup } from '../../engine/store/reading/snapshot.js';
import { decodeSummary, encodeSummary } from '../../engine/store/sealed/segment-filters.js';
import { ruling, type Ruling } from '../../engine/store/sealed/segment-rulings.js';
import { blockOfHash, bloomHeader, bloomHeaderBytes } from '../../engine/parquet/bloom-filter.js';
import { hashIntegers } from '../../engine/kernels/value-filter.js';
import {
  buildValueFilter,
  isInSketch,
  joinSketches,
  stripeBytes,
} from '../../engine/store/sealed/value-filter.js';
import { rowGroupRowsMax } from '../../engine/core/limits.js';
import { makeSchema, type Field, type Schema } from '../../engine/core/schema.js';
import { MemoryDirectory } from '../storage-doubles/memory-directory.js';
import {
  fileBytes,
  noReads,
  openSegment,
  questionsOf,
  rulingOf,
  sealBatches,
} from '../parquet/segment-sample.js';

interface Sealed {
  readonly directory: MemoryDirectory;
  readonly schema: Schema;
  readonly entry: SegmentEntry;
  readonly rowGroups: readonly RowGroup[];
}

/** Seals values of one field, with one row group for each list. */
async function sealed(field: Omit<Field, 'name'>, groups: readonly (readonly Value[])[]): Promise<Sealed> {
  const directory = new MemoryDirectory();
  const schema = makeSchema([{ name: 'id', ...field }]);
  const batches = groups.map((values) =>
    batchFromRows(
      schema,
      values.map((value) => [value]),
    ),
  );
  const entry = await sealBatches(directory, 'a.parquet', schema, batches, 'lz4');
  return { directory, schema, entry, rowGroups: await openedAnew(directory, entry, schema) };
}

async function openedAnew(
  directory: MemoryDirectory,
  entry: SegmentEntry,
  schema: Schema,
): Promise<RowGroup[]> {
  return (await openSegment(directory, entry, schema)).rowGroups(schema);
}

function equals(...values: readonly (string | bigint)[]): Predicate {
  const members = values.map((value): FieldPredicate =>
    typeof value === 'string'
      ? { kind: 'string', field: 0, op: 'exact', value }
      : { kind: 'int', field: 0, op: 'eq', value },
  );
  return members.length === 1 ? members[0]! : { kind: 'set', field: 0, members };
}

/** The verdicts of the filters of each row group on a predicate. */
function rulingsOf(
  { schema, rowGroups }: Pick<Sealed, 'schema' | 'rowGroups'>,
  predicate: Predicate,
  counters = noReads(),
): Promise<Ruling[]> {
  const questions = questionsOf(schema, predicate);
  return Promise.all(rowGroups.map((group) => rulingOf(group, questions, counters)));
}

/** Deterministic ids of 32 hexadecimal digits. */
function idOf(i: number): string {
  let state = i + 1;
  let text = '';
  while (text.length < 32) {
    state = Math.imul(state ^ (state >>> 15), 0x2c1b3c6d) + 0x9e3779b9;
    state = Math.imul(state ^ (state >>> 12), 0x297a2d39);
    text += ((state ^ (state >>> 15)) >>> 0).toString(16).padStart(8, '0');
  }
  return text;
}

const idsOf = (groups: number, rows: number): string[][] =>
  Array.from({ length: groups }, (_, group) =>
    Array.from({ length: rows }, (_, i) => idOf(group * rows + i)),
  );

describe('a value filter', () => {
  test('has a header of the length that is assumed for it', () => {
    for (let power = 0; power < 26; power++)
      for (const blocks of [2 ** power - 1, 2 ** power, 2 ** power + 1])
        expect(bloomHeaderBytes(blocks), `${blocks} blocks`).toBe(bloomHeader(blocks).length);
  });

  test('never rules out a value that is present, whatever the row groups', async () => {
    const text = fc.oneof(
      fc.string({ unit: 'grapheme', maxLength: 20 }),
      fc.string({ unit: fc.constantFrom(...'0123456789abcdef'), minLength: 30, maxLength: 34 }),
    );
    const words = fc.string({ unit: fc.constantFrom(...'ab1 '), minLength: 8, maxLength: 20 });
    const integer = fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n });
    const groupsOf = (value: fc.Arbitrary<string | bigint>): fc.Arbitrary<(string | bigint | null)[][]> =>
      fc.array(fc.array(fc.option(value, { nil: null, freq: 5 }), { minLength: 1, maxLength: 60 }), {
        minLength: 1,
        maxLength: 7,
      });
    const cases = fc.oneof(
      fc.record({ type: fc.constant('string' as const), groups: groupsOf(text) }),
      fc.record({ type: fc.constant('string' as const), groups: groupsOf(words) }),
      fc.record({ type: fc.constant('int' as const), groups: groupsOf(integer) }),
    );
    await fc.assert(
      fc.asyncProperty(cases, fc.constantFrom(true, undefined, false), async ({ type, groups }, index) => {
        const segment = await sealed(type === 'int' && index === true ? { type } : { type, index }, groups);
        for (const [i, values] of groups.entries()) {
          for (const value of values) {
            if (value === null) continue;
            expect((await rulingsOf(segment, equals(value)))[i]).toBe(ruling.mayMatch);
            expect((await rulingsOf(segment, equals(type === 'int' ? 77n : '77', value)))[i]).toBe(
              ruling.mayMatch,
            );
          }
        }
      }),
      { numRuns: caseCount(20, 600) },
    );
  });

  test.each([1, 2, 4, 9])('rules out absent ids, in %d row groups', async (groups) => {
    const rows = 4000;
    const segment = await sealed({ type: 'string' }, idsOf(groups, rows));
    let passed = 0;
    const counters = noReads();
    for (let i = 0; i < 300; i++) {
      const rulings = await rulingsOf(segment, equals(idOf(1_000_000 + i)), counters);
      passed += rulings.filter((said) => said === ruling.mayMatch).length;
    }
    expect(passed / (300 * groups)).toBeLessThan(0.02);
    const ofGroup = Math.floor(groups / 2);
    const rulings = await rulingsOf(segment, equals(idOf(ofGroup * rows + 17)));
    expect(rulings[ofGroup]).toBe(ruling.mayMatch);
    expect(rulings.filter((said) => said === ruling.mayMatch).length).toBeLessThanOrEqual(2);
  });

  test.each([1, 5])(
    'is only a sketch for texts, which rules out absent ones, in %d row groups',
    async (groups) => {
      const rows = 4000;
      // Each of them consists of words that occur in every row group, so that gram filters rule nothing out.
      const textOf = (i: number): string => `order ${(i * 7919) % 9973} of user ${(i * 104_729) % 9967}`;
      const segment = await sealed(
        { type: 'string' },
        Array.from({ length: groups }, (_, group) =>
          Array.from({ length: rows }, (_, i) => textOf(group * rows + i)),
        ),
      );
      const { metadata } = await (
        await openSegment(segment.directory, segment.entry, segment.schema)
      ).footer();
      expect(metadata.valueFilters).toEqual([]);
      expect(segment.entry.valueFilterBytes).toBeLessThan(0.7 * rows * groups);
      let ruledOut = 0;
      for (let i = 0; i < 200; i++) {
        const rulings = await rulingsOf(segment, equals(textOf(1_000_000 + i)));
        ruledOut += rulings.filter((said) => said === ruling.byValue).length;
      }
      expect(ruledOut / (200 * groups)).toBeGreaterThan(0.8);
      for (const i of [0, 17, groups * rows - 1]) {
        const rulings = await rulingsOf(segment, equals(textOf(i)));
        expect(rulings[Math.floor(i / rows)]).toBe(ruling.mayMatch);
      }
    },
  );

  test('takes 13 bits for each distinct value, and half a byte per row for sketches shared by several row groups', async () => {
    const { entry } = await sealed({ type: 'string' }, idsOf(4, 16_384));
    const values = 4 * 16_384;
    expect(entry.valueFilterBytes).toBeGreaterThan(values * 1.6);
    expect(entry.valueFilterBytes).toBeLessThan(values * (13.1 / 8 + 0.53));
    const one = await sealed({ type: 'string' }, idsOf(1, 16_384));
    expect(one.entry.valueFilterBytes).toBeLessThan(16_384 * (13.1 / 8));
  });

  test('has a sketch of equal size for every full row group, whatever the estimated number of its values', () => {
    const rows = rowGroupRowsMax;
    for (let seed = 1; seed <= 12; seed++) {
      const values = BigInt64Array.from({ length: rows }, (_, i) => BigInt(i) * BigInt(2 * seed + 1));
      const filter = buildValueFilter({ kind: 'int64', length: rows, values, validity: null }, true)!;
      expect(filter.sketch.length, `seed ${seed}`).toBe(rows / 2);
    }
  });

  test('joins sketches of any sizes so that each finds its values', () => {
    const sizes = fc.array(fc.integer({ min: 1, max: 5000 }), { minLength: 2, maxLength: 6 });
    fc.assert(
      fc.property(sizes, (rowsOf) => {
        const valuesOf = rowsOf.map((rows, group) =>
          Array.from({ length: rows }, (_, i) => BigInt(i) * 7919n + BigInt(group) * 2n ** 40n),
        );
        const sketches = valuesOf.map((values) => {
          const column = { length: values.length, values: BigInt64Array.from(values), validity: null };
          return buildValueFilter({ kind: 'int64', ...column }, true)!.sketch;
        });
        const { stripes, bytes } = joinSketches([...sketches, null]);
        expect(stripes).toBe(Math.max(...sketches.map(({ length }) => length / 32)));
        const has = (group: number, value: bigint): boolean => {
          const [low, high] = hashIntegers(BigInt64Array.of(value), 1);
          const hash = { low: low!, high: high! };
          const stripe = blockOfHash(hash, stripes) * stripeBytes(sketches.length + 1);
          return isInSketch(bytes, stripe + group * 32, hash);
        };
        for (const [group, values] of valuesOf.entries()) {
          expect(values.filter((value) => !has(group, value))).toEqual([]);
          expect(has(sketches.length, values[0]!)).toBe(true);
        }
        const largest = rowsOf.indexOf(Math.max(...rowsOf));
        const others = Array.from({ length: 2000 }, (_, i) => BigInt(i) - 2n ** 50n);
        expect(others.filter((value) => has(largest, value)).length).toBeLessThan(2000 * 0.25);
      }),
      { numRuns: caseCount(12, 400) },
    );
  });

  test('is written for ids, and not for dictionaries, long texts, numbers that repeat, or fields that opt out', async () => {
    const bytesOf = async (field: Omit<Field, 'name'>, values: readonly Value[]): Promise<number> =>
      (await sealed(field, [values])).entry.valueFilterBytes;
    const rows = Array.from({ length: 5000 }, (_, i) => i);
    const ids = rows.map(idOf);
    const texts = ids.map(
      (id) => `a request that took long enough to be described with more words than an id: ${id}`,
    );
    expect(await bytesOf({ type: 'string' }, ids)).toBeGreaterThan(0);
    expect(await bytesOf({ type: 'string', index: false }, ids)).toBe(0);
    expect(await bytesOf({ type: 'string' }, texts)).toBe(0);
    expect(await bytesOf({ type: 'string', index: true }, texts)).toBeGreaterThan(0);
    // Random digits get no gram filter, so a whole value is found by its Bloom filter, although it has blanks.
    const labelled = ids.map((id) => `id of ${id}`);
    expect(await bytesOf({ type: 'string' }, labelled)).toBeGreaterThan(1.3 * rows.length);
    const short = ids.map((id) => `receipt of order ${id.slice(0, 8)} sent`);
    expect(await bytesOf({ type: 'string' }, short)).toBeLessThan(0.7 * rows.length);
    expect(await bytesOf({ type: 'string', index: true }, short)).toBeGreaterThan(1.3 * rows.length);
    expect(
      await bytesOf(
        { type: 'string' },
        rows.map((i) => `word ${i % 50}`),
      ),
    ).toBe(0);
    expect(
      await bytesOf(
        { type: 'int' },
        rows.map((i) => BigInt(i) * 1_000_003n),
      ),
    ).toBeGreaterThan(0);
    expect(
      await bytesOf(
        { type: 'int', index: false },
        rows.map((i) => BigInt(i) * 1_000_003n),
      ),
    ).toBe(0);
    // Three quarters of them are distinct: these are sizes, not ids.
    expect(
      await bytesOf(
        { type: 'int' },
        rows.map((i) => BigInt(i % 3750)),
      ),
    ).toBe(0);
    expect(
      await bytesOf(
        { type: 'string' },
        rows.map(() => null),
      ),
    ).toBe(0);
  });

  test('is read in few pieces: the sketches of all row groups at once, then the filters of the remaining row groups', async () => {
    const groups = 9;
    const segment = await sealed({ type: 'string' }, idsOf(groups, 4000));
    await rulingsOf(segment, equals(idOf(0)));
    const counters = noReads();
    const asked = equals(idOf(5 * 4000));
    const questions = questionsOf(segment.schema, asked);
    await rulingOf(segment.rowGroups[5]!, questions, counters);
    // A stripe of sketches and a piece of the filter, each with its checksum.
    expect(counters.valuePiecesRead).toBe(2);
    expect(counters.bytesRead).toBe(groups * 32 + 4 + 4096 + 4);
    await rulingOf(segment.rowGroups[5]!, questions, counters);
    expect(counters.bytesRead).toBe(2 * (groups * 32 + 4 + 4096 + 4));
  });

  test('rules nothing out if it is damaged, and the damage is found', async () => {
    const ids = idsOf(5, 300);
    const { directory, schema, entry } = await sealed({ type: 'string' }, ids);
    const bytes = await fileBytes(directory, 'a.parquet');
    const { metadata } = await (await openSegment(directory, entry, schema)).footer();
    const first = metadata.valueFilters[0]!.offset;
    const placesOf = [
      ...metadata.valueFilters.map(({ offset }) => [offset, offset + 420] as const),
      [metadata.sketches[0]!.offset, metadata.sketches[0]!.offset + 4 * (5 * 32 + 4)] as const,
      [entry.footerOffset - entry.summaryBytes, entry.footerOffset] as const,
    ];
    expect(first).toBeGreaterThan(0);
    for (const [from, to] of placesOf) {
      for (let at = from; at < to; at += 13) {
        const flipped = bytes.slice();
        flipped[at]! ^= 1 << (at & 7);
        await directory.remove('a.parquet');
        await (await directory.create('a.parquet')).write(0, flipped);
        const rowGroups = await openedAnew(directory, entry, schema);
        for (const [group, values] of ids.entries()) {
          const rulings = await rulingsOf({ schema, rowGroups }, equals(values[at % 300]!));
          expect(rulings[group], `byte ${at}`).toBe(ruling.mayMatch);
        }
      }
    }
  });

  test('is not used if the summary contains values that our segments never have, even with a valid checksum', () => {
    const whole = {
      gramFilters: [
        { rowGroup: 1, field: 2, offset: 9, gramBytes: 5, gramBits: 20, gramEighths: 6, trigramBits: 12 },
      ],
      valueFilters: [{ rowGroup: 1, field: 0, offset: 2 ** 33, blocks: 7 }],
      sketches: [{ field: 0, offset: 5, stripes: 4 }],
    };
    const filters = decodeSummary(encodeSummary(whole, 3), 3);
    expect(filters?.of(2)?.grams[1]).toEqual(whole.gramFilters[0]);
    expect(filters?.of(0)?.values[1]).toEqual(whole.valueFilters[0]);
    expect(filters?.of(0)?.sketches).toEqual(whole.sketches[0]);
    expect(decodeSummary(encodeSummary(whole, 3), 4)).toBeNull();
    for (const odd of [
      { ...whole, valueFilters: [{ ...whole.valueFilters[0]!, rowGroup: 3 }] },
      { ...whole, valueFilters: [{ ...whole.valueFilters[0]!, blocks: 0 }] },
      { ...whole, sketches: [{ ...whole.sketches[0]!, stripes: 2 ** 31 }] },
      { ...whole, gramFilters: [{ ...whole.gramFilters[0]!, gramBits: 200 }] },
      { ...whole, gramFilters: [{ ...whole.gramFilters[0]!, gramEighths: 4 }] },
      { ...whole, gramFilters: [{ ...whole.gramFilters[0]!, gramBits: 14 }] },
    ])
      expect(decodeSummary(encodeSummary(odd, 3), 3)).toBeNull();
  });

  test('is not used for predicates that it cannot decide: substrings, other case, ranges and negations', async () => {
    const segment = await sealed({ type: 'string' }, idsOf(1, 3000));
    const id = idOf(17);
    const kinds: Predicate[] = [
      { kind: 'string', field: 0, op: 'ne', value: 'nobody' },
      { kind: 'string', field: 0, op: 'like', value: id.slice(3, 9) },
      { kind: 'string', field: 0, op: 'prefix', value: id.slice(0, 9).toUpperCase() },
    ];
    for (const predicate of kinds) expect(await rulingsOf(segment, predicate)).not.toContain(ruling.byValue);
    const numbers = await sealed({ type: 'int' }, [
      Array.from({ length: 3000 }, (_, i) => BigInt(i) * 1_000_003n),
    ]);
    for (const op of ['ne', 'gt', 'lte'] as const) {
      const predicate: Predicate = { kind: 'int', field: 0, op, value: 5n };
      expect(questionsOf(numbers.schema, predicate)).toEqual([]);
    }
  });
});
