/** How an integer or a float is compared. */
export type CompareOp = 'eq' | 'ne' | 'gt' | 'gte' | 'lt' | 'lte';
/** How a string is compared with a text. All operators but `exact` ignore case. */
export type NeedleOp = 'exact' | 'like' | 'prefix' | 'suffix';
/** `ne` is the negation of `exact`, and each `not_` operator the negation of the operator that it names. */
export type StringOp = NeedleOp | 'ne' | 'not_like' | 'not_prefix' | 'not_suffix';

/**
 * A typed filter on a field. `field` is an index into the schema. Kind `int` is for `int`, `time` (in milliseconds) and `bool` fields
 * (false is 0, true 1); of times, `since` is `gte` and `until` is `lt`. The members of a `set` are `eq` or `exact` filters on its field,
 * and it matches if one of them does. Null matches no filter.
 */
export type FieldPredicate =
  | { readonly kind: 'int'; readonly field: number; readonly op: CompareOp; readonly value: bigint }
  | { readonly kind: 'float'; readonly field: number; readonly op: CompareOp; readonly value: number }
  | { readonly kind: 'string'; readonly field: number; readonly op: StringOp; readonly value: string }
  | { readonly kind: 'set'; readonly field: number; readonly members: readonly FieldPredicate[] };

/**
 * A text that is searched in all fields of type string, ignoring case. A record matches if one of its fields contains the text; with
 * `isAbsent`, if none does.
 */
export interface AnywherePredicate {
  readonly kind: 'anywhere';
  readonly isAbsent: boolean;
  readonly value: string;
}

/** One filter of a query. */
export type Predicate = FieldPredicate | AnywherePredicate;
