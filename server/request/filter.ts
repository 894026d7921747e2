import {
  assertNever,
  type AnywherePredicate,
  type CompareOp,
  type Field,
  type FieldPredicate,
  type FieldType,
  int64Max,
  int64Min,
  type Predicate,
  type Schema,
  type StringOp,
} from '../../engine/index.js';
import { dateOperatorOf, likelyFilter } from './filter-hint.js';
import { anywhereOps, boolOps, compareOps, operatorsOf, stringOps } from './operators.js';
import { badParameter, type ProblemError } from '../http/problem.js';
import { didYouMean, listNames } from './suggestion.js';
import { parseTimeValue } from './time-value.js';
import type { TimeContext } from './time-value.js';

/** The operator with which each value of `in` is compared, by the type of the field. */
const equalOps = {
  int: 'eq',
  float: 'eq',
  time: 'eq',
  bool: 'eq',
  string: 'exact',
} as const satisfies Record<FieldType, CompareOp | StringOp>;

/** A filter with this in place of a field's name searches all fields of type string. */
const anyField = '*';

/**
 * Parses one filter from its decoded key `<field>__<operator>` (the operator is what follows the last `__`) and its decoded value.
 * A filter `in` becomes a set with one member, which `joinSets` joins to others. Throws a `ProblemError` (400).
 */
export function parsePredicate(key: string, value: string, schema: Schema, context: TimeContext): Predicate {
  const separator = key.lastIndexOf('__');
  const name = key.slice(0, separator);
  const operator = key.slice(separator + 2);
  const field = schema.fields.findIndex((candidate) => candidate.name === name);
  if (field < 0 && name === anyField) return parseAnywhere(key, operator, value, schema);
  if (field < 0) throw unknownField(key, name, schema);
  const { type } = schema.fields[field]!;
  if (operator !== 'in') return parseCompare(key, operator, value, field, schema, context);
  const member = parseCompare(key, equalOps[type], value, field, schema, context);
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

/** Joins all `in` filters on the same field into one set, which matches if any of its members does. */
export function joinSets(predicates: readonly Predicate[]): Predicate[] {
  const members = new Map<number, FieldPredicate[]>();
  const joined: Predicate[] = [];
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
  const operatorOf = <Op extends string>(ops: readonly Op[]): Op => {
    const op = ops.find((candidate) => candidate === operator);
    if (op === undefined) throw wrongOperator(key, operator, value, schema.fields[field]!);
    return op;
  };
  switch (type) {
    case 'int':
      return { kind: 'int', field, op: operatorOf(compareOps), value: parseInt64(key, value) };
    case 'float':
      return { kind: 'float', field, op: operatorOf(compareOps), value: parseDouble(key, value) };
    case 'string':
      return { kind: 'string', field, op: operatorOf(stringOps), value };
    case 'time':
      if (operator === 'since')
        return { kind: 'int', field, op: 'gte', value: parseTime(key, value, context) };
      if (operator === 'until')
        return { kind: 'int', field, op: 'lt', value: parseTime(key, value, context) };
      return { kind: 'int', field, op: operatorOf(compareOps), value: parseTimeNumber(key, value, context) };
    case 'bool':
      return { kind: 'int', field, op: operatorOf(boolOps), value: parseBool(key, value) };
    default:
      return assertNever(type);
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
