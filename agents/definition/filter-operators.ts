import type { CompareOp, FieldType, Schema, StringOp } from '../../engine/index.js';

const compareOps: readonly CompareOp[] = ['eq', 'ne', 'gt', 'gte', 'lt', 'lte'];
const stringOps: readonly StringOp[] = [
  'exact',
  'like',
  'prefix',
  'suffix',
  'ne',
  'not_like',
  'not_prefix',
  'not_suffix',
  'regex',
  'not_regex',
];
/** Operators of a filter on `*`, which searches all fields of type string. */
export const anywhereOps = ['like', 'not_like', 'regex', 'not_regex'] as const;
/** The operators of times that take dates, and the comparisons that they are. */
export const windowOps = new Map<string, CompareOp>([
  ['since', 'gte'],
  ['until', 'lt'],
]);

/** The filters on fields of a type: the operators, and what their values are. */
interface Filters {
  readonly kind: 'int' | 'float' | 'string';
  readonly operators: readonly string[];
  readonly value: 'integer' | 'decimal' | 'text' | 'milliseconds' | 'truth';
}

/** The filters on fields of each type, besides those of all types. */
export const filtersOf: Readonly<Record<FieldType, Filters>> = {
  int: { kind: 'int', operators: compareOps, value: 'integer' },
  float: { kind: 'float', operators: compareOps, value: 'decimal' },
  string: { kind: 'string', operators: stringOps, value: 'text' },
  time: { kind: 'int', operators: compareOps, value: 'milliseconds' },
  bool: { kind: 'int', operators: ['eq', 'ne'], value: 'truth' },
};

/** The types of fields. */
export const fieldTypes = Object.keys(filtersOf) as readonly FieldType[];

/** The parameters whose values are filters, one of which has to hold. */
export const groupNames: readonly string[] = ['any', ...Array.from({ length: 8 }, (_, i) => `any${i + 2}`)];

/** The operators that a filter on a field of this type may have. */
export function operatorsOf(type: FieldType): readonly string[] {
  return [...(type === 'time' ? windowOps.keys() : []), ...filtersOf[type].operators, 'in', 'exists'];
}

/** Comparison signs of other query languages, and the operators that they stand for. Longer signs come first, as they begin with others. */
const signs: readonly (readonly [sign: string, operator: string, ofTime: string | undefined])[] = [
  ['>=', 'gte', 'since'],
  ['<=', 'lte', undefined],
  ['!=', 'ne', undefined],
  ['=~', 'regex', undefined],
  ['!~', 'not_regex', undefined],
  ['~', 'regex', undefined],
  ['==', 'eq', undefined],
  ['>', 'gt', undefined],
  ['<', 'lt', 'until'],
  ['=', 'eq', undefined],
  [':', 'eq', undefined],
];

/** Operators of other query languages, and those that they stand for. */
const synonyms = new Map(['re', 'rx', 'match', 'matches', 'rlike', 'similar'].map((word) => [word, 'regex']));

/** A longer hint would hide the sentence around it. */
const hintLengthMax = 200;

/**
 * Guesses the filter that was meant by a parameter that is not a valid one: `status__gte=500` for `status_gte=500` or `status>=500`.
 * Undefined if there is no likely one.
 *
 * @param key decoded, up to the first `=` of the parameter
 * @param value decoded, after that `=`; null if there is none
 */
export function likelyFilter(key: string, value: string | null, { fields }: Schema): string | undefined {
  // If the key begins with several names (`status_code` and `status`), the longest is meant.
  const [field] = fields
    .filter(({ name }) => key.startsWith(name))
    .sort((a, b) => b.name.length - a.name.length);
  if (field === undefined) return undefined;
  const text = key.slice(field.name.length) + (value === null ? '' : `=${value}`);
  const found = wordOf(text, field.type) ?? signOf(text, field.type);
  const hint = found === undefined ? undefined : `${field.name}__${found.operator}=${found.value}`;
  return hint === undefined || hint.length > hintLengthMax ? undefined : hint;
}

interface Meant {
  readonly operator: string;
  readonly value: string;
}

/** Reads an operator after a wrong separator: `_gte=500`, `.gte=500`. */
function wordOf(text: string, type: FieldType): Meant | undefined {
  const equals = text.indexOf('=');
  if (equals < 0) return undefined;
  let start = 0;
  while (start < equals && '_.:-'.includes(text[start]!)) start++;
  const word = text.slice(start, equals).toLowerCase();
  const operator = synonyms.get(word) ?? word;
  if (start === 0 || !operatorsOf(type).includes(operator)) return undefined;
  return { operator, value: text.slice(equals + 1) };
}

/** Reads a sign in place of an operator: `>=500`, `__>=500`. */
function signOf(text: string, type: FieldType): Meant | undefined {
  let start = 0;
  while (text[start] === '_' || text[start] === ' ') start++;
  const found = signs.find(([sign]) => text.startsWith(sign, start));
  if (found === undefined) return undefined;
  const [sign, ofNumbers, ofTime] = found;
  const operator = type === 'time' ? ofTime : type === 'string' && ofNumbers === 'eq' ? 'exact' : ofNumbers;
  if (operator === undefined || !operatorsOf(type).includes(operator)) return undefined;
  return { operator, value: text.slice(start + sign.length).trim() };
}
