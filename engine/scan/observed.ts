import type { Column } from '../columns/column.js';
import type { PreparedPredicate } from './predicate.js';
import type { OpenRowGroup } from './snapshot.js';

/** A predicate, and what the row groups so far have shown of it. */
export interface Observed<Prepared = PreparedPredicate> {
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
  readonly predicates: Observed[];
}

/** Lower is asked earlier: cost for each row excluded. */
export function rank(observed: Observed): number {
  // Nothing is known at first: half of the rows is as good a guess as any.
  const passed = (observed.rowsPassed + 32) / (observed.rowsSeen + 64);
  return observed.cost / (1.01 - passed);
}

/** Before any column has been seen. */
export function initialCost(predicate: PreparedPredicate): number {
  return predicate.kind === 'string' ? searchCost(predicate) : numericCost;
}

/** Once its column has been seen. */
export function costOf(predicate: PreparedPredicate, column: Column): number {
  if (column.kind === 'dictionary') return dictionaryCost;
  return predicate.kind === 'string' ? searchCost(predicate) : numericCost;
}

function searchCost(predicate: PreparedPredicate & { kind: 'string' }): number {
  return predicate.needle.op === 'like' ? 40 : 5;
}
