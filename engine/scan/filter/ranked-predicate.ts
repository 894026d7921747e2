import type { Column } from '../../columns/column.js';
import type { PreparedAnywhere, PreparedPredicate } from '../job/predicate.js';
import { streamedSearchOf, type StreamedSearch } from './streamed-search.js';

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

/** A text that is searched in several fields, with what has been seen of each. */
export interface RankedAnywhere {
  readonly members: readonly RankedPredicate[];
  readonly isAbsent: boolean;
}

/** Prepares a text in any field for ranking, before any row has been seen. */
export function rankedAnywhere({ members, isAbsent }: PreparedAnywhere): RankedAnywhere {
  return { members: members.map(rankedPredicate), isAbsent };
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
    if (comparison.kind !== 'string') return sum + numericCost;
    return sum + (comparison.needle.op === 'like' ? 40 : 5);
  }, 0);
}
