import { describe, expect, it } from 'vitest';
import { caseCount, isLong, seed } from '../../cases.js';
import { columnValue } from '../../../engine/columns/column.js';
import { recoverSegment } from '../../../engine/maintenance/examination.js';
import { batchFromRows, type Value } from '../../model/rows.js';
import type { Schema } from '../../../engine/core/schema.js';
import { BufferPool } from '../../../engine/store/reading/buffer-pool.js';
import { MemoryDirectory } from '../../storage-doubles/memory-directory.js';
import { seededRandom, between } from '../../model/random.js';
import type { SegmentEntry } from '../../../engine/store/manifest/manifest.js';
import { SealedSegment } from '../../../engine/store/reading/sealed-segment.js';
import { columnOf, fileBytes, openSegment, sealBatches } from '../../parquet/segment-sample.js';
import type { Codec } from '../../../engine/parquet/compression.js';
import { expectEqual } from '../../expect-equal.js';

const schema: Schema = {
  fields: [
    { name: 'time', type: 'time' },
    { name: 'level', type: 'string' },
    { name: 'message', type: 'string', index: true },
    { name: 'other', type: 'string', index: true },
    { name: 'status', type: 'int' },
    { name: 'took', type: 'float' },
    { name: 'nothing', type: 'float' },
  ],
};
const groups = 6;
const groupRows = 20;

interface Sample {
  readonly entry: SegmentEntry;
  readonly bytes: Uint8Array;
  /** The values of each row group, by field. */
  readonly right: readonly (readonly (readonly Value[])[])[];
  /** Where each row group begins in the file, followed by where the positions begin. */
  readonly bounds: readonly number[];
  /** The chunks of the fields, by row group. */
  readonly chunks: readonly (readonly Place[])[];
}

/** Row groups of equal row counts, so that only their order tells them apart. */
async function sample(codec: Codec): Promise<Sample> {
  const directory = new MemoryDirectory();
  const batches = Array.from({ length: groups }, (_, group) =>
    batchFromRows(
      schema,
      Array.from({ length: groupRows }, (__, i): Value[] => {
        const n = group * groupRows + i;
        return [
          n % 7 === 0 ? null : 1767225600000 + n * 10,
          n % 3 === 0 ? 'warn' : 'info',
          `request ${(n * 2654435761) >>> 0} done`,
          n % 5 === 0 ? null : `${n * 7919} other`,
          n % 4 === 0 ? null : n * 1_000_003,
          n / 7,
          null,
        ];
      }),
    ),
  );
  const entry = await sealBatches(directory, 'a.parquet', schema, batches, codec);
  expect(entry.gramFilterBytes).toBeGreaterThan(0);
  const { footer } = await (await openSegment(directory, entry, schema)).footer();
  const right = batches.map(({ columns }) =>
    columns.map((column) => Array.from({ length: groupRows }, (_, row) => columnValue(column, row))),
  );
  const bounds = footer.rowGroups.map(({ chunks }) => chunks[1]!.offset);
  bounds.push(footer.rowGroups[0]!.chunks[0]!.offset);
  const chunks = footer.rowGroups.map((group) =>
    group.chunks.slice(1).map(({ offset, bytes }) => ({ from: offset, to: offset + bytes })),
  );
  return { entry, bytes: await fileBytes(directory, 'a.parquet'), right, bounds, chunks };
}

/** The row groups that are given up. Fails if any other row group has a value that was not stored, or lacks one. */
async function lostOf({ entry, right }: Sample, bytes: Uint8Array): Promise<readonly number[]> {
  const directory = new MemoryDirectory();
  const file = await directory.create('a.parquet');
  await file.write(0, bytes);
  const recovered = await recoverSegment(directory, 'a.parquet', entry, schema);
  if (recovered === undefined) return Array.from({ length: groups }, (_, group) => group);
  const { footer, lost } = recovered;
  const pool = new BufferPool(1 << 24);
  const segment = new SealedSegment(directory, 'a.parquet', entry, schema, pool, footer);
  for (const [group, rowGroup] of segment.rowGroups(schema).entries()) {
    if (lost.includes(group)) continue;
    const open = await rowGroup.open();
    for (let field = 0; field < schema.fields.length; field++) {
      const column = await columnOf(open, field);
      const values = Array.from({ length: groupRows }, (_, row) => columnValue(column, row));
      expectEqual(values, right[group]![field]);
    }
  }
  return lost;
}

