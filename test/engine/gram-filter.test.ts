import { createHash } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { caseCount, fc } from '../cases.js';
import type { BytesColumn } from '../../engine/columns/column.js';
import { batchFromRows } from '../model/rows.js';
import { foldNeedle } from '../../engine/core/fold.js';
import type { RowGroup } from '../../engine/store/reading/snapshot.js';
import type { FieldIndex, Schema } from '../../engine/core/schema.js';
import {
  buildGramFilter,
  gramSizeSmall,
  gramPieces,
  mayHaveAll,
  planGramLookups,
  type GramFilter,
} from '../../engine/store/sealed/gram-filter.js';
import { FilterEvaluator } from '../../engine/store/sealed/filter-evaluator.js';
import { isWhole } from '../../engine/store/sealed/filter-piece.js';
import { ruling, SegmentRulings } from '../../engine/store/sealed/segment-rulings.js';
import { readMetadata, writeMetadata } from '../../engine/store/sealed/segment-metadata.js';
import { encodeSummary, noFilters, SegmentFilters } from '../../engine/store/sealed/segment-filters.js';
import { MemoryDirectory } from '../storage-doubles/memory-directory.js';
import { fileBytes, mayContain, noReads, openSegment, sealBatches } from '../parquet/segment-sample.js';

function schemaOf(index: FieldIndex): Schema {
  return { fields: [{ name: 'message', type: 'string', index }] };
}

/** Seals one row group and opens it. */
async function sealed(
  texts: readonly (string | null)[],
  index: FieldIndex,
): Promise<{
  group: RowGroup;
  gramFilterBytes: number;
  directory: MemoryDirectory;
  fileSizeBytes: number;
}> {
  const directory = new MemoryDirectory();
  const schema = schemaOf(index);
  const batch = batchFromRows(
    schema,
    texts.map((text) => [text]),
  );
  const entry = await sealBatches(directory, 'a.parquet', schema, [batch], 'lz4');
  const segment = await openSegment(directory, entry, schema);
  const group = segment.rowGroups(schema)[0]!;
  return { group, gramFilterBytes: entry.gramFilterBytes, directory, fileSizeBytes: entry.bytes };
}

function bytesOf(texts: readonly string[]): BytesColumn {
  const column = batchFromRows(
    schemaOf(true),
    texts.map((text) => [text]),
  ).columns[0]!;
  if (column.kind !== 'bytes') throw new Error('strings come as bytes');
  return column;
}

/** Deterministic hexadecimal digits. */
function hexDigits(seed: number, digits: number): string {
  let state = seed;
  let text = '';
  while (text.length < digits) {
    state = Math.imul(state ^ (state >>> 15), 0x2c1b3c6d) + 0x9e3779b9;
    state = Math.imul(state ^ (state >>> 12), 0x297a2d39);
    text += ((state ^ (state >>> 15)) >>> 0).toString(16).padStart(8, '0');
  }
  return text.slice(0, digits);
}

function accessLines(rows: number): string[] {
  return Array.from(
    { length: rows },
    (_, i) =>
      `10.0.${i % 7}.${i % 251} - "GET /api/v1/items/${i % 3000} HTTP/1.1" 200 ${i % 9973} rid=${hexDigits(i + 1, 32)}`,
  );
}

