import type { KernelNeedle } from '../../kernels/needle.js';
import { searchedNeedleBytesMax } from '../../kernels/block-search.js';
import type { PreparedPredicate } from './predicate.js';
import type { OpenRowGroup } from '../../store/reading/snapshot.js';
import { lettersFoldingToAscii } from './string-search.js';
import type { ReadCounters } from '../../store/reading/read-counters.js';

/** Each needle costs a search of its own. With more needles than this, decoding the column takes less time. */
const streamedNeedlesMax = 4;

/** What the search of one predicate has come to so far. */
interface SearchSoFar {
  /** Every value that matches holds one of them. */
  readonly needles: readonly KernelNeedle[];
  streamed: number;
  /** Row groups among them that could not be ruled out. */
  undecided: number;
}

/**
 * Rules out row groups by searching a column of strings that is not in memory, without keeping it there. Where a rare string is looked
 * for, most row groups are ruled out so: that takes half the time of decoding them, and drives nothing out of memory. A string that
 * turns out to be frequent is not looked for in this way any more, since its columns have to be decoded after all.
 */
export class StreamedSearch {
  readonly #searches = new Map<PreparedPredicate, SearchSoFar>();

  /** Whether a row of the row group may match; null where the column is better read and decoded. */
  mayMatch(
    predicate: PreparedPredicate,
    open: OpenRowGroup,
    counters: ReadCounters,
  ): Promise<boolean> | null {
    let searched = this.#searches.get(predicate);
    if (searched === undefined) {
      searched = { needles: kernelNeedlesOf(predicate), streamed: 0, undecided: 0 };
      this.#searches.set(predicate, searched);
    }
    const { needles, streamed, undecided } = searched;
    if (needles.length === 0 || undecided > 1 + streamed / 8) return null;
    const answer = open.searchStreamed?.(predicate.field, needles, counters) ?? null;
    return answer === null ? null : this.#counted(searched, answer);
  }

  async #counted(searched: SearchSoFar, answer: Promise<boolean>): Promise<boolean> {
    searched.streamed++;
    const mayMatch = await answer;
    if (mayMatch) searched.undecided++;
    return mayMatch;
  }
}

/** The needles of a predicate; none where a row can match that holds none of a few known byte sequences. */
function kernelNeedlesOf({ needles }: PreparedPredicate): KernelNeedle[] {
  if (needles.length > streamedNeedlesMax) return [];
  const isSearchable = needles.every(
    ({ op, kernel, asciiFolding }) =>
      kernel.length > 0 && kernel.length <= searchedNeedleBytesMax && (op === 'exact' || asciiFolding),
  );
  if (!isSearchable) return [];
  const kernels = needles.map(({ kernel }) => kernel);
  const meetsFolding = needles.some((needle) => needle.op !== 'exact' && needle.meetsFoldingToAscii);
  return meetsFolding ? [...kernels, ...lettersFoldingToAscii] : kernels;
}
