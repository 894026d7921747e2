import type { Position } from '../../terms/cursor.js';
import type { LineFormat } from '../../terms/line-format.js';

export type CompareOp = 'eq' | 'ne' | 'gt' | 'gte' | 'lt' | 'lte';
/** How a string is compared with a text. All but `exact` ignore case. */
export type NeedleOp = 'exact' | 'like' | 'prefix' | 'suffix';
/** `ne` is the opposite of `exact`, and each `not_` operator the opposite of the one that it names. */
export type StringOp = NeedleOp | 'ne' | 'not_like' | 'not_prefix' | 'not_suffix';

/**
 * One filter on a field, already typed. `field` is a position in the schema. `int` serves `int`, `time` and `bool` fields
 * (`since` is `gte`, `until` is `lt`, both in milliseconds; false is 0, true 1). The members of a `set` are filters `eq` or `exact` on its
 * field; it matches where one of them does. Null matches none of them.
 */
export type FieldPredicate =
  | { readonly kind: 'int'; readonly field: number; readonly op: CompareOp; readonly value: bigint }
  | { readonly kind: 'float'; readonly field: number; readonly op: CompareOp; readonly value: number }
  | { readonly kind: 'string'; readonly field: number; readonly op: StringOp; readonly value: string }
  | { readonly kind: 'set'; readonly field: number; readonly members: readonly FieldPredicate[] };

/**
 * A text that is looked for in all fields of type string, upper and lower case alike: a record matches where one of them holds it; with
 * `isAbsent`, where none does.
 */
export interface AnywherePredicate {
  readonly kind: 'anywhere';
  readonly isAbsent: boolean;
  readonly value: string;
}

/** One filter. */
export type Predicate = FieldPredicate | AnywherePredicate;

/** How an answer is written, and which fields it has. */
export interface AnswerForm {
  readonly format: LineFormat;
  /** Their places in the schema, in the order of the answer, behind the cursor; null for all of them, in the order of the schema. */
  readonly fields: readonly number[] | null;
}

/**
 * The answer is ascending by position, always. With `after`: the first `limit` matches beyond it (and before
 * `before`, if given). Without: the last `limit` matches (before `before`, if given).
 */
export interface Query {
  readonly limit: number;
  readonly after?: Position | undefined;
  readonly before?: Position | undefined;
  readonly predicates: readonly Predicate[];
  /** JSON Lines with all fields where it is absent. */
  readonly form?: AnswerForm | undefined;
}

/** What a query cost. Filled while the answer is read; final once it has ended. */
export interface ScanStats {
  /** Runs within the cursor bounds. */
  runs: number;
  /** Row groups within the cursor bounds, and what became of them. */
  rowGroups: number;
  rowGroupsPrunedByTime: number;
  rowGroupsPrunedByZone: number;
  rowGroupsPrunedByValue: number;
  rowGroupsPrunedByGram: number;
  rowGroupsPrunedByDictionary: number;
  rowGroupsScanned: number;
  rowsScanned: number;
  rowsReturned: number;
  bytesRead: number;
  columnsDecoded: number;
  columnsCached: number;
  gramPiecesRead: number;
  valuePiecesRead: number;
  /** Time to find the rows, and time to write them out (without waiting for the client). */
  selectMs: number;
  writeMs: number;
}
