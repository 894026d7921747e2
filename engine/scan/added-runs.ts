import { manifestNumbers, type SnapshotRun, type SnapshotRuns } from '../store/reading/snapshot.js';

/**
 * The rows of `now` at positions that `known` does not have: the records that have become visible between two states. Records that were
 * merely moved to another file by sealing or compaction are not included. Both lists ascend, and runs of one list don't overlap.
 */
export function addedRuns(known: SnapshotRuns, now: SnapshotRuns): SnapshotRun[] {
  return cutRuns(known, now, false);
}

/** The `addedRuns` without those of a table whose rows somebody who has seen `known` knows, at the positions that they had before a rewrite. */
export function newRuns(known: SnapshotRuns, now: SnapshotRuns): SnapshotRun[] {
  const number = manifestNumbers.get(known) ?? -1;
  return addedRuns(known, now).filter(({ rowGroup: { table } }) => number < (table?.knownSince ?? Infinity));
}

/** The rows of `now` at positions that `known` has too. The same preconditions as for `addedRuns`. */
export function sharedRuns(known: SnapshotRuns, now: SnapshotRuns): SnapshotRun[] {
  return cutRuns(known, now, true);
}

/** The rows of `now` whose positions are in `known`, or are not in `known`, as `isWantedKnown` says. */
function cutRuns(known: SnapshotRuns, now: SnapshotRuns, isWantedKnown: boolean): SnapshotRun[] {
  const cut: SnapshotRun[] = [];
  let next = 0;
  for (const run of now) {
    if (known.at(next) === run) {
      if (isWantedKnown) cut.push(run);
      next++;
      continue;
    }
    const end = run.firstOrdinal + run.rows;
    let ordinal = run.firstOrdinal;
    while (ordinal < end) {
      const other = known.at(next);
      if (other !== undefined && endsBefore(other, run.partition, ordinal)) {
        next++;
        continue;
      }
      const isBeside = other?.partition !== run.partition || other.firstOrdinal >= end;
      const isKnown = !isBeside && other.firstOrdinal <= ordinal;
      const to = isBeside ? end : isKnown ? Math.min(end, endOf(other)) : other.firstOrdinal;
      if (isKnown === isWantedKnown) cut.push(partOf(run, ordinal, to));
      ordinal = to;
    }
  }
  return cut;
}

/** Whether all rows of a run are before a position. */
function endsBefore(run: SnapshotRun, partition: number, ordinal: number): boolean {
  return run.partition < partition || (run.partition === partition && endOf(run) <= ordinal);
}

function endOf({ firstOrdinal, rows }: SnapshotRun): number {
  return firstOrdinal + rows;
}

/** The rows of a run at the ordinals [from, to). */
function partOf(run: SnapshotRun, from: number, to: number): SnapshotRun {
  if (from === run.firstOrdinal && to === endOf(run)) return run;
  const { rowGroup, partition, firstRow, firstOrdinal } = run;
  return {
    rowGroup,
    partition,
    firstRow: firstRow + from - firstOrdinal,
    rows: to - from,
    firstOrdinal: from,
  };
}

/** Whether one of the ascending runs contains the position of a record. */
export function haveRecord(runs: SnapshotRuns, partition: number, ordinal: number): boolean {
  let low = 0;
  let high = runs.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (endsBefore(runs.at(middle)!, partition, ordinal)) low = middle + 1;
    else high = middle;
  }
  const run = runs.at(low);
  return run?.partition === partition && run.firstOrdinal <= ordinal;
}
