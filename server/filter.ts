import { assertNever } from '../engine/assert.js';
import type { CompareOp, Predicate, StringOp } from '../engine/scan/query.js';
import type { Field, FieldType, Schema } from '../engine/schema.js';
import { ProblemError } from './problem.js';
import { didYouMean, listNames } from './suggestion.js';
import { parseTimeValue } from './time-value.js';
import type { TimeContext } from './time-value.js';

const compareOps: readonly CompareOp[] = ['eq', 'ne', 'gt', 'gte', 'lt', 'lte'];
const stringOps: readonly StringOp[] = ['exact', 'like', 'prefix', 'suffix'];
const windowOps = ['since', 'until'] as const;

const int64Max = 2n ** 63n - 1n;
const int64Min = -(2n ** 63n);

/** The operators that a filter on a field of this type may have, as `semantics.md` pairs them. */
export function operatorsOf(type: FieldType): readonly string[] {
  switch (type) {
    case 'int':
    case 'float':
      return compareOps;
    case 'string':
      return stringOps;
    case 'time':
      return [...windowOps, ...compareOps];
    default:
      return assertNever(type);
  }
}

/**
 * One filter, from its decoded key `<field>__<operator>` (the operator is what follows the last `__`) and its decoded value.
 * Throws a `ProblemError` with status 400.
 */
export function parsePredicate(key: string, value: string, schema: Schema, context: TimeContext): Predicate {
  const separator = key.lastIndexOf('__');
  const name = key.slice(0, separator);
  const operator = key.slice(separator + 2);
  const field = schema.fields.findIndex((candidate) => candidate.name === name);
  if (field < 0) throw unknownField(key, name, schema);
  const { type } = schema.fields[field]!;
  switch (type) {
    case 'int':
      return { kind: 'int', field, op: compareOp(), value: parseInt64(key, value) };
    case 'float':
      return { kind: 'float', field, op: compareOp(), value: parseDouble(key, value) };
    case 'string': {
      const op = stringOps.find((candidate) => candidate === operator);
      if (op === undefined) throw wrongOperator(key, operator, schema.fields[field]!);
      return { kind: 'string', field, op, value };
    }
    case 'time':
      if (operator === 'since')
        return { kind: 'int', field, op: 'gte', value: parseTime(key, value, context) };
      if (operator === 'until')
        return { kind: 'int', field, op: 'lt', value: parseTime(key, value, context) };
      return { kind: 'int', field, op: compareOp(), value: parseInt64(key, value) };
    default:
      return assertNever(type);
  }

  function compareOp(): CompareOp {
    const op = compareOps.find((candidate) => candidate === operator);
    if (op === undefined) throw wrongOperator(key, operator, schema.fields[field]!);
    return op;
  }
}

function parseInt64(parameter: string, text: string): bigint {
  if (!/^-?\d+$/.test(text)) {
    throw badValue(parameter, text, 'a decimal integer');
  }
  const value = BigInt(text);
  if (value > int64Max || value < int64Min) {
    throw new ProblemError(
      400,
      `the value of "${parameter}" is out of the range of 64-bit integers: ${text}`,
      { parameter },
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
    throw new ProblemError(400, `the value of "${parameter}" is out of the range of 64-bit floats: ${text}`, {
      parameter,
    });
  }
  // A negative zero equals zero; the plain one keeps whoever compares bits right as well.
  return value === 0 ? 0 : value;
}

function parseTime(parameter: string, text: string, context: TimeContext): bigint {
  const time = parseTimeValue(text, context);
  if ('problem' in time)
    throw new ProblemError(400, `the value of "${parameter}": ${time.problem}`, { parameter });
  return time.ms;
}

function badValue(parameter: string, text: string, expected: string): ProblemError {
  const hint = text.includes(' ') ? ' (an unescaped + is a blank; a plus sign is written %2B)' : '';
  return new ProblemError(
    400,
    `the value of "${parameter}" must be ${expected}, not ${JSON.stringify(text)}${hint}`,
    {
      parameter,
    },
  );
}

function unknownField(parameter: string, name: string, schema: Schema): ProblemError {
  const names = schema.fields.map((field) => field.name);
  return new ProblemError(
    400,
    `unknown field ${JSON.stringify(name)} in filter ${JSON.stringify(parameter)}${didYouMean(name, names)}. ` +
      `The fields are ${listNames(names)}`,
    { parameter },
  );
}

function wrongOperator(parameter: string, operator: string, field: Field): ProblemError {
  const operators = operatorsOf(field.type);
  return new ProblemError(
    400,
    `field "${field.name}" is of type ${field.type} and has no operator ${JSON.stringify(operator)}` +
      `${didYouMean(operator, operators)}. Its operators are ${listNames(operators)}`,
    { parameter },
  );
}
