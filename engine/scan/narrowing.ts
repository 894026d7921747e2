import {
  type BytesColumn,
  isValid,
  type Column,
  type DictionaryColumn,
  type Int64Column,
  type PlainColumn,
} from '../columns/column.js';
import { assert } from '../core/errors.js';
import { andRange, countRange, flipRange, orRange, setRange, spreadBits } from '../kernels/bitmap.js';
import { selectFloat64, selectInt64 } from '../kernels/compare.js';
import { selectCodes } from '../kernels/dictionary-select.js';
import { patternSearch } from '../patterns/pattern-search.js';
import { selectRun } from '../patterns/required-run.js';
import {
  type Comparison,
  type IntComparison,
  type PatternComparison,
  type PreparedPredicate,
} from './predicate.js';
import { matchString, selectStrings } from './string-search.js';
import type { RowGroupShare } from './plan.js';
import type { ScanStats } from './query.js';
import type { RemainingRows } from './selection.js';

/** For each comparison with a pattern, the rows in which it was found. */
type FoundRows = ReadonlyMap<Comparison, Uint8Array>;

/**
 * Sets the bits of `out` for the rows [from, to) of a plain column to whether they match the predicate. `from` must be a multiple of 8. A
 * null never matches.
 */
export function evaluatePlain(
  predicate: PreparedPredicate,
  column: PlainColumn,
  from: number,
  to: number,
  out: Uint8Array,
  found: FoundRows,
): void {
  const [first, ...others] = predicate.anyOf;
  compare(first!, column, from, to, out, found);
  const matches = others.length === 0 ? out : new Uint8Array(out.length);
  for (const comparison of others) {
    compare(comparison, column, from, to, matches, found);
    orRange(out, matches, from, to);
  }
  if (column.validity !== null) andRange(out, column.validity, from, to);
}

/**
 * The rows of [from, to) that a pattern may match: those of `wanted` (null for all), and, unless they are few, only those with a text or a
 * run of bytes that every match contains.
 */
function rowsToSearch(
  { needles, pattern }: PatternComparison,
  column: BytesColumn,
  from: number,
  to: number,
  wanted: Uint8Array | null,
): Uint8Array {
  const bits = new Uint8Array((to + 7) >> 3);
  const isFew = wanted !== null && countRange(wanted, from, to) * rowsForOneLeft < to - from;
  if (!isFew && pattern.run !== null) selectRun(column, pattern.run, from, to, bits);
  else if (isFew || needles.length === 0) setRange(bits, from, to);
  else {
    const rows = new Uint8Array(bits.length);
    for (const needle of needles) {
      selectStrings(column, needle, from, to, rows);
      orRange(bits, rows, from, to);
    }
  }
  if (wanted !== null) andRange(bits, wanted, from, to);
  return bits;
}

/** Like `evaluatePlain`, but leaves the bits of nulls undefined. */
function compare(
  comparison: Comparison,
  column: PlainColumn,
  from: number,
  to: number,
  out: Uint8Array,
  found: FoundRows,
): void {
  if (comparison.kind === 'int') {
    assert(column.kind === 'int64', `a column of ${column.kind} can't be compared with an integer`);
    evaluateInt(comparison, column, from, to, out);
  } else if (comparison.kind === 'float') {
    assert(column.kind === 'float64', `a column of ${column.kind} can't be compared with a float`);
    const flip = comparison.outside ? 0xff : 0;
    selectFloat64(column.values, from, to, comparison.low, comparison.high, flip, out);
  } else if (comparison.kind === 'pattern') {
    out.set(found.get(comparison)!.subarray(from >> 3, (to + 7) >> 3), from >> 3);
    if (comparison.outside) flipRange(out, from, to);
  } else if (comparison.kind === 'exists') {
    throw new Error('only validity tells whether values exist');
  } else {
    assert(column.kind === 'bytes', `a column of ${column.kind} can't be searched for a string`);
    selectStrings(column, comparison.needle, from, to, out);
    if (comparison.outside) flipRange(out, from, to);
  }
}

function evaluateInt(
  comparison: IntComparison,
  column: Int64Column,
  from: number,
  to: number,
  out: Uint8Array,
): void {
  const { low, high } = comparison;
  if (low > high) {
    // The range of `> int64Max` or `< int64Min` is empty, and its bounds may not fit in 64 bits.
    out.fill(0, from >> 3, (to + 7) >> 3);
    return;
  }
  selectInt64(column.values, from, to, low, high, comparison.outside ? 0xff : 0, out);
}

