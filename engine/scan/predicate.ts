import { assertNever } from '../assert.js';
import { LogstrataError } from '../errors.js';
import { predicatesMax } from '../limits.js';
import type { FieldType, Schema } from '../schema.js';
import { prepareNeedle } from './needle.js';
import type { Needle } from './needle.js';
import type { CompareOp, Predicate, Query } from './query.js';

/** A predicate as the kernels take it. Ranges are inclusive; `outside` selects what is not in them (`ne`). */
export type PreparedPredicate = PreparedInt | PreparedFloat | PreparedString;

export interface PreparedInt {
  readonly kind: 'int';
  readonly field: number;
  readonly low: bigint;
  readonly high: bigint;
  readonly outside: boolean;
}

export interface PreparedFloat {
  readonly kind: 'float';
  readonly field: number;
  readonly low: number;
  readonly high: number;
  readonly outside: boolean;
}

export interface PreparedString {
  readonly kind: 'string';
  readonly field: number;
  readonly needle: Needle;
}

export const int64Min = -(2n ** 63n);
export const int64Max = 2n ** 63n - 1n;

/** Checks a query against the schema and prepares its predicates; throws `invalid`. */
export function preparePredicates(query: Query, schema: Schema): PreparedPredicate[] {
  if (!Number.isInteger(query.limit) || query.limit < 0) {
    throw new LogstrataError('invalid', `limit ${query.limit} is not a whole number from 0 on`);
  }
  if (query.predicates.length > predicatesMax) {
    throw new LogstrataError(
      'invalid',
      `${query.predicates.length} filters, but at most ${predicatesMax} are possible`,
    );
  }
  return query.predicates.map((predicate) => preparePredicate(predicate, schema));
}

function preparePredicate(predicate: Predicate, schema: Schema): PreparedPredicate {
  const field = schema.fields[predicate.field];
  if (field === undefined) throw new LogstrataError('invalid', `there is no field number ${predicate.field}`);
  if (predicate.kind !== predicateKind(field.type)) {
    throw new LogstrataError(
      'invalid',
      `field "${field.name}" is of type ${field.type}, which a ${predicate.kind} filter does not fit`,
    );
  }
  switch (predicate.kind) {
    case 'int':
      return { kind: 'int', field: predicate.field, ...intRange(predicate.op, predicate.value) };
    case 'float':
      if (Number.isNaN(predicate.value)) {
        throw new LogstrataError('invalid', `field "${field.name}" can't be compared with NaN`);
      }
      return { kind: 'float', field: predicate.field, ...floatRange(predicate.op, predicate.value) };
    case 'string':
      return {
        kind: 'string',
        field: predicate.field,
        needle: prepareNeedle(predicate.op, predicate.value),
      };
    default:
      return assertNever(predicate);
  }
}

function predicateKind(type: FieldType): Predicate['kind'] {
  switch (type) {
    case 'int':
    case 'time':
      return 'int';
    case 'float':
      return 'float';
    case 'string':
      return 'string';
    default:
      return assertNever(type);
  }
}

interface Range<T> {
  readonly low: T;
  readonly high: T;
  readonly outside: boolean;
}

function intRange(op: CompareOp, value: bigint): Range<bigint> {
  switch (op) {
    case 'eq':
      return { low: value, high: value, outside: false };
    case 'ne':
      return { low: value, high: value, outside: true };
    case 'gt':
      return { low: value + 1n, high: int64Max, outside: false };
    case 'gte':
      return { low: value, high: int64Max, outside: false };
    case 'lt':
      return { low: int64Min, high: value - 1n, outside: false };
    case 'lte':
      return { low: int64Min, high: value, outside: false };
    default:
      return assertNever(op);
  }
}

function floatRange(op: CompareOp, value: number): Range<number> {
  switch (op) {
    case 'eq':
      return { low: value, high: value, outside: false };
    case 'ne':
      return { low: value, high: value, outside: true };
    case 'gt':
      return { low: nextUp(value), high: value === Infinity ? -Infinity : Infinity, outside: false };
    case 'gte':
      return { low: value, high: Infinity, outside: false };
    case 'lt':
      return { low: value === -Infinity ? Infinity : -Infinity, high: -nextUp(-value), outside: false };
    case 'lte':
      return { low: -Infinity, high: value, outside: false };
    default:
      return assertNever(op);
  }
}

/** The least double greater than `value`; infinity stays. Doubles of one sign stand in the order of their bits. */
function nextUp(value: number): number {
  if (value === Infinity) return value;
  if (value === 0) return Number.MIN_VALUE;
  const double = new Float64Array([value]);
  const bits = new BigInt64Array(double.buffer);
  bits[0]! += value > 0 ? 1n : -1n;
  return double[0]!;
}
