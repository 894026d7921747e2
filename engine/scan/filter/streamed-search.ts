import type { KernelNeedle } from '../../kernels/needle.js';
import { searchedNeedleBytesMax } from '../../kernels/block-search.js';
import type { PreparedPredicate } from './predicate.js';
import type { OpenRowGroup } from '../../store/reading/snapshot.js';
import { lettersFoldingToAscii } from './string-search.js';
import type { ReadCounters } from '../../store/reading/read-counters.js';
import { settled, type Steps } from '../../store/reading/steps.js';
import { isRare, streamLimits } from './places.js';

/** The search for what one predicate looks for, over the columns of a query that are not kept in memory. */
export interface StreamedSearch {
  /** Every value that matches holds one of them. Empty where columns are to be decoded. */
  readonly needles: readonly KernelNeedle[];
  searched: number;
  /** Of the columns searched, those that could not be ruled out. */
  mayMatch: number;
}

/** Nothing has been searched yet. */
export function streamedSearchOf(predicate: PreparedPredicate): StreamedSearch {
  return { needles: kernelNeedlesOf(predicate), searched: 0, mayMatch: 0 };
}

/**
 * Whether a row of the row group may match. A column of strings that is not in memory is searched without keeping it there, where that
 * pays: most row groups are ruled out so, which takes half the time of decoding them, and drives nothing out of memory. Of a column that
 * is better read and decoded, true.
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

/** The needles of a predicate; none where a row can match that holds none of a few known byte sequences. */
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
