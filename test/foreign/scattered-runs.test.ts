import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { describe, expect, it } from 'vitest';
import { fc } from '../cases.js';
import { indexOfRuns, planScan } from '../../engine/scan/plan.js';
import type { Query } from '../../engine/scan/query.js';
import { encodePlacements, type SpanPlacement } from '../../engine/store/attached/span-placements.js';
import type { AttachedFile } from '../../engine/store/attached/attached-list.js';
import { AttachedSegment } from '../../engine/store/reading/attached-segment.js';
import type { RowGroup, SnapshotRuns } from '../../engine/store/reading/snapshot.js';
import { mergeRuns, RunColumnsBuilder } from '../../engine/store/manifest/run-columns.js';
import type { PositionedRows, RunList } from '../../engine/store/manifest/run-list.js';
import { makeSchema } from '../../engine/core/schema.js';
import { answer, load, openOn } from '../engine/store/memory-archive.js';
import { ModelStore } from '../engine/store/model-store.js';
import { answerOf } from '../model/answer.js';
import { MemoryDirectory } from '../storage-doubles/memory-directory.js';
import type { Row } from './placed-rows.js';
import { writeParquet } from './write-parquet.js';

const schema = makeSchema([{ name: 'time', type: 'time' }]);

/** Collects garbage. */
function collectGarbage(): void {
  setFlagsFromString('--expose-gc');
  (runInNewContext('gc') as () => void)();
}

function usedBytes(): number {
  collectGarbage();
  const { heapUsed, arrayBuffers } = process.memoryUsage();
  return heapUsed + arrayBuffers;
}

const spanRows = 65_536;
const spansOfFile = 153;

/** A file of 153 spans, each of which has the same number of rows in each of `hours` hours. */
function scatteredFile(number: number, hours: number): AttachedFile {
  const perHour = Math.floor(spanRows / hours);
  const counts = Array.from({ length: hours }, (_, hour) => ({
    hour,
    rows: hour === 0 ? spanRows - perHour * (hours - 1) : perHour,
  }));
  const placements: SpanPlacement[] = Array.from({ length: spansOfFile }, () => ({
    isOrdered: false,
    previousMs: null,
    hours: counts,
  }));
  return {
    id: String(number).padStart(12, '0'),
    path: `/lake/${number}.parquet`,
    format: 'parquet',
    constants: {},
    bytes: 1,
    mtimeMs: 1,
    footerHash: '',
    rowGroupRows: placements.map(() => spanRows),
    nowMs: 2e12,
    placedBy: null,
    timeMinMs: null,
    timeMaxMs: null,
    placements: encodePlacements(placements),
    runs: counts.map(({ hour, rows }) => ({
      partition: 480_000 + hour,
      firstOrdinal: 1 + number * rows * spansOfFile,
      rows: rows * spansOfFile,
    })),
  };
}

function runsOf(files: readonly AttachedFile[]): SnapshotRuns {
  const directory = new MemoryDirectory();
  const opened = files.map((file) => {
    const segment = new AttachedSegment(directory, 'web', file, {} as never, {} as never, {} as never);
    return { segment, rowGroups: segment.rowGroups(schema) };
  });
  const count = files.reduce((sum, { runs }) => sum + runs.length * spansOfFile, 0);
  const columns = new RunColumnsBuilder<RowGroup>(count);
  for (const { segment, rowGroups } of opened) segment.eachRun(rowGroups, 0, (run) => columns.add(run));
  return columns.finish();
}

describe('rows in no order of time', () => {
  it('of a month, 10⁸ of them, have side files of a few megabytes and take less than 64 MB of memory', () => {
    const hours = 720;
    const files = Array.from({ length: 10 }, (_, number) => scatteredFile(number, hours));
    const sideBytes = files.reduce((sum, { placements }) => sum + placements.length, 0);
    expect(sideBytes).toBeLessThan(4_000_000);
    const before = usedBytes();
    const runs = runsOf(files);
    expect(runs.length).toBe(10 * spansOfFile * hours);
    const plan = planScan(runs, { limit: 100, after: undefined, before: undefined, predicates: [] });
    expect(plan.rows).toBe(10 * spansOfFile * spanRows);
    expect(usedBytes() - before).toBeLessThan(64_000_000);
    // The newest hour comes after all rows of the other hours, and has the rows of each file in the order of the files.
    const newest = Array.from({ length: 10 * spansOfFile }, (_, i) => runs.at(i - 10 * spansOfFile)!);
    expect(newest.every(({ partition }) => partition === 480_000 + hours - 1)).toBe(true);
    let next = 1;
    for (const { firstOrdinal, rows } of newest) {
      expect(firstOrdinal).toBe(next);
      next += rows;
    }
    expect(indexOfRuns(runs).runsOf(newest[0]!.rowGroup, 0, runs.length)).toHaveLength(hours);
  });
});

