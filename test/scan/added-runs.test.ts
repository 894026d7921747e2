import { expect, it } from 'vitest';
import { caseCount, fc } from '../cases.js';
import { addedRuns, haveRecord, sharedRuns } from '../../engine/scan/added-runs.js';
import type { RowGroup, SnapshotRun } from '../../engine/store/reading/snapshot.js';

const group = {} as RowGroup;
const partitions = 3;
const ordinals = 30;

/** Positions as runs, cut where `cuts` says so; row n of the row group is the n-th position. */
function runsOf(positions: readonly number[], cuts: readonly boolean[]): SnapshotRun[] {
  const runs: SnapshotRun[] = [];
  positions.forEach((position, row) => {
    const partition = 1 + Math.floor(position / ordinals);
    const firstOrdinal = 1 + (position % ordinals);
    const last = runs.at(-1);
    const follows = last?.partition === partition && last.firstOrdinal + last.rows === firstOrdinal;
    if (follows && cuts[row % cuts.length] !== true) runs[runs.length - 1] = { ...last, rows: last.rows + 1 };
    else runs.push({ rowGroup: group, partition, firstOrdinal, firstRow: row, rows: 1 });
  });
  return runs;
}

/** Position → row. */
function rowsOf(runs: readonly SnapshotRun[]): Map<number, number> {
  const rows = new Map<number, number>();
  let before = -1;
  for (const { partition, firstOrdinal, firstRow, rows: count } of runs) {
    for (let i = 0; i < count; i++) {
      const position = (partition - 1) * ordinals + firstOrdinal + i - 1;
      expect(position).toBeGreaterThan(before);
      before = position;
      rows.set(position, firstRow + i);
    }
  }
  return rows;
}

const positions = fc.uniqueArray(fc.nat(partitions * ordinals - 1)).map((list) => list.sort((a, b) => a - b));
const cuts = fc.array(fc.boolean(), { minLength: 1, maxLength: 9 });

it('returns the runs that one state has and another lacks, and those that both have', () => {
  fc.assert(
    fc.property(positions, cuts, positions, cuts, fc.boolean(), (known, knownCuts, more, nowCuts, isSame) => {
      const before = runsOf(known, knownCuts);
      const all = [...new Set([...known, ...more])].sort((a, b) => a - b);
      const now = isSame ? before : runsOf(all, nowCuts);
      const rows = rowsOf(now);
      const isKnown = new Set(known);
      const expected = (wanted: boolean) =>
        [...rows].filter(([position]) => isKnown.has(position) === wanted);
      expect([...rowsOf(addedRuns(before, now))]).toEqual(expected(false));
      expect([...rowsOf(sharedRuns(before, now))]).toEqual(expected(true));
      for (let position = 0; position < partitions * ordinals; position++) {
        const partition = 1 + Math.floor(position / ordinals);
        const found = haveRecord(before, partition, 1 + (position % ordinals));
        if (found !== isKnown.has(position)) expect([position, found]).toBe('what is known');
      }
    }),
    { numRuns: caseCount(2000) },
  );
});
