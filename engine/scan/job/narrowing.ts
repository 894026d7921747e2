import type { Column } from '../../columns/column.js';
import type { RowGroupShare } from '../plan/plan.js';
import type { ScanStats } from '../plan/query.js';
import { evaluateDictionary, evaluatePlain, matchingEntries, matchRow } from './evaluate.js';
import type { PreparedPredicate } from './predicate.js';
import type { RemainingRows } from './remaining-rows.js';

/**
 * What excluded rows: `dictionary` where a dictionary has no matching entry, so that no row was looked at; `values` where rows were
 * compared.
 */
export type NarrowedBy = 'dictionary' | 'values';

/** `all` leaves the rows that match all predicates, `none` those that match none. */
export type NarrowMode = 'all' | 'none';

/** A predicate, and the column of its field. */
export interface PredicateOfColumn {
  readonly predicate: PreparedPredicate;
  readonly column: Column;
}

/** What was found out about predicates: for each that was evaluated, the number of rows that it was evaluated on, and how many matched. */
export interface Narrowed {
  readonly narrowedBy: NarrowedBy;
  readonly seen: readonly number[];
  readonly passed: readonly number[];
}

/** Where fewer than one row in this many is left, strings are compared row by row; else all rows are searched as one text. */
export const rowsForOneLeft = 64;

/**
 * Evaluates predicates one after another until no row is left. All threads use this function. Returns `dictionary` where dictionaries alone
 * have excluded all rows, else `values`.
 */
export function narrow(
  asked: readonly PredicateOfColumn[],
  mode: NarrowMode,
  remaining: RemainingRows,
): Narrowed {
  const seen: number[] = [];
  const passed: number[] = [];
  let narrowedBy: NarrowedBy = 'dictionary';
  for (const { predicate, column } of asked) {
    const before = remaining.count;
    if (before === 0) break;
    const own = mode === 'all' ? remaining : remaining.copy();
    if (narrowByColumn(predicate, column, own) === 'values') narrowedBy = 'values';
    seen.push(before);
    passed.push(own.count);
    if (mode === 'none') remaining.takeAway(own);
  }
  if (mode === 'all' && remaining.count > 0) narrowedBy = 'values';
  return { narrowedBy, seen, passed };
}

/** Leaves the rows whose value in the column matches. */
function narrowByColumn(predicate: PreparedPredicate, column: Column, remaining: RemainingRows): NarrowedBy {
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
  } else if (column.kind === 'bytes' && remaining.count * rowsForOneLeft < to - from) {
    remaining.keepEach((row) => matchRow(predicate, column, row));
  } else {
    const matches = remaining.room();
    evaluatePlain(predicate, column, from, to, matches);
    remaining.keep(matches);
  }
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
