import type { FieldType, Schema } from '../../engine/index.js';
import { operatorsOf } from './operators.js';

/** What people write between a field and a value who know other query languages, the longer signs first. */
const signs: readonly (readonly [sign: string, operator: string, ofTime: string | undefined])[] = [
  ['>=', 'gte', 'since'],
  ['<=', 'lte', undefined],
  ['!=', 'ne', undefined],
  ['==', 'eq', undefined],
  ['>', 'gt', undefined],
  ['<', 'lt', 'until'],
  ['=', 'eq', undefined],
];

/** Longer hints than this would hide the sentence. */
const hintLengthMax = 200;

/**
 * The filter that was most likely meant by a parameter that is none, such as `status__gte=500` by `status_gte=500` or `status>=500`;
 * undefined where nothing is likely.
 *
 * @param key decoded, up to the first `=` of the parameter
 * @param value decoded, behind it; null where there is no `=`
 */
export function likelyFilter(key: string, value: string | null, { fields }: Schema): string | undefined {
  // Of `status_code` and `status` the longer one is meant.
  const [field] = fields
    .filter(({ name }) => key.startsWith(name))
    .sort((a, b) => b.name.length - a.name.length);
  if (field === undefined) return undefined;
  const text = key.slice(field.name.length) + (value === null ? '' : `=${value}`);
  const found = wordOf(text, field.type) ?? signOf(text, field.type);
  const hint = found === undefined ? undefined : `${field.name}__${found.operator}=${found.value}`;
  return hint === undefined || hint.length > hintLengthMax ? undefined : hint;
}

/** The filter by a date that was meant by one that takes milliseconds; undefined for those that have none. */
export function dateOperatorOf(operator: string): 'since' | 'until' | undefined {
  if (operator === 'gte' || operator === 'gt') return 'since';
  return operator === 'lt' || operator === 'lte' ? 'until' : undefined;
}

interface Meant {
  readonly operator: string;
  readonly value: string;
}

/** `_gte=500`, `.gte=500`: an operator behind another separator. */
function wordOf(text: string, type: FieldType): Meant | undefined {
  const equals = text.indexOf('=');
  if (equals < 0) return undefined;
  let start = 0;
  while (start < equals && '_.:-'.includes(text[start]!)) start++;
  const operator = text.slice(start, equals).toLowerCase();
  if (start === 0 || !operatorsOf(type).includes(operator)) return undefined;
  return { operator, value: text.slice(equals + 1) };
}

/** `>=500`, `__>=500`: a sign instead of an operator. */
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
