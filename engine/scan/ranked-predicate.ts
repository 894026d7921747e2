import type { Column } from '../columns/column.js';
import type { PreparedPredicate } from './predicate.js';
import type { KernelNeedle } from '../kernels/needle.js';
import { searchedNeedleBytesMax } from '../kernels/block-search.js';
import type { OpenRowGroup } from '../store/reading/snapshot.js';
import { lettersFoldingToAscii } from './string-search.js';
import type { ReadCounters } from '../store/reading/read-counters.js';

/** A predicate of a query, with what the row groups so far have shown. It decides the order of evaluation. */
export interface RankedPredicate {
  readonly predicate: PreparedPredicate;
  /** Number of rows that it was evaluated on, and how many of them matched. */
  rowsSeen: number;
  rowsPassed: number;
  /** Estimated cost for one row, where 1 is reading a dictionary code. */
  cost: number;
  readonly streamed: StreamedSearch;
}

/** Prepares a predicate for ranking, before any row has been seen. */
export function rankedPredicate(predicate: PreparedPredicate): RankedPredicate {
  const cost = compareCost(predicate);
  return { predicate, cost, streamed: streamedSearchOf(predicate), rowsSeen: 0, rowsPassed: 0 };
}

const dictionaryCost = 1;
const numericCost = 2;

/** The cost per excluded row. Predicates are evaluated in ascending order of rank. */
export function rank(ranked: RankedPredicate): number {
  // A prior of 32 passed out of 64 rows: half of the rows are assumed to pass until others have been seen.
  const passed = (ranked.rowsPassed + 32) / (ranked.rowsSeen + 64);
  return ranked.cost / (1.01 - passed);
}

/** The cost of a predicate for one row, once its column has been seen. */
export function costOf(predicate: PreparedPredicate, column: Column): number {
  return column.kind === 'dictionary' ? dictionaryCost : compareCost(predicate);
}

/** The cost where each value is compared. */
function compareCost({ anyOf }: PreparedPredicate): number {
  return anyOf.reduce((sum, comparison) => {
    if (comparison.kind === 'exists') return sum + dictionaryCost;
    if (comparison.kind === 'pattern') return sum + (comparison.needles.length > 0 ? 60 : 400);
    if (comparison.kind !== 'string') return sum + numericCost;
    return sum + (comparison.needle.op === 'like' ? 40 : 5);
  }, 0);
}

/** The search for the needles of one predicate in columns that are not kept in memory, over a whole query. */
export interface StreamedSearch {
  /** Every matching value contains one of them. Empty where columns have to be decoded. */
  readonly needles: readonly KernelNeedle[];
  searched: number;
  /** How many of the searched columns could not be ruled out. */
  mayMatch: number;
}

/** The most needles. Each needle is searched for separately; with more of them, decoding the column takes less time. */
const needlesMax = 4;
/** Where more than one in this many columns may have a match, too many columns have to be decoded after all. */
const columnsPerMatch = 8;

/**
 * Whether a text is rare enough to search a further column for it without keeping the column. One match alone does not make a text
 * frequent.
 */
export function isRare({ searched, mayMatch }: Pick<StreamedSearch, 'searched' | 'mayMatch'>): boolean {
  return mayMatch <= 1 + searched / columnsPerMatch;
}

/** Prepares the search, before any column has been searched. */
export function streamedSearchOf(predicate: PreparedPredicate): StreamedSearch {
  return { needles: kernelNeedlesOf(predicate), searched: 0, mayMatch: 0 };
}

/**
 * Whether a row of the row group may match. Searches a string column that is not in memory without keeping it, where that pays: most row
 * groups are ruled out that way, which takes half the time of decoding the column and evicts nothing. True where the column should be
 * decoded instead.
 */
export async function mayMatchStreamed(
  search: StreamedSearch,
  field: number,
  open: OpenRowGroup,
  counters: ReadCounters,
): Promise<boolean> {
  if (search.needles.length === 0 || !isRare(search)) return true;
  const mayMatch = (await open.searchStreamed?.(field, search.needles, counters)) ?? null;
  if (mayMatch === null) return true;
  search.searched++;
  if (mayMatch) search.mayMatch++;
  return mayMatch;
}

/** The needles of a predicate; empty where a row can match without containing one of a few known byte sequences. */
function kernelNeedlesOf({ needles }: PreparedPredicate): KernelNeedle[] {
  if (needles.length > needlesMax) return [];
  const isSearchable = needles.every(
    ({ op, kernel, asciiFolding }) =>
      kernel.length > 0 && kernel.length <= searchedNeedleBytesMax && (op === 'exact' || asciiFolding),
  );
  if (!isSearchable) return [];
  const kernels = needles.map(({ kernel }) => kernel);
  const meetsFolding = needles.some((needle) => needle.op !== 'exact' && needle.meetsFoldingToAscii);
  return meetsFolding ? [...kernels, ...lettersFoldingToAscii] : kernels;
}
