import type { Column } from '../../columns/column.js';
import type { AskedPredicate } from './narrowing.js';
import type { PreparedPredicate } from './predicate.js';
import { streamedSearchOf, type StreamedSearch } from './streamed-search.js';

/** A predicate of a query, and what the row groups so far have shown of it. */
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

const dictionaryCost = 1;
/** That of a plain column of numbers. */
export const numericCost = 2;

/** Lower is asked earlier: cost for each row excluded. */
export function rank(ranked: RankedPredicate): number {
  // Nothing is known at first: half of the rows is as good a guess as any.
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
