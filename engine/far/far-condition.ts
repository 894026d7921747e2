import { columnOfField, floatLiteral, intLiteral, quotedName, textLiteral } from './far-sql.js';
import { conversionOf, type Conversion } from '../columns/convert-column.js';
import { assertNever } from '../core/errors.js';
import type { Field, Schema } from '../core/schema.js';
import type { Needle } from '../scan/string-search.js';
import {
  allMembers,
  type Comparison,
  type PatternComparison,
  type PreparedPredicate,
  type PreparedPredicates,
  type StringComparison,
} from '../scan/predicate.js';

/** Maximum length of a condition in characters, because servers limit the size of a statement. A longer condition is left out. */
const conditionLengthMax = 60_000;

/** U+017F and U+212A as escaped UTF-8: the only characters beyond ASCII that fold to an ASCII letter. */
const foldingToAscii = ['\\xC5\\xBF', '\\xE2\\x84\\xAA'];

const nothing = '0';
const everything = '1';

/**
 * A ClickHouse SQL condition that holds for every row that matches all predicates, for rows that are stored with the fields of `stored`. It
 * may hold for further rows: the rows that it selects are filtered again here, so that the answer does not depend on how a server folds
 * case or compares. Null where there are no predicates.
 */
export function farCondition({ clauses }: PreparedPredicates, schema: Schema, stored: Schema): string | null {
  const conditions = clauses.map(({ members, absent }) =>
    anyOf([
      ...members.map((member) => fieldCondition(member, schema, stored)),
      ...absent.map((each) => allOf(each.map((member) => withoutSure(member, schema, stored)))),
    ]),
  );
  return conditions.length === 0 ? null : conditions.join(' AND ');
}

/** Whether `farCondition` holds for exactly the matching rows, so that a server may count them. */
export function isExactCondition({ clauses }: PreparedPredicates, schema: Schema, stored: Schema): boolean {
  return clauses.flatMap(allMembers).every((predicate) => {
    const kept = storedField(predicate.field, schema, stored);
    if (kept === null) return true;
    const isExact = kept.conversion === 'none' && predicate.anyOf.every(isExactComparison);
    return isExact && comparisonsOf(predicate, kept.column).length <= conditionLengthMax;
  });
}

/** A needle with the letters k or s also matches texts with a character beyond ASCII that folds to one of them. */
function isExactComparison(comparison: Comparison): boolean {
  if (comparison.kind === 'pattern') return false;
  if (comparison.kind !== 'string') return true;
  const { op, folded, asciiFolding, meetsFoldingToAscii } = comparison.needle;
  return op === 'exact' || folded.length === 0 || (asciiFolding && !meetsFoldingToAscii);
}

function comparisonsOf({ anyOf: comparisons }: PreparedPredicate, column: string): string {
  return anyOf(comparisons.map((comparison) => conditionOf(comparison, column)));
}

/** Whether a predicate asks for whole string values. Few rows match such a predicate. */
export function findsWholeTexts({ clauses }: PreparedPredicates): boolean {
  const isWhole = (comparison: Comparison): boolean =>
    comparison.kind === 'string' && comparison.needle.op === 'exact' && !comparison.outside;
  return clauses.some(
    ({ members, absent }) => absent.length === 0 && members.every(({ anyOf }) => anyOf.every(isWhole)),
  );
}

function allOf(conditions: readonly string[]): string {
  return joined(conditions, 'AND') ?? everything;
}

function anyOf(conditions: readonly string[]): string {
  return joined(conditions, 'OR') ?? nothing;
}

/** Every condition is so written that it can be joined to others. */
function joined(conditions: readonly string[], operator: 'AND' | 'OR'): string | undefined {
  return conditions.length < 2 ? conditions[0] : `(${conditions.join(` ${operator} `)})`;
}

/** How rows have the values of a field. */
export interface StoredField {
  /** The field that they were stored with, and its column in a table. */
  readonly field: Field;
  readonly column: string;
  readonly conversion: Exclude<Conversion, 'toNull'>;
}

/** How rows that are stored with the fields of `stored` have a field of `schema`. Null where they have no values for it. */
export function storedField(field: number, schema: Schema, stored: Schema): StoredField | null {
  const { name, type } = schema.fields[field]!;
  const kept = stored.fields.find((other) => other.name === name);
  const conversion = kept === undefined ? 'toNull' : conversionOf(kept.type, type);
  if (kept === undefined || conversion === 'toNull') return null;
  return { field: kept, column: quotedName(columnOfField(kept)), conversion };
}

