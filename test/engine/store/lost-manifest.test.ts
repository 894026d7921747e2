import { beforeAll, describe, expect, it } from 'vitest';
import { caseCount, fc } from '../../cases.js';
import { formatCursor, parseCursor, partitionOfTime } from '../../../engine/core/cursor.js';
import type { LostRecords } from '../../../engine/maintenance/lost-records.js';
import { batchFromRows, type Value } from '../../model/rows.js';
import { MemoryDirectory } from '../../storage-doubles/memory-directory.js';
import { seededRandom, between } from '../../model/random.js';
import type { Run, SegmentEntry } from '../../../engine/store/manifest/manifest.js';
import { segmentFile } from '../../../engine/store/manifest/commit.js';
import { fileBytes, openSegment, sealBatches } from '../../parquet/segment-sample.js';
import { answer, noon, openOn, schema } from './memory-archive.js';
import type { Codec } from '../../../engine/parquet/compression.js';
import { expectEqual } from '../../expect-equal.js';

const hour = partitionOfTime(noon) - 4;

type Positions = readonly (readonly [partition: number, firstOrdinal: number, rows: number])[];

interface Plan {
  readonly codec: Codec;
  readonly groupRows: number;
  readonly runs: Positions;
}

const plan = (codec: Codec, groupRows: number, ...runs: Positions): Plan => ({ codec, groupRows, runs });

/** The segments of the store: the last but one is the result of merging the first two, which are still there. */
const plans: readonly Plan[] = [
  plan('lz4', 25, [hour, 1, 40], [hour + 1, 1, 40]),
  plan('lz4', 7, [hour, 41, 3], [hour, 50, 21], [hour + 1, 41, 20]),
  plan('lz4', 30, [hour, 1, 43], [hour, 50, 21], [hour + 1, 1, 60]),
  plan('zstd', 10, [hour + 2, 1, 45], [hour + 3, 6, 9]),
];

interface Part {
  readonly from: number;
  readonly to: number;
}

/** A segment as it was written, and where its parts lie in the file. */
interface Made {
  readonly path: string;
  readonly entry: SegmentEntry;
  readonly bytes: Uint8Array;
  readonly rowGroups: readonly { readonly chunks: readonly Part[]; readonly cursors: readonly string[] }[];
}

function runsOf(positions: Positions): Run[] {
  let firstRow = 0;
  return positions.map(([partition, firstOrdinal, rows]) => {
    firstRow += rows;
    return { partition, firstOrdinal, rows, firstRow: firstRow - rows };
  });
}

/** The values of a record depend on its position, so that a record at a wrong position is noticed. */
function rowAt(partition: number, ordinal: number): Value[] {
  const n = partition * 1000 + ordinal;
  const timeMs = partition * 3_600_000 + ordinal;
  return [
    timeMs,
    n % 5 === 0 ? null : n,
    n / 7,
    n % 3 === 0 ? 'the same' : `record ${(n * 2654435761) >>> 0}`,
  ];
}

async function makeSegment(index: number): Promise<Made> {
  const { codec, groupRows, runs } = plans[index]!;
  const positions = runs.flatMap(([partition, first, rows]) =>
    Array.from({ length: rows }, (_, i) => ({ partition, ordinal: first + i })),
  );
  const groups = Array.from({ length: Math.ceil(positions.length / groupRows) }, (_, i) =>
    positions.slice(i * groupRows, (i + 1) * groupRows),
  );
  const batches = groups.map((group) =>
    batchFromRows(
      schema,
      group.map(({ partition, ordinal }) => rowAt(partition, ordinal)),
    ),
  );
  const directory = new MemoryDirectory();
  const path = `web/${segmentFile(`${index}0a1b2c3d4e5`, 0, hour)}`;
  await directory.makeDirectory(path.slice(0, path.lastIndexOf('/')));
  const entry = await sealBatches(directory, path, schema, batches, codec, runsOf(runs));
  const { footer } = await (await openSegment(directory, entry, schema)).footer();
  const rowGroups = footer.rowGroups.map(({ chunks }, group) => ({
    chunks: chunks.slice(1).map(({ offset, bytes }) => ({ from: offset, to: offset + bytes })),
    cursors: groups[group]!.map(formatCursor),
  }));
  return { path, entry, bytes: await fileBytes(directory, path), rowGroups };
}

/** A folder with these segments and no other files. */
async function storeOf(files: readonly { path: string; bytes: Uint8Array }[]): Promise<MemoryDirectory> {
  const directory = new MemoryDirectory();
  for (const { path, bytes } of files) {
    await directory.makeDirectory(path.slice(0, path.lastIndexOf('/')));
    const file = await directory.create(path);
    await file.write(0, bytes);
    await file.sync();
    await file.close();
  }
  return directory;
}

interface Repaired {
  /** The lines of all records, by cursor. */
  readonly lines: ReadonlyMap<string, string>;
  readonly lost: readonly LostRecords[];
  /** Paths of the files that were put aside. */
  readonly aside: readonly string[];
}

async function repaired(directory: MemoryDirectory): Promise<Repaired> {
  const archive = await openOn(directory);
  const adopt = (): Promise<boolean> => Promise.resolve(true);
  const { lost, quarantined } = await archive.repair('web', { adopt, schema });
  const store = await archive.agent('web', schema);
  const lines = (await answer(store)).split('\n').slice(0, -1);
  expect((await store.verify()).damages).toEqual([]);
  await archive.close();
  return {
    lines: new Map(lines.map((line) => [line.slice(12, 28), line])),
    lost,
    aside: quarantined.map(({ file }) => `web/${file}`),
  };
}

