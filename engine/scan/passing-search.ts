import type { KernelNeedle } from '../kernels/block-search.js';
import { searchedNeedleBytesMax } from '../kernels/simd/block-search.js';
import type { PreparedPredicate } from './predicate.js';
import type { OpenRowGroup, ReadCounters } from './snapshot.js';
import { lettersFoldingToAscii } from './string-search.js';

/** What has come of going through the columns of one field. */
interface Passing {
  /** One of them stands in every value that matches. */
  readonly needles: readonly KernelNeedle[];
  passed: number;
  /** Of those, row groups that nothing could be said of. */
  undecided: number;
}

/**
 * Rules out row groups by going through a column of strings where it is not in memory, without having it decoded and kept. Most
 * that a rare string is looked for in are ruled out so, in half the time and without driving out what is in memory. Where it turns
 * out not to be rare, this ends: those columns have to be decoded after all.
 */
export class PassingSearch {
  readonly #passing = new Map<PreparedPredicate, Passing>();

  /** Whether a row of the row group may match; null where there is nothing to be gained by asking. */
  mayMatch(
    predicate: PreparedPredicate,
    open: OpenRowGroup,
    counters: ReadCounters,
  ): Promise<boolean> | null {
    let passing = this.#passing.get(predicate);
    if (passing === undefined) {
      passing = { needles: needlesOf(predicate), passed: 0, undecided: 0 };
      this.#passing.set(predicate, passing);
    }
    const { needles, passed, undecided } = passing;
    if (needles.length === 0 || undecided > 1 + passed / 8) return null;
    const answer = open.passBy?.(predicate.field, needles, counters) ?? null;
    return answer === null ? null : this.#counted(passing, answer);
  }

  async #counted(passing: Passing, answer: Promise<boolean>): Promise<boolean> {
    passing.passed++;
    const mayMatch = await answer;
    if (mayMatch) passing.undecided++;
    return mayMatch;
  }
}

/** None where rows can match that hold no certain bytes, or too many of them. */
function needlesOf(predicate: PreparedPredicate): KernelNeedle[] {
  if (predicate.kind !== 'string') return [];
  const { op, kernel, asciiFolding, meetsFoldingToAscii } = predicate.needle;
  if (kernel.length === 0 || kernel.length > searchedNeedleBytesMax) return [];
  if (op === 'exact') return [kernel];
  if (!asciiFolding) return [];
  return meetsFoldingToAscii ? [kernel, ...lettersFoldingToAscii] : [kernel];
}