function fieldCondition(predicate: PreparedPredicate, schema: Schema, stored: Schema): string {
  const kept = storedField(predicate.field, schema, stored);
  const [first] = predicate.anyOf;
  const matchesNull = first?.kind === 'exists' && first.outside;
  if (kept === null) return matchesNull ? everything : nothing;
  const { column, conversion } = kept;
  // A value that can't be converted becomes null.
  if (conversion !== 'none') return matchesNull ? everything : `isNotNull(${column})`;
  const condition = comparisonsOf(predicate, column);
  return condition.length > conditionLengthMax ? `isNotNull(${column})` : condition;
}

/** A condition that holds unless a value of the field certainly contains the text. */
function withoutSure({ field, anyOf: [only] }: PreparedPredicate, schema: Schema, stored: Schema): string {
  const kept = storedField(field, schema, stored);
  if (kept?.conversion !== 'none' || only?.kind !== 'string') return everything;
  const without = textCondition({ ...only, outside: true }, kept.column);
  // Every value contains the empty text; only null does not.
  const condition = without === nothing ? `isNull(${kept.column})` : `ifNull(${without}, 1)`;
  return condition.length > conditionLengthMax ? everything : condition;
}

function conditionOf(comparison: Comparison, column: string): string {
  switch (comparison.kind) {
    case 'int':
      return rangeCondition(comparison, column, intLiteral);
    case 'float':
      return rangeCondition(comparison, column, floatLiteral);
    case 'string':
      return textCondition(comparison, column);
    case 'pattern':
      return patternCondition(comparison, column);
    case 'exists':
      return comparison.outside ? `isNull(${column})` : `isNotNull(${column})`;
    default:
      return assertNever(comparison);
  }
}

function rangeCondition<T extends bigint | number>(
  { low, high, outside }: { readonly low: T; readonly high: T; readonly outside: boolean },
  column: string,
  literal: (value: T) => string,
): string {
  if (low > high) return outside ? `isNotNull(${column})` : nothing;
  if (low === high) return `${column} ${outside ? '!=' : '='} ${literal(low)}`;
  if (outside) return `(${column} < ${literal(low)} OR ${column} > ${literal(high)})`;
  return `(${column} >= ${literal(low)} AND ${column} <= ${literal(high)})`;
}

function textCondition({ needle, outside }: StringComparison, column: string): string {
  const { op, raw, folded, asciiFolding, meetsFoldingToAscii } = needle;
  if (op === 'exact') return `${column} ${outside ? '!=' : '='} ${textLiteral(raw)}`;
  if (folded.length === 0) return outside ? nothing : `isNotNull(${column})`;
  if (outside) {
    // The condition may only exclude rows that certainly match. These are the ones that match after folding ASCII letters, or, where the
    // needle has other letters with case, those that contain the text as it was given.
    return asciiFolding ? `NOT ${holds(op, column, folded, true)}` : `NOT ${holds(op, column, raw, false)}`;
  }
  if (asciiFolding) return orFoldingToAscii(holds(op, column, folded, true), column, meetsFoldingToAscii);
  const part = longestAscii(needle);
  if (part.length === 0) return `isNotNull(${column})`;
  const meets = part.includes(0x6b) || part.includes(0x73);
  return orFoldingToAscii(holds('like', column, part, true), column, meets);
}

/** The texts that a match must contain are asked for: the server's own patterns may differ from ours, and the rows are filtered again. */
function patternCondition({ needles, outside }: PatternComparison, column: string): string {
  if (outside || needles.length === 0) return `isNotNull(${column})`;
  return anyOf(needles.map((needle) => textCondition({ kind: 'string', needle, outside }, column)));
}

/**
 * A condition that a value contains a text at the place that the operator says. With `folds`, the ASCII letters of the value are
 * converted to lower case first.
 */
function holds(op: Needle['op'], column: string, text: Uint8Array, folds: boolean): string {
  const literal = textLiteral(text);
  const value = folds ? `lower(${column})` : column;
  switch (op) {
    case 'like':
      return folds && text.every((byte) => byte < 0x80)
        ? `(positionCaseInsensitive(${column}, ${literal}) > 0)`
        : `(position(${value}, ${literal}) > 0)`;
    case 'prefix':
      return `startsWith(${value}, ${literal})`;
    case 'suffix':
      return `endsWith(${value}, ${literal})`;
    case 'exact':
      return `(${value} = ${literal})`;
    default:
      return assertNever(op);
  }
}

function orFoldingToAscii(condition: string, column: string, meets: boolean): string {
  if (!meets) return condition;
  const others = foldingToAscii.map((character) => `position(${column}, '${character}') > 0`);
  return `(${[condition, ...others].join(' OR ')})`;
}

/** The longest run of ASCII characters in a needle. */
function longestAscii({ folded }: Needle): Uint8Array {
  let longest = folded.subarray(0, 0);
  let start = 0;
  for (let i = 0; i <= folded.length; i++) {
    if (i < folded.length && folded[i]! < 0x80) continue;
    if (i - start > longest.length) longest = folded.subarray(start, i);
    start = i + 1;
  }
  return longest;
}
