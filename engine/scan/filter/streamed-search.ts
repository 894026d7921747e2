import type { KernelNeedle } from '../../kernels/needle.js';
import { searchedNeedleBytesMax } from '../../kernels/block-search.js';
import type { PreparedPredicate } from '../job/predicate.js';
import type { OpenRowGroup } from '../../store/reading/snapshot.js';
import { lettersFoldingToAscii } from '../job/string-search.js';
import type { ReadCounters } from '../../store/reading/read-counters.js';

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
