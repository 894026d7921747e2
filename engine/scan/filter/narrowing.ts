import type { Column } from '../../columns/column.js';
import { settled, type Steps } from '../../store/reading/steps.js';
import type { RowGroupShare } from '../plan/plan.js';
import type { ScanStats } from '../plan/query.js';
import { evaluateDictionary, evaluatePlain, stepEnd, matchingEntries } from './evaluate.js';
import type { PreparedPredicate } from './predicate.js';
import type { RemainingRows } from './remaining-rows.js';

/** A predicate, with the number of rows that it was evaluated on and how many of them matched. */
export interface AskedPredicate {
  readonly predicate: PreparedPredicate;
  rowsSeen: number;
  rowsPassed: number;
}

/**
 * What excluded rows: `dictionary` where a dictionary has no matching entry, so that no row was looked at; `values` where rows were
 * compared.
 */
export type NarrowedBy = 'dictionary' | 'values';

/**
 * Evaluates the predicates one after another until no row is left, and leaves the rows that match all of them in `remaining`. All threads
 * use this function; `ask` gets the column and evaluates one predicate. Returns `dictionary` where dictionaries alone have excluded all
 * rows, else `values`.
 */
export function* narrow<Asked extends AskedPredicate>(
  predicates: readonly Asked[],
  remaining: RemainingRows,
  ask: (asked: Asked) => Steps<never, NarrowedBy>,
): Steps<never, NarrowedBy> {
  let narrowedBy: NarrowedBy = 'dictionary';
  for (const asked of predicates) {
    const before = remaining.count;
    if ((yield* ask(asked)) === 'values') narrowedBy = 'values';
    asked.rowsSeen += before;
    asked.rowsPassed += remaining.count;
    if (remaining.count === 0) return narrowedBy;
  }
  return 'values';
}

/** Leaves the rows whose value in the column matches. Calls `pause` between steps of a few milliseconds. */
export function* narrowByColumn(
  predicate: PreparedPredicate,
  column: Column,
  remaining: RemainingRows,
  pause: () => Promise<void> | undefined,
): Steps<never, NarrowedBy> {
  const { from, to } = remaining.range;
  if (column.kind === 'dictionary') {
    const wanted = matchingEntries(predicate, column);
    if (wanted === null) {
      remaining.clear();
      return 'dictionary';
    }
    const matches = remaining.room();
    evaluateDictionary(column, wanted, from, to, matches);
    remaining.keep(matches);
    return 'values';
  }
  const matches = remaining.room();
  for (let at = from; at < to;) {
    const end = stepEnd(column, at, to);
    evaluatePlain(predicate, column, at, end, matches);
    at = end;
    yield* settled(pause());
  }
  remaining.keep(matches);
  return 'values';
}

/** Adds a filtered row group to the statistics. */
export function countNarrowed(
  stats: ScanStats,
  { firstRow, endRow }: RowGroupShare,
  narrowedBy: NarrowedBy,
): void {
  if (narrowedBy === 'dictionary') {
    stats.rowGroupsPrunedByDictionary++;
  } else {
    stats.rowGroupsScanned++;
    stats.rowsScanned += endRow - firstRow;
  }
}