/** Bytes [from, to) of a file. */
interface Place {
  readonly from: number;
  readonly to: number;
}

/** A copy of the file without its footer. */
function withoutFooter({ bytes, entry }: Sample): Uint8Array {
  return bytes.slice().fill(0xa5, entry.footerOffset);
}

/** The row groups with a chunk in which a byte differs. */
function damagedGroups({ chunks, bytes }: Sample, damaged: Uint8Array): number[] {
  const differs = (at: number): boolean => damaged[at] !== bytes[at];
  return Array.from(chunks.keys()).filter((group) =>
    chunks[group]!.some(({ from, to }) =>
      Array.from({ length: to - from }, (_, i) => from + i).some(differs),
    ),
  );
}

const groupAt = ({ bounds }: Sample, at: number): number => bounds.findLastIndex((bound) => bound <= at);

describe.each(['lz4', 'zstd'] as const)('a segment (%s) whose footer is overwritten', (codec) => {
  it('loses no record', async () => {
    const made = await sample(codec);
    expect(await lostOf(made, withoutFooter(made))).toEqual([]);
  });

  it('loses at most the row group that contains the byte if one more byte is wrong', async () => {
    const made = await sample(codec);
    const { footerOffset } = made.entry;
    for (let at = made.bounds[0]!; at < footerOffset; at += isLong ? 1 : 17) {
      const bytes = withoutFooter(made);
      bytes[at]! ^= 1 << (at & 7);
      const lost = await lostOf(made, bytes);
      const group = groupAt(made, at);
      if (lost.length > 0) expect(lost, `byte ${at}`).toEqual([group]);
    }
  });

  it('keeps the row groups before the point at which it is cut off', async () => {
    const made = await sample(codec);
    for (let end = 0; end < made.bytes.length; end += isLong ? 7 : 61) {
      const lost = await lostOf(made, made.bytes.subarray(0, end));
      const kept = Array.from({ length: groups }, (_, group) => group).filter(
        (group) => !lost.includes(group),
      );
      const endOf = (group: number): number => made.bounds[group + 1]!;
      expect(kept).toEqual(Array.from(kept.keys()));
      expect(kept.every((group) => made.bounds[group]! < end)).toBe(true);
      expect(lost.every((group) => endOf(group) > end)).toBe(true);
    }
  });

  it(`keeps the row groups before, between and after several damages (seed ${seed})`, async () => {
    const made = await sample(codec);
    const random = seededRandom(seed);
    for (let i = 0; i < caseCount(100, 2000); i++) {
      const bytes = withoutFooter(made);
      for (let damages = between(random, 1, 4); damages > 0; damages--) {
        const from = between(random, made.bounds[0]!, made.bounds.at(-1)!);
        const to = Math.min(made.bounds.at(-1)!, from + between(random, 1, 4000));
        // The damage is zeros, noise, or bytes from elsewhere in the file.
        const kind = between(random, 0, 3);
        const source = between(random, 0, made.bytes.length - 4000);
        for (let at = from; at < to; at++)
          bytes[at] = kind === 0 ? 0 : kind === 1 ? between(random, 0, 256) : made.bytes[source + at - from]!;
      }
      expect(await lostOf(made, bytes)).toEqual(damagedGroups(made, bytes));
    }
  });
});

it('a file that is not the one that the manifest names, or that has lost its header too, yields no record', async () => {
  const made = await sample('lz4');
  const other = { ...made.entry, footerChecksum: made.entry.footerChecksum ^ 1 };
  expect(await lostOf({ ...made, entry: other }, withoutFooter(made))).toHaveLength(groups);
  const headless = withoutFooter(made).fill(0xa5, 4, 4 + made.entry.headerBytes);
  expect(await lostOf(made, headless)).toHaveLength(groups);
});
