import { columnOfField, floatLiteral, intLiteral, quotedName, textLiteral } from '../../store/far/far-sql.js';
import { conversionOf } from '../../columns/convert-column.js';
import { assertNever } from '../../terms/assert.js';
import type { Schema } from '../../terms/schema.js';
import type { Needle } from '../filter/needle.js';
import type {
  Comparison,
  PreparedPredicate,
  PreparedPredicates,
  StringComparison,
} from '../filter/predicate.js';

/** A longer condition is left out: servers read statements up to a size. */
const conditionLengthMax = 60_000;

/** U+017F and U+212A, the only characters beyond ASCII that fold to a letter of ASCII. */
const foldingToAscii = ['\\xC5\\xBF', '\\xE2\\x84\\xAA'];

const nothing = '0';

/**
 * SQL that holds for every row that matches all predicates, where rows are stored with the fields of `stored`. It may hold for more: what it
 * lets pass is compared here again, so that the answer does not depend on how a server folds or compares. Null where it has nothing to say.
 */
export function farCondition(
  { onField, anywhere }: PreparedPredicates,
  schema: Schema,
  stored: Schema,
): string | null {
  const conditions = [
    ...onField.map((predicate) => fieldCondition(predicate, schema, stored)),
    ...anywhere.map(({ members, isAbsent }) =>
      isAbsent
        ? allOf(members.map((member) => withoutSure(member, schema, stored)))
        : anyOf(members.map((member) => fieldCondition(member, schema, stored))),
    ),
  ];
  return conditions.length === 0 ? null : conditions.join(' AND ');
}

/** Whether `farCondition` holds for the rows that match and for no others, so that a server may count them. */
export function isExactCondition(
  { onField, anywhere }: PreparedPredicates,
  schema: Schema,
  stored: Schema,
): boolean {
  const predicates = [...onField, ...anywhere.flatMap(({ members }) => members)];
  return predicates.every((predicate) => {
    const kept = keptField(predicate.field, schema, stored);
    if (kept === null) return true;
    const isExact = kept.isSame && predicate.anyOf.every(isExactComparison);
    return isExact && comparisonsOf(predicate, kept.column).length <= conditionLengthMax;
  });
}

/** A needle with the letters k or s is also held by texts with characters beyond ASCII that fold to these. */
function isExactComparison(comparison: Comparison): boolean {
  if (comparison.kind !== 'string') return true;
  const { op, folded, asciiFolding, meetsFoldingToAscii } = comparison.needle;
  return op === 'exact' || folded.length === 0 || (asciiFolding && !meetsFoldingToAscii);
}

function comparisonsOf({ anyOf: comparisons }: PreparedPredicate, column: string): string {
  return anyOf(comparisons.map((comparison) => conditionOf(comparison, column)));
}

/** Whether there is anything that rows have to match. */
export function areFiltered({ onField, anywhere }: PreparedPredicates): boolean {
  return onField.length + anywhere.length > 0;
}

/** Whether filters on whole texts are asked, so that much need not be read to find little. */
export function findsWholeTexts({ onField }: PreparedPredicates): boolean {
  const isWhole = (comparison: Comparison): boolean =>
    comparison.kind === 'string' && comparison.needle.op === 'exact' && !comparison.outside;
  return onField.some(({ anyOf: comparisons }) => comparisons.every(isWhole));
}

/** The fields that predicates look at. */
export function fieldsOf({ onField, anywhere }: PreparedPredicates): number[] {
  return [...onField, ...anywhere.flatMap(({ members }) => members)].map(({ field }) => field);
}

function allOf(conditions: readonly string[]): string {
  return conditions.length === 0 ? '1' : `(${conditions.join(' AND ')})`;
}

function anyOf(conditions: readonly string[]): string {
  return conditions.length === 0 ? nothing : `(${conditions.join(' OR ')})`;
}

/** A field as rows are stored, and how it is read. */
function keptField(
  field: number,
  schema: Schema,
  stored: Schema,
): { readonly column: string; readonly isSame: boolean } | null {
  const { name, type } = schema.fields[field]!;
  const kept = stored.fields.find((other) => other.name === name);
  const conversion = kept === undefined ? 'toNull' : conversionOf(kept.type, type);
  if (kept === undefined || conversion === 'toNull') return null;
  return { column: quotedName(columnOfField(kept)), isSame: conversion === 'none' };
}

function fieldCondition(predicate: PreparedPredicate, schema: Schema, stored: Schema): string {
  const kept = keptField(predicate.field, schema, stored);
  // Null matches nothing.
  if (kept === null) return nothing;
  const { column, isSame } = kept;
  if (!isSame) return `isNotNull(${column})`;
  const condition = comparisonsOf(predicate, column);
  return condition.length > conditionLengthMax ? `isNotNull(${column})` : condition;
}

/** Holds where it is not sure that a value of the field holds the text. */
function withoutSure({ field, anyOf: [only] }: PreparedPredicate, schema: Schema, stored: Schema): string {
  const kept = keptField(field, schema, stored);
  if (kept?.isSame !== true || only?.kind !== 'string') return '1';
  const without = textCondition({ ...only, outside: true }, kept.column);
  // Every value holds the empty text, and null does not.
  const condition = without === nothing ? `isNull(${kept.column})` : `ifNull(${without}, 1)`;
  return condition.length > conditionLengthMax ? '1' : condition;
}

function conditionOf(comparison: Comparison, column: string): string {
  switch (comparison.kind) {
    case 'int':
      return rangeCondition(comparison, column, intLiteral);
    case 'float':
      return rangeCondition(comparison, column, floatLiteral);
    case 'string':
      return textCondition(comparison, column);
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
    // What is left out matches for sure: with the letters of ASCII folded, or as it was given.
    return asciiFolding ? `NOT ${holds(op, column, folded, true)}` : `NOT ${holds(op, column, raw, false)}`;
  }
  if (asciiFolding) return orFoldingToAscii(holds(op, column, folded, true), column, meetsFoldingToAscii);
  const part = longestAscii(needle);
  if (part.length === 0) return `isNotNull(${column})`;
  const meets = part.includes(0x6b) || part.includes(0x73);
  return orFoldingToAscii(holds('like', column, part, true), column, meets);
}

/** Whether a value holds a text at the place that the operator says; with `folds`, after letters of ASCII were made small ones. */
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

/** The longest run of ASCII in a text whose other characters have case variants. */
function longestAscii({ points }: Needle): Uint8Array {
  let longest = { start: 0, length: 0 };
  let start = 0;
  for (let i = 0; i <= points.length; i++) {
    if (i < points.length && points[i]! < 0x80) continue;
    if (i - start > longest.length) longest = { start, length: i - start };
    start = i + 1;
  }
  return Uint8Array.from(points.subarray(longest.start, longest.start + longest.length));
}