/**
 * The entries of a dictionary that match, one byte for each entry; null when none matches. A dictionary has far fewer entries than the row
 * group has rows, and most row groups have no entry that matches.
 */
export function matchingEntries(
  predicate: PreparedPredicate,
  column: DictionaryColumn,
  found: FoundRows,
): Uint8Array | null {
  const entries = column.values.length;
  const bits = new Uint8Array((entries + 7) >> 3);
  evaluatePlain(predicate, column.values, 0, entries, bits, found);
  if (countRange(bits, 0, entries) === 0) return null;
  const wanted = new Uint8Array(entries);
  spreadBits(bits, entries, wanted);
  return wanted;
}

/** Like `evaluatePlain`, for a dictionary column. `wanted` is the result of `matchingEntries`. */
export function evaluateDictionary(
  column: DictionaryColumn,
  wanted: Uint8Array,
  from: number,
  to: number,
  out: Uint8Array,
): void {
  selectCodes(column.codes, wanted, from, to, out);
  if (column.validity !== null) andRange(out, column.validity, from, to);
}

/** Whether one row matches. For string columns where earlier predicates have left few rows. */
export function matchRow(predicate: PreparedPredicate, column: BytesColumn, row: number): boolean {
  if (!isValid(column.validity, row)) return false;
  return predicate.anyOf.some((comparison) => {
    assert(comparison.kind === 'string', "a column of strings can't be compared with a number");
    return matchString(column, comparison.needle, row) !== comparison.outside;
  });
}

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
 * have excluded all rows, else `values`. Yields after each step of the search for a pattern, which takes a few milliseconds.
 */
export function* narrow(
  asked: readonly PredicateOfColumn[],
  mode: NarrowMode,
  remaining: RemainingRows,
): Generator<undefined, Narrowed> {
  const seen: number[] = [];
  const passed: number[] = [];
  let narrowedBy: NarrowedBy = 'dictionary';
  for (const { predicate, column } of asked) {
    const before = remaining.count;
    if (before === 0) break;
    const own = mode === 'all' ? remaining : remaining.copy();
    const found = new Map<Comparison, Uint8Array>();
    for (const comparison of predicate.anyOf.filter((each) => each.kind === 'pattern')) {
      const texts = column.kind === 'dictionary' ? column.values : column;
      assert(texts.kind === 'bytes', `a column of ${texts.kind} can't be searched for a pattern`);
      const { from, to } = texts === column ? own.range : { from: 0, to: texts.length };
      const rows = rowsToSearch(comparison, texts, from, to, texts === column ? own.bits : null);
      for (const step of patternSearch(comparison.pattern).narrow(texts, rows, from, to)) yield step;
      found.set(comparison, rows);
    }
    if (narrowByColumn(predicate, column, own, found) === 'values') narrowedBy = 'values';
    seen.push(before);
    passed.push(own.count);
    if (mode === 'none') remaining.takeAway(own);
  }
  if (mode === 'all' && remaining.count > 0) narrowedBy = 'values';
  return { narrowedBy, seen, passed };
}

/** Leaves the rows whose value in the column matches. */
function narrowByColumn(
  predicate: PreparedPredicate,
  column: Column,
  remaining: RemainingRows,
  found: FoundRows,
): NarrowedBy {
  const { from, to } = remaining.range;
  const [first] = predicate.anyOf;
  if (first!.kind === 'exists') {
    const matches = remaining.room();
    matches.fill(0, from >> 3, (to + 7) >> 3);
    setRange(matches, from, to);
    if (column.validity !== null) andRange(matches, column.validity, from, to);
    if (first!.outside) flipRange(matches, from, to);
    remaining.keep(matches);
  } else if (column.kind === 'dictionary') {
    const wanted = matchingEntries(predicate, column, found);
    if (wanted === null) {
      remaining.clear();
      return 'dictionary';
    }
    const matches = remaining.room();
    evaluateDictionary(column, wanted, from, to, matches);
    remaining.keep(matches);
  } else if (column.kind === 'bytes' && remaining.count * rowsForOneLeft < to - from && found.size === 0) {
    remaining.keepEach((row) => matchRow(predicate, column, row));
  } else {
    const matches = remaining.room();
    evaluatePlain(predicate, column, from, to, matches, found);
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