describe('a gram filter', () => {
  test('never rules out a text that is present, in any case and script', async () => {
    const character = fc.constantFrom(...'abcXYZ019 /-éÉßẞſKkKsSσςΣΩωIİıi日本😀ǅǆǄ');
    const text = fc.string({ unit: character, minLength: 4, maxLength: 30 });
    await fc.assert(
      fc.asyncProperty(
        fc.uniqueArray(text, { minLength: 1, maxLength: 40 }),
        fc.nat(),
        fc.nat(),
        fc.nat(),
        fc.constantFrom(true, 'full' as const),
        async (texts, row, from, to, index) => {
          const { group } = await sealed([...texts, null, ''], index);
          const characters = [...texts[row % texts.length]!];
          const start = from % characters.length;
          const part = characters.slice(start, start + 1 + (to % (characters.length - start))).join('');
          for (const needle of [part, part.toUpperCase(), part.toLowerCase()]) {
            if (!new RegExp(needle.replaceAll('/', '\\/'), 'iu').test(texts[row % texts.length]!)) continue;
            expect(await mayContain(group, 0, foldNeedle(needle)), needle).toBe(true);
          }
        },
      ),
      { numRuns: caseCount(75, 3000) },
    );
  });

  test('rules out most absent ids by reading a few pieces of 4 KiB', async () => {
    const lines = accessLines(65536);
    const { group, gramFilterBytes, fileSizeBytes } = await sealed(lines, undefined);
    expect(gramFilterBytes).toBeGreaterThan(0);
    expect(gramFilterBytes).toBeLessThan(fileSizeBytes / 9);
    const counters = noReads();
    let passed = 0;
    for (let i = 0; i < 400; i++)
      if (await mayContain(group, 0, foldNeedle(hexDigits(-1 - i, 12)), counters)) passed++;
    expect(passed).toBeLessThan(400 * 0.1);
    expect(counters.gramPiecesRead).toBeLessThan(400 * 4);
    const summaryBytesMax = 512;
    expect(counters.bytesRead).toBeLessThanOrEqual(counters.gramPiecesRead * 4100 + summaryBytesMax);
    for (const row of [0, 1, 40_000, 65_535]) {
      expect(await mayContain(group, 0, foldNeedle(lines[row]!.slice(-12).toUpperCase()))).toBe(true);
      expect(await mayContain(group, 0, foldNeedle(lines[row]!))).toBe(true);
    }
  });

  test('with `index: full` rules out nearly all absent ids, and takes half as many bytes more', async () => {
    const lines = accessLines(65536);
    const ofDefault = await sealed(lines, undefined);
    const full = await sealed(lines, 'full');
    expect(full.gramFilterBytes).toBeGreaterThan(1.5 * ofDefault.gramFilterBytes);
    expect(full.gramFilterBytes).toBeLessThan(1.7 * ofDefault.gramFilterBytes);
    const passed = [0, 0];
    const pieces = [noReads(), noReads()];
    for (let i = 0; i < 400; i++) {
      const digits = foldNeedle(hexDigits(-1 - i, 12));
      for (const [j, { group }] of [ofDefault, full].entries())
        if (await mayContain(group, 0, digits, pieces[j])) passed[j]!++;
    }
    expect(passed[1]).toBeLessThanOrEqual(4);
    expect(passed[0]).toBeGreaterThan(2 * passed[1]!);
    expect(pieces[1]!.gramPiecesRead).toBeLessThan(0.8 * pieces[0]!.gramPiecesRead);
    expect(await mayContain(full.group, 0, foldNeedle(lines[40_000]!.slice(-12)))).toBe(true);
  });

  test('answers short search texts from trigrams, and cannot tell for less than three bytes', async () => {
    const { group } = await sealed(accessLines(5000), true);
    let passed = 0;
    for (const letter of 'abcdefghijklmnopqrstuvwxyz') {
      for (const end of ['', 'q', 'qz']) {
        if (await mayContain(group, 0, foldNeedle(`zq${letter}${end}`))) passed++;
      }
    }
    expect(passed).toBeLessThan(78 * 0.35);
    expect(await mayContain(group, 0, foldNeedle('ApI'))).toBe(true);
    const counters = noReads();
    expect(await mayContain(group, 0, foldNeedle('zz'), counters)).toBe(true);
    expect(await mayContain(group, 0, foldNeedle(''), counters)).toBe(true);
    expect(counters.gramPiecesRead).toBe(0);
  });

  test('has no grams that span the end of one value and the beginning of the next', async () => {
    const texts = Array.from(
      { length: 1000 },
      (_, i) => `abcdefgh${i % 7 === 0 ? '' : hexDigits(i, 10)}wxyz`,
    );
    const { group } = await sealed(texts, true);
    expect(await mayContain(group, 0, foldNeedle('wxyzabcd'))).toBe(false);
  });

  test('has the intended share of its bits set, whatever the data', () => {
    const kinds: Record<string, string[]> = {
      access: accessLines(20_000),
      ids: Array.from({ length: 20_000 }, (_, i) => hexDigits(i, 32)),
      words: Array.from(
        { length: 20_000 },
        (_, i) => `connection ${i} of user ${i % 50} closed after ${i % 700} ms`,
      ),
      few: ['one value that is long enough'],
      empty: [''],
    };
    for (const [kind, texts] of Object.entries(kinds)) {
      const filter = buildGramFilter(bytesOf(texts), true)!;
      expect(filter.gramBytes, kind).toBeGreaterThanOrEqual(4);
      expect(filter.gramBytes, kind).toBeLessThanOrEqual(6);
      let ones = 0;
      let bits = 0;
      for (const { offset, bytes, checksumOffset } of gramPieces(filter)) {
        expect(isWhole(filter.bytes.subarray(offset, checksumOffset + 4), bytes)).toBe(true);
        const bitmap = filter.bytes.subarray(offset, checksumOffset);
        if (offset >= filter.bytes.length - 2 ** (filter.trigramBits - 3)) break;
        bits += bitmap.length * 8;
        for (const byte of bitmap) ones += byte.toString(2).replaceAll('0', '').length;
      }
      expect(ones / bits, kind).toBeLessThanOrEqual(0.75);
      // A smaller filter would have too many bits set, so no space is wasted either.
      if (filter.gramBits > 10) expect(ones / bits, kind).toBeGreaterThan(0.3);
    }
  });

  test('is written where the field asks for it or where it saves reads, and never for a dictionary', async () => {
    const ids = Array.from({ length: 20_000 }, (_, i) => hexDigits(i, 32));
    const words = Array.from({ length: 20_000 }, (_, i) => `word ${i % 100}`);
    const bytes = async (texts: string[], index?: boolean): Promise<number> =>
      (await sealed(texts, index)).gramFilterBytes;
    expect(await bytes(accessLines(20_000))).toBeGreaterThan(0);
    expect(await bytes(accessLines(20_000), false)).toBe(0);
    expect(await bytes(ids)).toBe(0);
    expect(await bytes(ids, true)).toBeGreaterThan(0);
    expect(await bytes(words, true)).toBe(0);
    const { group } = await sealed(words, true);
    expect(await mayContain(group, 0, foldNeedle('not there'))).toBe(true);
  });

  test('is written for messages that contain an id, however many rows there are', () => {
    for (const rows of [15_000, 25_000, 41_000, 44_000, 50_000]) {
      const texts = Array.from(
        { length: rows },
        (_, i) =>
          `GET /api/v1/prices/${i % 9999} answered 200 in 0.${i % 877} s by 10.0.1.10:8080, request ${hexDigits(i, 32)}`,
      );
      expect(buildGramFilter(bytesOf(texts), undefined), `${rows} rows`).not.toBe(null);
    }
  });

  test('rules out most parts of ids that are absent, within its share of the column', () => {
    // As random as real ids are: parts of `hexDigits` repeat.
    const hashed = (seed: number): string => createHash('md5').update(String(seed)).digest('hex');
    const columnOf = (rows: number): BytesColumn =>
      bytesOf(
        Array.from(
          { length: rows },
          (_, i) =>
            `GET /api/v1/prices/${i % 9999} answered 200 in 0.${i % 877} s by 10.0.1.10:8080, request ${hashed(i)}`,
        ),
      );
    const passing = (filter: GramFilter): number =>
      Array.from({ length: 1000 }, (_, i) => foldNeedle(hashed(-1 - i).slice(0, 12))).filter((needle) =>
        planGramLookups(filter, needle).every((lookup) =>
          mayHaveAll(lookup, filter.bytes, lookup.piece.offset),
        ),
      ).length;
    for (const [rows, passingMax] of [
      [65_536, 30],
      // A row group of a day that was divided evenly. With a twentieth of the column its bitmap would be halved, and 25 would pass.
      [58_800, 20],
    ] as const) {
      const column = columnOf(rows);
      const usual = buildGramFilter(column, undefined)!;
      const small = buildGramFilter(column, undefined, gramSizeSmall)!;
      expect(passing(usual), `${rows} rows`).toBeLessThan(passingMax);
      expect(passing(small), `${rows} rows`).toBeGreaterThan(1.3 * passing(usual));
      expect(small.bytes.length).toBeLessThan(usual.bytes.length);
      expect(small.bytes.length).toBeLessThan(column.bytes.length / 20);
      expect(usual.bytes.length).toBeLessThan(column.bytes.length / 16);
    }
  });

  test('keeps only as many eighths of its bits as it needs, and still finds every text that is present', async () => {
    const sizes = new Set<number>();
    for (const rows of [24_000, 28_000, 33_000, 40_000, 46_000]) {
      const lines = accessLines(rows);
      const { gramBytes, gramBits, gramEighths, bytes } = buildGramFilter(bytesOf(lines), true)!;
      sizes.add(gramEighths);
      expect(bytes.length).toBeGreaterThan(2 ** (gramBits - 3) * (gramEighths / 8));
      expect(bytes.length).toBeLessThan(2 ** (gramBits - 3) * (gramEighths / 8) + 10_000);
      const { group } = await sealed(lines, true);
      for (let row = 0; row < rows; row += 251) {
        const line = lines[row]!;
        const part = line.slice(row % 30, (row % 30) + gramBytes + (row % 20));
        expect(await mayContain(group, 0, foldNeedle(part)), part).toBe(true);
      }
      let passed = 0;
      for (let i = 0; i < 300; i++)
        if (await mayContain(group, 0, foldNeedle(hexDigits(-1 - i, 12)))) passed++;
      expect(passed, `${rows} rows`).toBeLessThan(300 * 0.1);
    }
    expect(sizes.size).toBeGreaterThan(2);
  });

  test('counts as having all eighths in an older segment, which does not record them', async () => {
    const schema = schemaOf(true);
    const directory = new MemoryDirectory();
    const batch = batchFromRows(
      schema,
      accessLines(2600).map((line) => [line]),
    );
    const entry = await sealBatches(directory, 'a.parquet', schema, [batch], 'lz4');
    const { metadata } = await (await openSegment(directory, entry, schema)).footer();
    const [[key, format], [segmentKey, segment]] = [...writeMetadata(metadata)] as [string, string][];
    const json = JSON.parse(segment!) as { gramFilters: number[][] };
    expect(json.gramFilters.map((row) => row[6])).toEqual([8]);
    const older = JSON.stringify({ ...json, gramFilters: json.gramFilters.map((row) => row.slice(0, 6)) });
    const pairs = new Map([
      [key!, format!],
      [segmentKey!, older],
    ]);
    expect(readMetadata(pairs)).toEqual(metadata);
    const shorter = JSON.stringify({ ...json, gramFilters: json.gramFilters.map((row) => row.slice(0, 5)) });
    expect(() => readMetadata(pairs.set(segmentKey!, shorter))).toThrow(
      '"gramFilters" has a row of 5 numbers, expected 6 to 7',
    );
  });

  test('is first probed for the gram that ruled out the previous row group', () => {
    const { bytes, ...shape } = buildGramFilter(bytesOf(accessLines(20_000)), true)!;
    const place = { ...shape, rowGroup: 0, field: 0, offset: 0 };
    const filters = new SegmentFilters(encodeSummary({ ...noFilters, gramFilters: [place] }, 1), 1);
    /** Searches for a text in one row group; returns the verdict and the number of reads. */
    const evaluatorOf = (text: string): FilterEvaluator => {
      const asked = [{ hash: null, shortHash: null, folded: foldNeedle(text) }];
      return new FilterEvaluator([{ field: 0, asked, concludes: 1 }]);
    };
    const ask = (evaluator: FilterEvaluator): { said: number; reads: number } => {
      const rulings = new SegmentRulings(1, 1);
      rulings.set(0, ruling.mayMatch);
      let reads = 0;
      const asking = evaluator.evaluate(filters, [0], [0], rulings);
      for (let wanted = asking.next(); wanted.done !== true; reads++)
        wanted = asking.next(bytes.subarray(wanted.value.offset));
      return { said: rulings.of(0), reads };
    };
    const needle = `"GET /api/v1/items/17 HTTP/1.1" 200 zqxjvkwpyq`;
    const evaluator = evaluatorOf(needle);
    const first = ask(evaluator);
    expect(first.said).toBe(ruling.byGram);
    expect(first.reads).toBeGreaterThan(1);
    expect(ask(evaluator)).toEqual({ said: ruling.byGram, reads: 1 });
    expect(ask(evaluatorOf(accessLines(1)[0]!)).said).toBe(ruling.mayMatch);
  });

  test('rules nothing out if it is damaged', async () => {
    const schema = schemaOf(true);
    const directory = new MemoryDirectory();
    const lines = accessLines(3000);
    const batch = batchFromRows(
      schema,
      lines.map((line) => [line]),
    );
    const entry = await sealBatches(directory, 'a.parquet', schema, [batch], 'lz4');
    const bytes = await fileBytes(directory, 'a.parquet');
    const place = (await (await openSegment(directory, entry, schema)).footer()).metadata.gramFilters[0]!;
    bytes.fill(0, place.offset, place.offset + entry.gramFilterBytes);
    await directory.remove('a.parquet');
    const file = await directory.create('a.parquet');
    await file.write(0, bytes);
    const group = (await openSegment(directory, entry, schema)).rowGroups(schema)[0]!;
    expect(await mayContain(group, 0, foldNeedle(lines[7]!))).toBe(true);
    expect(await mayContain(group, 0, foldNeedle('not there at all'))).toBe(true);
  });

  test('is not read for a field that the segment lacks, whose rows are ruled out without the footer', async () => {
    const was = schemaOf(true);
    const directory = new MemoryDirectory();
    const entry = await sealBatches(directory, 'a.parquet', was, [batchFromRows(was, [['text']])], 'lz4');
    const is: Schema = { fields: [{ name: 'other', type: 'string' }] };
    const group = (await openSegment(directory, entry, was)).rowGroups(is)[0]!;
    const counters = noReads();
    expect(await mayContain(group, 0, foldNeedle('text'), counters)).toBe(false);
    expect(counters.bytesRead).toBe(0);
    expect((await group.open()).zone(0)).toMatchObject({ nullCount: 1, rows: 1 });
  });
});
