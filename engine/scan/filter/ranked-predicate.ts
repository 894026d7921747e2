import type { Column } from '../../columns/column.js';
import type { AskedPredicate } from './narrowing.js';
import type { PreparedAnywhere, PreparedPredicate } from './predicate.js';
import { streamedSearchOf, type StreamedSearch } from './streamed-search.js';

/** A predicate of a query, with what the row groups so far have shown: it decides which predicate is asked first. */
export interface RankedPredicate extends AskedPredicate {
  /** Of a row, in about the time that comparing a number takes. */
  cost: number;
  readonly streamed: StreamedSearch;
}

/** Nothing has been seen yet. */
export function rankedPredicate(predicate: PreparedPredicate): RankedPredicate {
  const cost = compareCost(predicate);
  return { predicate, cost, streamed: streamedSearchOf(predicate), rowsSeen: 0, rowsPassed: 0 };
}

/** A text that may stand in any of several fields, with what has been seen of each. */
export interface RankedAnywhere {
  readonly members: readonly RankedPredicate[];
  readonly isAbsent: boolean;
}

/** Nothing has been seen yet. */
export function rankedAnywhere({ members, isAbsent }: PreparedAnywhere): RankedAnywhere {
  return { members: members.map(rankedPredicate), isAbsent };
}

const dictionaryCost = 1;
/** That of a plain column of numbers. */
export const numericCost = 2;

/** The cost for each row that is excluded. The predicate with the lowest rank is asked first. */
export function rank(ranked: RankedPredicate): number {
  // Until rows have been seen, half of them are taken to pass.
  const passed = (ranked.rowsPassed + 32) / (ranked.rowsSeen + 64);
  return ranked.cost / (1.01 - passed);
}

/** What a predicate costs for a row, once its column has been seen. */
export function costOf(predicate: PreparedPredicate, column: Column): number {
  return column.kind === 'dictionary' ? dictionaryCost : compareCost(predicate);
}

/** What it costs where each value is compared. */
function compareCost({ anyOf }: PreparedPredicate): number {
  return anyOf.reduce((sum, comparison) => {
    if (comparison.kind !== 'string') return sum + numericCost;
    return sum + (comparison.needle.op === 'like' ? 40 : 5);
  }, 0);
}
