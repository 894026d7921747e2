import {
  type Schema,
  type AnywherePredicate,
  type Field,
  type FieldPredicate,
  int64Max,
  int64Min,
  isLogstrataError,
  LogstrataError,
} from '../../engine/index.js';
import { searchPattern } from '../../engine/patterns/search-pattern.js';
import { anywhereOps, filtersOf, likelyFilter, operatorsOf, windowOps } from './filter-operators.js';
import { didYouMean, listNames } from './suggestion.js';
import { parseTimeValue, type TimeContext } from './time-value.js';

/** A filter that can't be understood. */
export class FilterError extends LogstrataError {
  /** @param parameter its key, as it was given */
  constructor(
    readonly parameter: string,
    message: string,
  ) {
    super('invalid', message);
    this.name = 'FilterError';
  }
}

/** How the values of filters are parsed; throws a `FilterError`. */
const parsers = {
  integer: parseInt64,
  decimal: parseDouble,
  text: parseText,
  milliseconds: parseTimeNumber,
  truth: parseBool,
} as const;

/** The operator that takes a date (`since`, `until`) and is closest to one that takes milliseconds; undefined if none is. */
function dateOperatorOf(operator: string): 'since' | 'until' | undefined {
  if (operator === 'gte' || operator === 'gt') return 'since';
  return operator === 'lt' || operator === 'lte' ? 'until' : undefined;
}

/** A filter with this in place of a field's name searches all fields of type string. */
export const anyField = '*';

/**
 * Parses one filter from its decoded key `<field>__<operator>` (the operator is what follows the last `__`) and its decoded value.
 * A filter `in` becomes a set with one member, which `joinSets` joins to others. Throws a `FilterError`.
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
    throw new FilterError(
      key,
      `${JSON.stringify(key)} searches all string fields, for which the operators are ${listNames(anywhereOps)}`,
    );
  if (!fields.some(({ type }) => type === 'string'))
    throw new FilterError(
      key,
      `${JSON.stringify(key)} searches fields of type string, but the agent has none`,
    );
  const op = operator.endsWith('regex') ? 'regex' : 'like';
  return { kind: 'anywhere', op, isAbsent: operator.startsWith('not_'), value: parseText(key, value) };
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
  const { kind, operators, value: parsed } = filtersOf[type];
  const op = operators.find((candidate) => candidate === operator);
  if (op === undefined) throw wrongOperator(key, operator, value, schema.fields[field]!);
  return { kind, field, op, value: parsers[parsed](key, value, context) } as FieldPredicate;
}

/** Parses a text, or a pattern where the operator takes one. */
function parseText(parameter: string, text: string): string {
  if (!parameter.endsWith('regex')) return text;
  try {
    return searchPattern(text).text;
  } catch (error) {
    if (!isLogstrataError(error) || error.code !== 'invalid') throw error;
    throw new FilterError(
      parameter,
      `the value of "${parameter}" must be a regular expression in RE2 syntax: ${error.message}`,
    );
  }
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
    throw new FilterError(
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
    throw new FilterError(
      parameter,
      `the value of "${parameter}" is out of the range of 64-bit floats: ${text}`,
    );
  }
  // Negative zero equals zero, so plain zero takes its place: that is also right where bits are compared.
  return value === 0 ? 0 : value;
}

function parseTime(parameter: string, text: string, context: TimeContext): bigint {
  const time = parseTimeValue(text, context);
  if ('problem' in time) throw new FilterError(parameter, `the value of "${parameter}": ${time.problem}`);
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
  throw new FilterError(
    parameter,
    `the value of "${parameter}" must be milliseconds since the epoch, not ${JSON.stringify(text)}. ` +
      `Dates and spans work with since (from that time on) and until (before that time): ${meant.join(', ')}`,
  );
}

function badValue(parameter: string, text: string, expected: string): FilterError {
  const hint = text.includes(' ') ? ' (an unescaped + means a blank; write a plus sign as %2B)' : '';
  return new FilterError(
    parameter,
    `the value of "${parameter}" must be ${expected}, not ${JSON.stringify(text)}${hint}`,
  );
}

function unknownField(parameter: string, name: string, schema: Schema): FilterError {
  const names = schema.fields.map((field) => field.name);
  return new FilterError(
    parameter,
    `unknown field ${JSON.stringify(name)} in filter ${JSON.stringify(parameter)}${didYouMean(name, names)}. ` +
      `The fields are ${listNames(names)}`,
  );
}

function wrongOperator(parameter: string, operator: string, value: string, field: Field): FilterError {
  const operators = operatorsOf(field.type);
  const near = didYouMean(operator, operators);
  const likely = near === '' ? likelyFilter(parameter, value, { fields: [field] }) : undefined;
  return new FilterError(
    parameter,
    `field "${field.name}" is of type ${field.type} and has no operator ${JSON.stringify(operator)}` +
      `${near}${likely === undefined ? '' : `: write ${likely}`}. Its operators are ${listNames(operators)}`,
  );
}
