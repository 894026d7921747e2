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
