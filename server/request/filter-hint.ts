import type { FieldType, Schema } from '../../engine/index.js';
import { operatorsOf } from './operators.js';

/** Comparison signs of other query languages, and the operators that they stand for. Longer signs come first, as they begin with others. */
const signs: readonly (readonly [sign: string, operator: string, ofTime: string | undefined])[] = [
  ['>=', 'gte', 'since'],
  ['<=', 'lte', undefined],
  ['!=', 'ne', undefined],
  ['==', 'eq', undefined],
  ['>', 'gt', undefined],
  ['<', 'lt', 'until'],
  ['=', 'eq', undefined],
];

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

/** The operator that takes a date (`since`, `until`) and is closest to one that takes milliseconds; undefined if none is. */
export function dateOperatorOf(operator: string): 'since' | 'until' | undefined {
  if (operator === 'gte' || operator === 'gt') return 'since';
  return operator === 'lt' || operator === 'lte' ? 'until' : undefined;
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
  const operator = text.slice(start, equals).toLowerCase();
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
