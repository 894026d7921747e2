import { describe, expect, it } from 'vitest';
import { batchFromRows, type Value } from '../model/rows.js';
import { makeSchema, type Schema } from '../../engine/core/schema.js';
import { withFile } from '../../engine/store/sealed/segment-file.js';
import { readHeader, type SegmentHeader } from '../../engine/store/sealed/segment-header.js';
import { MemoryDirectory } from '../storage-doubles/memory-directory.js';
import { seededRandom, between } from '../model/random.js';
import type { Run, SegmentEntry } from '../../engine/store/manifest/manifest.js';
import { openSegment, samplePartition, sealBatches } from '../parquet/segment-sample.js';

const path = 'a.parquet';
const schema = makeSchema([
  { name: 'time', type: 'time' },
  { name: 'message', type: 'string', index: true },
]);

function batchOf(of: Schema, rows: number): ReturnType<typeof batchFromRows> {
  const row = (i: number): Value[] =>
    of.fields.map(({ type }) => (type === 'time' ? 1767225600000 + i : `value ${i}`));
  return batchFromRows(
    of,
    Array.from({ length: rows }, (_, i) => row(i)),
  );
}

const headerOf = (directory: MemoryDirectory): Promise<SegmentHeader | null> =>
  withFile(directory, path, readHeader);

/** The values that a header and a manifest have in common. */
function factsOf({ file: _, replaces: __, ...facts }: SegmentEntry): object {
  return facts;
}

describe('the header of a segment', () => {
  it('holds the values of the manifest, the schema and the offsets of the row groups, durably', async () => {
    const written = new MemoryDirectory();
    const entry = await sealBatches(
      written,
      path,
      schema,
      [batchOf(schema, 700), batchOf(schema, 9)],
      'zstd',
    );
    const { footer } = await (await openSegment(written, entry, schema)).footer();
    await written.syncDirectory('');
    const header = (await headerOf(written.crash('lost')))!;
    expect(header.facts).toEqual(factsOf(entry));
    expect(header.schema).toEqual(schema);
    expect(header.rowGroupOffsets).toEqual(footer.rowGroups.map(({ chunks }) => chunks[1]!.offset));
    expect(header.rowGroupOffsets[0]).toBe(4 + entry.headerBytes!);
  });

  it('takes 2 KiB with ten fields, and has room for a thousand fields and the maximum number of row groups', async () => {
    const directory = new MemoryDirectory();
    const ten = makeSchema(
      Array.from(
        { length: 10 },
        (_, i) => ({ name: `field_${i}`, type: i === 0 ? 'time' : 'string' }) as const,
      ),
    );
    expect((await sealBatches(directory, path, ten, [batchOf(ten, 5)], 'lz4')).headerBytes).toBe(2044);
    await directory.remove(path);
    const random = seededRandom(7);
    const name = (i: number): string =>
      `f${i}_${Array.from({ length: 40 }, () => String.fromCharCode(between(random, 97, 123))).join('')}`;
    const thousand = makeSchema(Array.from({ length: 1000 }, (_, i) => ({ name: name(i), type: 'string' })));
    const groups = Array.from({ length: 3 }, (_, i) => batchOf(thousand, 1 + i));
    const wide = await sealBatches(directory, path, thousand, groups, 'lz4');
    expect((await headerOf(directory))!.schema).toEqual(thousand);
    expect((await headerOf(directory))!.facts).toEqual(factsOf(wide));
    await directory.remove(path);
    const many = Array.from({ length: 64 }, () => batchOf(schema, between(random, 1, 200)));
    const long = await sealBatches(directory, path, schema, many, 'lz4');
    const header = (await headerOf(directory))!;
    expect(header.facts).toEqual(factsOf(long));
    expect(header.rowGroupChecksums).toHaveLength(64);
  });

  it('keeps the runs of the first rows if not all runs fit', async () => {
    const random = seededRandom(11);
    for (const count of [300, 3000, 9000]) {
      const directory = new MemoryDirectory();
      const runs: Run[] = [];
      let firstRow = 0;
      for (let i = 0, ordinal = 1; i < count; i++) {
        const rows = between(random, 1, 9);
        runs.push({ partition: samplePartition, firstOrdinal: ordinal, firstRow, rows });
        firstRow += rows;
        ordinal += rows + between(random, 1, 1000);
      }
      const entry = await sealBatches(directory, path, schema, [batchOf(schema, firstRow)], 'lz4', runs);
      const { facts } = (await headerOf(directory))!;
      expect(facts.headerBytes).toBe(entry.headerBytes);
      expect(facts.runs).toEqual(runs.slice(0, facts.runs.length));
      expect(facts.runs.length).toBeGreaterThan(200);
      expect(facts.runs.length).toBeLessThan(count === 300 ? 301 : 1000);
      expect(facts.rows).toBe(firstRow);
    }
  });

  it('is rejected if any of its bytes is wrong, or if it is cut off', async () => {
    const directory = new MemoryDirectory();
    const { headerBytes } = await sealBatches(directory, path, schema, [batchOf(schema, 50)], 'lz4');
    const file = await directory.openWrite(path);
    const reading = await directory.openRead(path);
    for (let at = 4; at < 4 + headerBytes!; at++) {
      const [byte] = await reading.read(at, 1);
      await file.write(at, Uint8Array.of(byte! ^ (1 << (at & 7))));
      expect(await headerOf(directory), `byte ${at}`).toBe(null);
      await file.write(at, Uint8Array.of(byte!));
    }
    expect(await headerOf(directory)).not.toBe(null);
    for (let end = 3 + headerBytes!; end >= 0; end -= 13) {
      await file.truncate(end);
      expect(await headerOf(directory), `${end} bytes`).toBe(null);
    }
  });
});