describe('rows with an hour each, in no order', () => {
  it('are answered like the model if there are so many runs that they are kept as numbers', async () => {
    const nowMs = Date.UTC(2025, 0, 3);
    const count = 51_000;
    const rows = Array.from({ length: count }, (_, i): Row => {
      const hour = (i * 7919) % count;
      return [BigInt(nowMs - (hour + 1) * 3_600_000), BigInt(i)];
    });
    const fields = makeSchema([
      { name: 'time', type: 'time', attached: { column: 'time', unit: 'ms' } },
      { name: 'n', type: 'int' },
    ]);
    const folder = await mkdtemp(join(tmpdir(), 'logstrata-scattered-'));
    const archive = await openOn(new MemoryDirectory(), () => nowMs);
    try {
      const path = join(folder, 'a.parquet');
      await writeParquet(path, fields, rows, { rowGroupRows: 20_000, pageBytes: 100_000 });
      const store = await archive.agent('web', fields);
      const add = { path, format: 'parquet', constants: {} } as const;
      const { problems } = await store.attach({ adds: [add], moves: [], removes: [] });
      expect(problems).toEqual([]);
      expect((await store.stats()).attached.order.runs).toBe(count);
      const dataset = new ModelStore(fields);
      dataset.load(rows, nowMs);
      const middle = dataset.records[25_000]!.position;
      for (const asked of [
        { limit: 50 },
        { limit: 50, before: middle },
        { limit: 50, after: middle },
        { limit: 3, predicates: [{ kind: 'int', field: 1, op: 'lt', value: 40n }] as const },
      ]) {
        const query: Query = { after: undefined, before: undefined, predicates: [], ...asked };
        expect(await answer(store, query)).toBe(answerOf(dataset, query));
      }
      // A stored record comes between them, or after all of them.
      for (const hours of [0, 30_000]) {
        const time = BigInt(nowMs - 1 - hours * 3_600_000);
        await load(store, [[time, -1n]]);
        dataset.load([[time, -1n]], nowMs);
        const query: Query = { limit: 20, after: undefined, before: undefined, predicates: [] };
        expect(await answer(store, query)).toBe(answerOf(dataset, query));
        const less = { ...query, predicates: [{ kind: 'int', field: 1, op: 'lt', value: 2n }] as const };
        expect(await answer(store, less)).toBe(answerOf(dataset, less));
      }
    } finally {
      await archive.close();
      await rm(folder, { recursive: true, force: true });
    }
  });
});

describe('a list of runs', () => {
  interface Group {
    readonly name: number;
  }
  const groups: readonly Group[] = Array.from({ length: 5 }, (_, name) => ({ name }));

  /** Runs of several partitions in any order; none overlap. */
  const someRuns = fc
    .array(
      fc.record({
        partition: fc.integer({ min: 1, max: 6 }),
        rows: fc.integer({ min: 1, max: 9 }),
        group: fc.nat(4),
      }),
      { maxLength: 60 },
    )
    .chain((parts) => {
      const next = new Map<number, number>();
      const runs = parts.map(({ partition, rows, group }): PositionedRows<Group> => {
        const firstOrdinal = next.get(partition) ?? 1;
        next.set(partition, firstOrdinal + rows);
        return { rowGroup: groups[group]!, firstRow: firstOrdinal, rows, partition, firstOrdinal };
      });
      return fc.shuffledSubarray(runs, { minLength: 0 });
    });

  const ordered = (runs: readonly PositionedRows<Group>[]): PositionedRows<Group>[] =>
    runs.toSorted((a, b) => a.partition - b.partition || a.firstOrdinal - b.firstOrdinal);

  const packed = (runs: readonly PositionedRows<Group>[]): RunList<Group> => {
    const columns = new RunColumnsBuilder<Group>(runs.length);
    for (const run of runs) columns.add(run);
    return columns.finish();
  };

  it('returns the same runs in the same order, kept as objects or as numbers, alone and merged', () => {
    fc.assert(
      fc.property(someRuns, fc.boolean(), fc.boolean(), fc.nat(), (runs, isPackedA, isPackedB, cut) => {
        const list = packed(runs);
        const expected = ordered(runs);
        expect([...list]).toEqual(expected);
        expect(list.at(-1)).toEqual(expected.at(-1));
        expect(list.at(runs.length)).toBeUndefined();
        const at = runs.length === 0 ? 0 : cut % (runs.length + 1);
        for (const from of [runs, expected]) {
          const [a, b] = [from.slice(0, at), from.slice(at)];
          const merged = mergeRuns(isPackedA ? packed(a) : ordered(a), isPackedB ? packed(b) : ordered(b));
          expect([...merged]).toEqual(expected);
          expect(merged).toHaveLength(runs.length);
          expected.forEach((run, i) => expect(merged.at(i)).toEqual(run));
          expect(merged.at(-runs.length)).toEqual(expected[0]);
        }
      }),
    );
  });
});
