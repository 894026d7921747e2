import { expect, it } from 'vitest';
import { caseCount, fc } from '../cases.js';
import { comparePositions, type Position } from '../../engine/core/cursor.js';
import { planScan, shareOf, UnitWalk, type ScanPlan, type ScanUnit } from '../../engine/scan/plan.js';
import type { RowGroup, SnapshotRun } from '../../engine/store/reading/snapshot.js';

interface Row extends Position {
  readonly group: number;
  readonly row: number;
}

function rowGroup(index: number): RowGroup {
  return {
    rows: 1000,
    file: 'x.parquet',
    index,
    hot: false,
    timeMinMs: null,
    timeMaxMs: null,
    opened: () => null,
    filters: { rowGroups: 1000, ask: () => null },
    open: () => Promise.reject(new Error('a plan reads nothing')),
  };
}

/** Runs in the order of positions, of a few alternating row groups, with gaps between the ordinals. */
const layouts = fc
  .array(
    fc.record({
      group: fc.nat(3),
      rows: fc.integer({ min: 1, max: 6 }),
      gap: fc.nat(3),
      isNewPartition: fc.boolean(),
    }),
    { maxLength: 12 },
  )
  .map((shapes) => {
    const groups = Array.from({ length: 4 }, (_, index) => rowGroup(index));
    const filled = groups.map(() => 0);
    const runs: SnapshotRun[] = [];
    let partition = 1;
    let next = 1;
    for (const { group, rows, gap, isNewPartition } of shapes) {
      if (isNewPartition) {
        partition++;
        next = 1;
      }
      next += gap;
      runs.push({
        rowGroup: groups[group]!,
        firstRow: filled[group]!,
        rows,
        partition,
        firstOrdinal: next,
      });
      filled[group]! += rows;
      next += rows;
    }
    return { groups, runs };
  });

const position = fc.record({ partition: fc.integer({ min: 0, max: 14 }), ordinal: fc.nat(50) });
const bounds = fc.record({
  after: fc.option(position, { nil: undefined }),
  before: fc.option(position, { nil: undefined }),
});

function rowsWithin(runs: readonly SnapshotRun[], after?: Position, before?: Position): Row[] {
  return runs
    .flatMap(({ rowGroup: { index }, firstRow, rows, partition, firstOrdinal }) =>
      Array.from({ length: rows }, (_, i) => ({
        group: index,
        row: firstRow + i,
        partition,
        ordinal: firstOrdinal + i,
      })),
    )
    .filter(
      (row) =>
        (after === undefined || comparePositions(row, after) > 0) &&
        (before === undefined || comparePositions(row, before) < 0),
    );
}

/** All units; a second walk skips the same ones. */
function unitsOf(plan: ScanPlan): ScanUnit[] {
  const walk = new UnitWalk(plan);
  const skipping = new UnitWalk(plan);
  const units: ScanUnit[] = [];
  while (walk.rowGroup !== undefined) {
    expect(skipping.rowGroup).toBe(walk.rowGroup);
    skipping.skip();
    const unit = walk.take();
    if (unit !== null) units.push(unit);
  }
  expect(skipping.rowGroup).toBeUndefined();
  return units;
}

it('plans the rows within the bounds, in order, whatever the runs', () => {
  fc.assert(
    fc.property(layouts, bounds, fc.nat(80), ({ groups, runs }, { after, before }, limit) => {
      const plan = planScan(runs, { limit, after, before, predicates: [] });
      const wanted = rowsWithin(runs, after, before);
      expect(plan.rows).toBe(wanted.length);
      expect(plan.direction).toBe(after === undefined && limit < wanted.length ? 'backward' : 'forward');
      const units = unitsOf(plan);
      if (plan.direction === 'backward') units.reverse();
      const planned = units.flatMap((unit) =>
        unit.ranges.flatMap(({ firstRow, rows, partition, firstOrdinal }) =>
          Array.from({ length: rows }, (_, i) => ({
            group: unit.rowGroup.index,
            row: firstRow + i,
            partition,
            ordinal: firstOrdinal + i,
          })),
        ),
      );
      expect(planned).toEqual(wanted);
      for (const group of groups) {
        const rows = wanted.filter((row) => row.group === group.index).map(({ row }) => row);
        const share = shareOf(plan, group);
        expect(share.units).toBe(units.filter((unit) => unit.rowGroup === group).length);
        if (rows.length === 0) continue;
        expect(share).toMatchObject({ firstRow: Math.min(...rows), endRow: Math.max(...rows) + 1 });
      }
      // Row groups that have rows within the bounds, and those that have rows on both sides of them.
      const reaching = groups.filter(({ index }) => {
        const has = (rows: readonly Row[]): boolean => rows.some((row) => row.group === index);
        const all = rowsWithin(runs).filter((row) => row.group === index);
        const isBefore = (row: Row): boolean => after !== undefined && comparePositions(row, after) <= 0;
        return has(wanted) || (all.some(isBefore) && all.some((row) => !isBefore(row)));
      });
      if (wanted.length === 0) expect(plan.rowGroups).toBe(0);
      else if (before === undefined) expect(plan.rowGroups).toBe(reaching.length);
      else expect(plan.rowGroups).toBeLessThanOrEqual(groups.length);
      expect(plan.rowGroups).toBeGreaterThanOrEqual(new Set(wanted.map(({ group }) => group)).size);
    }),
    { numRuns: caseCount(2000) },
  );
});

it('uses the runs of a state, even if another state had the same first runs', () => {
  const groups = [rowGroup(0), rowGroup(1)];
  const run = (rowGroup: RowGroup, firstOrdinal: number): SnapshotRun => ({
    rowGroup,
    firstRow: 0,
    rows: 5,
    partition: 1,
    firstOrdinal,
  });
  const query = { limit: 3, predicates: [] };
  const before = [run(groups[0]!, 1)];
  expect(planScan(before, query)).toMatchObject({ rows: 5, rowGroups: 1 });
  expect(planScan([...before, run(groups[1]!, 6)], query)).toMatchObject({ rows: 10, rowGroups: 2 });
  expect(planScan(before, query)).toMatchObject({ rows: 5, rowGroups: 1 });
});
