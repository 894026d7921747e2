import {
  type CompareOp,
  type FieldType,
  type StringOp,
  type Schema,
  type AnywherePredicate,
  type Field,
  type FieldPredicate,
  int64Max,
  int64Min,
} from '../../engine/index.js';
import { badParameter, type ProblemError } from './problem.js';
import { didYouMean, listNames } from './suggestion.js';
import { parseTimeValue, type TimeContext } from './time-value.js';

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
];
/** Operators of a filter on `*`, which searches all fields of type string. */
export const anywhereOps = ['like', 'not_like'] as const;
/** The operators of times that take dates, and the comparisons that they are. */
const windowOps = new Map<string, CompareOp>([
  ['since', 'gte'],
  ['until', 'lt'],
]);

/** Parses the value of a filter `parameter`. Throws a `ProblemError`. */
type ParseValue<T> = (parameter: string, text: string, context: TimeContext) => T;

/** The filters on fields of a type: the operators, and how their values are parsed. */
type Filters =
  | { readonly kind: 'int'; readonly operators: readonly CompareOp[]; readonly parse: ParseValue<bigint> }
  | { readonly kind: 'float'; readonly operators: readonly CompareOp[]; readonly parse: ParseValue<number> }
  | { readonly kind: 'string'; readonly operators: readonly StringOp[]; readonly parse: ParseValue<string> };

