import type { KernelNeedle } from '../../kernels/needle.js';
import { searchedNeedleBytesMax } from '../../kernels/block-search.js';
import type { PreparedPredicate } from './predicate.js';
import type { OpenRowGroup } from '../../store/reading/snapshot.js';
import { lettersFoldingToAscii } from './string-search.js';
import type { ReadCounters } from '../../store/reading/read-counters.js';
import { settled, type Steps } from '../../store/reading/steps.js';
import { isRare, streamLimits } from './places.js';

/** The search for the needles of one predicate in columns that are not kept in memory, over a whole query. */
export interface StreamedSearch {
  /** Every matching value contains one of them. Empty where columns have to be decoded. */
  readonly needles: readonly KernelNeedle[];
  searched: number;
  /** How many of the searched columns could not be ruled out. */
  mayMatch: number;
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
export function* mayMatchStreamed(
  search: StreamedSearch,
  field: number,
  open: OpenRowGroup,
  counters: ReadCounters,
): Steps<never, boolean> {
  if (search.needles.length === 0 || !isRare(search, streamLimits)) return true;
  const searching = open.searchStreamed?.(field, search.needles, counters) ?? null;
  if (searching === null) return true;
  search.searched++;
  const mayMatch = yield* settled(searching);
  if (mayMatch) search.mayMatch++;
  return mayMatch;
}

/** The needles of a predicate; empty where a row can match without containing one of a few known byte sequences. */
function kernelNeedlesOf({ needles }: PreparedPredicate): KernelNeedle[] {
  if (needles.length > streamLimits.needles) return [];
  const isSearchable = needles.every(
    ({ op, kernel, asciiFolding }) =>
      kernel.length > 0 && kernel.length <= searchedNeedleBytesMax && (op === 'exact' || asciiFolding),
  );
  if (!isSearchable) return [];
  const kernels = needles.map(({ kernel }) => kernel);
  const meetsFolding = needles.some((needle) => needle.op !== 'exact' && needle.meetsFoldingToAscii);
  return meetsFolding ? [...kernels, ...lettersFoldingToAscii] : kernels;
}