type Damage =
  | { readonly kind: 'overwrite'; readonly from: number; readonly to: number; readonly seed: number }
  | { readonly kind: 'cut' | 'append'; readonly at: number };

/** Places as fractions of the file, with an emphasis on the places that matter most. */
const place = fc.oneof(
  fc.constantFrom(0, 0.25, 0.5, 0.75, 1),
  fc.double({ min: 0, max: 1, noNaN: true }),
  fc.double({ min: 0.9, max: 1, noNaN: true }),
);
const damage: fc.Arbitrary<Damage> = fc.oneof(
  fc.record({ kind: fc.constant('overwrite' as const), from: place, to: place, seed: fc.nat() }),
  fc
    .record({ at: place, bytes: fc.double({ min: 0, max: 0.05, noNaN: true }), seed: fc.nat() })
    .map(({ at, bytes, seed }) => ({
      kind: 'overwrite' as const,
      from: at,
      to: Math.min(1, at + bytes),
      seed,
    })),
  fc.record({ kind: fc.constantFrom('cut' as const, 'append' as const), at: place }),
);

function damaged(bytes: Uint8Array, damages: readonly Damage[]): Uint8Array {
  let copy = bytes.slice();
  for (const each of damages) {
    if (each.kind === 'overwrite') {
      const [from, to] = [each.from, each.to]
        .sort((a, b) => a - b)
        .map((at) => Math.floor(at * bytes.length));
      const random = seededRandom(each.seed);
      for (let at = from!; at < Math.min(copy.length, Math.max(to!, from! + 1)); at++)
        copy[at] = each.seed % 2 === 0 ? 0 : between(random, 0, 256);
    } else if (each.kind === 'cut') copy = copy.slice(0, Math.floor(each.at * bytes.length));
    else copy = Uint8Array.from([...copy, ...new Uint8Array(9 * each.at + 1)]);
  }
  return copy;
}

/** The row groups of a damaged file that are intact. */
function wholeOf({ entry, bytes, rowGroups }: Made, now: Uint8Array): { tells: boolean; cursors: string[] } {
  const isSame = ({ from, to }: Part): boolean =>
    now.length >= to && Buffer.compare(now.subarray(from, to), bytes.subarray(from, to)) === 0;
  const hasHeader = isSame({ from: 4, to: 4 + entry.headerBytes! });
  const hasFooter = now.length === bytes.length && isSame({ from: entry.footerOffset, to: bytes.length });
  const cursors = rowGroups.filter(({ chunks }) => chunks.every(isSame)).flatMap((group) => group.cursors);
  return { tells: hasHeader || hasFooter, cursors };
}

/** Whether a report of lost records covers a record. */
function isNamed(cursor: string, lost: readonly LostRecords[]): boolean {
  return lost.some(({ first, last, fromMs, untilMs }) => {
    if (first !== null && last !== null) return cursor >= first && cursor <= last;
    const timeMs = parseCursor(cursor)!.partition * 3_600_000;
    return timeMs >= fromMs && timeMs < untilMs;
  });
}

let made: readonly Made[] = [];
let right: ReadonlyMap<string, string> = new Map();

beforeAll(async () => {
  made = await Promise.all(plans.map((_, index) => makeSegment(index)));
  right = (await repaired(await storeOf(made))).lines;
  expect(right.size).toBe(45 + 9 + 43 + 21 + 60);
});

/** Damages the files, repairs the store, and compares the result with the intact parts. */
async function check(files: readonly (readonly Damage[])[]): Promise<void> {
  const now = made.map(({ path, bytes }, i) => ({ path, bytes: damaged(bytes, files[i] ?? []) }));
  const found = await repaired(await storeOf(now));
  const whole = made.map((segment, i) => wholeOf(segment, now[i]!.bytes));
  const wanted = new Set(whole.filter(({ tells }) => tells).flatMap(({ cursors }) => cursors));
  // A damaged footer may still be usable if the damage lies in an unused part, and then its contents must be right.
  const allowed = new Set(whole.flatMap(({ cursors }) => cursors));
  for (const cursor of wanted) expectEqual(found.lines.get(cursor), right.get(cursor), cursor);
  for (const [cursor, line] of found.lines) {
    expectEqual(allowed.has(cursor), true, cursor);
    expectEqual(line, right.get(cursor), cursor);
  }
  for (const cursor of right.keys())
    if (!found.lines.has(cursor))
      expectEqual(isNamed(cursor, found.lost), true, `${cursor} is lost and not reported`);
  for (const [i, { path, bytes }] of now.entries())
    if (Buffer.compare(bytes, made[i]!.bytes) !== 0) expect(found.aside).toContain(path);
}

describe('segments without a manifest', () => {
  it.each([
    { what: 'second half', from: 0.5, to: 1 },
    { what: 'first half', from: 0, to: 0.5 },
    { what: 'header', from: 0, to: 0.01 },
    { what: 'footer', from: 0.99, to: 1 },
  ])('yield all intact records when the $what of each is overwritten', async ({ from, to }) => {
    const all = made.map((): Damage[] => [{ kind: 'overwrite', from, to, seed: 1 }]);
    await check(all);
    // No other segment has the records of the last one.
    await check([[], [], [], all[3]!]);
  });

  it('yield exactly the intact records under the same cursors, whatever is damaged', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.array(damage, { maxLength: 3 }), { minLength: plans.length, maxLength: plans.length }),
        check,
      ),
      { numRuns: caseCount(50, 2000) },
    );
  }, 600_000);
});