const filtersOf: Readonly<Record<FieldType, Filters>> = {
  int: { kind: 'int', operators: compareOps, parse: parseInt64 },
  float: { kind: 'float', operators: compareOps, parse: parseDouble },
  string: { kind: 'string', operators: stringOps, parse: (_, text) => text },
  time: { kind: 'int', operators: compareOps, parse: parseTimeNumber },
  bool: { kind: 'int', operators: ['eq', 'ne'], parse: parseBool },
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
  ['==', 'eq', undefined],
  ['>', 'gt', undefined],
  ['<', 'lt', 'until'],
  ['=', 'eq', undefined],
  [':', 'eq', undefined],
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
function dateOperatorOf(operator: string): 'since' | 'until' | undefined {
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

/** A filter with this in place of a field's name searches all fields of type string. */
export const anyField = '*';

/**
 * Parses one filter from its decoded key `<field>__<operator>` (the operator is what follows the last `__`) and its decoded value.
 * A filter `in` becomes a set with one member, which `joinSets` joins to others. Throws a `ProblemError` (400).
 */
export function parsePredicate(key: string, value: string, schema: Schema, context: TimeContext): Filter {
  const separator = key.lastIndexOf('__');
  const name = key.slice(0, separator);
  const operator = key.slice(separator + 2);
  const field = schema.fields.findIndex((candidate) => candidate.name === name);
  if (field < 0 && name === anyField) return parseAnywhere(key, operator, value, schema);
  if (field < 0) throw unknownField(key, name, schema);
  const { type } = schema.fields[field]!;
  if (operator === 'exists') return { kind: 'exists', field, value: parseBool(key, value) === 1n };
  if (operator !== 'in') return parseCompare(key, operator, value, field, schema, context);
  const member = parseCompare(key, filtersOf[type].operators[0]!, value, field, schema, context);
  return { kind: 'set', field, members: [member] };
}

function parseAnywhere(key: string, operator: string, value: string, { fields }: Schema): AnywherePredicate {
  if (!anywhereOps.some((op) => op === operator))
    throw badParameter(
      key,
      `${JSON.stringify(key)} searches all string fields, for which the operators are ${listNames(anywhereOps)}`,
    );
  if (!fields.some(({ type }) => type === 'string'))
    throw badParameter(key, `${JSON.stringify(key)} searches fields of type string, but the agent has none`);
  return { kind: 'anywhere', isAbsent: operator === 'not_like', value };
}

/** A filter that may be a member of a group. */
export type Filter = FieldPredicate | AnywherePredicate;

/** Joins all `in` filters on the same field into one set, which matches if any of its members does. */
export function joinSets(predicates: readonly Filter[]): Filter[] {
  const members = new Map<number, FieldPredicate[]>();
  const joined: Filter[] = [];
  for (const predicate of predicates) {
    const known = predicate.kind === 'set' ? members.get(predicate.field) : undefined;
    if (predicate.kind !== 'set') joined.push(predicate);
    else if (known !== undefined) known.push(...predicate.members);
    else {
      const own = [...predicate.members];
      members.set(predicate.field, own);
      joined.push({ ...predicate, members: own });
    }
  }
  return joined;
}

function parseCompare(
  key: string,
  operator: string,
  value: string,
  field: number,
  schema: Schema,
  context: TimeContext,
): FieldPredicate {
  const { type } = schema.fields[field]!;
  const ofDate = type === 'time' ? windowOps.get(operator) : undefined;
  if (ofDate !== undefined) return { kind: 'int', field, op: ofDate, value: parseTime(key, value, context) };
  const { kind, operators, parse } = filtersOf[type];
  const op = operators.find((candidate) => candidate === operator);
  if (op === undefined) throw wrongOperator(key, operator, value, schema.fields[field]!);
  return { kind, field, op, value: parse(key, value, context) } as FieldPredicate;
}

function parseBool(parameter: string, text: string): bigint {
  if (text !== 'true' && text !== 'false') throw badValue(parameter, text, 'true or false');
  return text === 'true' ? 1n : 0n;
}

function parseInt64(parameter: string, text: string): bigint {
  if (!/^-?\d+$/.test(text)) {
    throw badValue(parameter, text, 'a decimal integer');
  }
  const value = BigInt(text);
  if (value > int64Max || value < int64Min) {
    throw badParameter(
      parameter,
      `the value of "${parameter}" is out of the range of 64-bit integers: ${text}`,
    );
  }
  return value;
}

function parseDouble(parameter: string, text: string): number {
  const match = /^-?(\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?$/.exec(text);
  if (match === null) throw badValue(parameter, text, 'a decimal number such as 1.5, -2 or 1e-3');
  const value = Number(text);
  const vanished = value === 0 && /[1-9]/.test(match[1]!);
  if (!Number.isFinite(value) || vanished) {
    throw badParameter(
      parameter,
      `the value of "${parameter}" is out of the range of 64-bit floats: ${text}`,
    );
  }
  // Negative zero equals zero, so plain zero takes its place: that is also right where bits are compared.
  return value === 0 ? 0 : value;
}

function parseTime(parameter: string, text: string, context: TimeContext): bigint {
  const time = parseTimeValue(text, context);
  if ('problem' in time) throw badParameter(parameter, `the value of "${parameter}": ${time.problem}`);
  return time.ms;
}

/** Parses the milliseconds that comparisons of times take. The error for a date names the operators that take dates. */
function parseTimeNumber(parameter: string, text: string, context: TimeContext): bigint {
  if (/^-?\d+$/.test(text) || 'problem' in parseTimeValue(text, context)) return parseInt64(parameter, text);
  const name = parameter.slice(0, parameter.lastIndexOf('__'));
  const operator = dateOperatorOf(parameter.slice(name.length + 2));
  const meant = [operator ?? 'since', operator ?? 'until']
    .filter((each, i, all) => all.indexOf(each) === i)
    .map((each) => `${name}__${each}=${text}`);
  throw badParameter(
    parameter,
    `the value of "${parameter}" must be milliseconds since the epoch, not ${JSON.stringify(text)}. ` +
      `Dates and spans work with since (from that time on) and until (before that time): ${meant.join(', ')}`,
  );
}

function badValue(parameter: string, text: string, expected: string): ProblemError {
  const hint = text.includes(' ') ? ' (an unescaped + means a blank; write a plus sign as %2B)' : '';
  return badParameter(
    parameter,
    `the value of "${parameter}" must be ${expected}, not ${JSON.stringify(text)}${hint}`,
  );
}

function unknownField(parameter: string, name: string, schema: Schema): ProblemError {
  const names = schema.fields.map((field) => field.name);
  return badParameter(
    parameter,
    `unknown field ${JSON.stringify(name)} in filter ${JSON.stringify(parameter)}${didYouMean(name, names)}. ` +
      `The fields are ${listNames(names)}`,
  );
}

function wrongOperator(parameter: string, operator: string, value: string, field: Field): ProblemError {
  const operators = operatorsOf(field.type);
  const near = didYouMean(operator, operators);
  const likely = near === '' ? likelyFilter(parameter, value, { fields: [field] }) : undefined;
  return badParameter(
    parameter,
    `field "${field.name}" is of type ${field.type} and has no operator ${JSON.stringify(operator)}` +
      `${near}${likely === undefined ? '' : `: write ${likely}`}. Its operators are ${listNames(operators)}`,
  );
}
