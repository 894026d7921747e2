import type { Column } from '../../columns/column.js';
import type { Comparison, PreparedPredicate } from './predicate.js';
import type { OpenRowGroup } from '../../store/reading/snapshot.js';

/** A predicate, and what the row groups so far have shown of it. */
export interface RankedPredicate<Prepared = PreparedPredicate> {
  readonly predicate: Prepared;
  /** Cost of a row in about the time that a numeric compare takes. */
  cost: number;
  rowsSeen: number;
  rowsPassed: number;
}

const dictionaryCost = 1;
/** That of a plain column of numbers. */
export const numericCost = 2;

/** A row group whose columns have to be read to know which rows match. */
export interface Undecided {
  readonly kind: 'undecided';
  readonly open: OpenRowGroup;
  readonly predicates: RankedPredicate[];
}

/** Lower is asked earlier: cost for each row excluded. */
export function rank(ranked: RankedPredicate): number {
  // Nothing is known at first: half of the rows is as good a guess as any.
  const passed = (ranked.rowsPassed + 32) / (ranked.rowsSeen + 64);
  return ranked.cost / (1.01 - passed);
}

/** Before any column has been seen. */
export function initialCost({ anyOf }: PreparedPredicate): number {
  return anyOf.reduce((sum, comparison) => sum + compareCost(comparison), 0);
}

/** Once its column has been seen. */
export function costOf(predicate: PreparedPredicate, column: Column): number {
  return column.kind === 'dictionary' ? dictionaryCost : initialCost(predicate);
}

function compareCost(comparison: Comparison): number {
  if (comparison.kind !== 'string') return numericCost;
  return comparison.needle.op === 'like' ? 40 : 5;
}
