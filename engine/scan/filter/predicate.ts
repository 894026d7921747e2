import { assertNever } from '../../terms/assert.js';
import { LogstrataError } from '../../terms/errors.js';
import { predicatesMax } from '../../terms/limits.js';
import type { Field, FieldType, Schema } from '../../terms/schema.js';
import { prepareNeedle } from './needle.js';
import type { Needle } from './needle.js';
import type { CompareOp, NeedleOp, Predicate, Query, StringOp } from '../plan/query.js';

/** A comparison as the kernels take it. Ranges are inclusive. With `outside`, rows match that lie outside the range, or don't match the needle. */
export type PreparedCompare = PreparedInt | PreparedFloat | PreparedString;

/** A predicate: one comparison, or several of which one must hold. */
export type PreparedPredicate = PreparedCompare | PreparedSet;

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
  readonly outside: boolean;
}

export interface PreparedSet {
  readonly kind: 'set';
  readonly field: number;
  /** Each selects the rows that equal one value. */
  readonly members: readonly PreparedCompare[];
}

export const int64Min = -(2n ** 63n);
export const int64Max = 2n ** 63n - 1n;

/** Checks a query against the schema and prepares its predicates; throws `invalid`. */
export function preparePredicates(query: Query, schema: Schema): PreparedPredicate[] {
  if (!Number.isInteger(query.limit) || query.limit < 0) {
    throw new LogstrataError('invalid', `limit ${query.limit} is not a whole number from 0 on`);
  }
  const filters = query.predicates.reduce(
    (sum, predicate) => sum + (predicate.kind === 'set' ? predicate.members.length : 1),
    0,
  );
  if (filters > predicatesMax)
    throw new LogstrataError('invalid', `${filters} filters, but at most ${predicatesMax} are possible`);
  return query.predicates.map((predicate) => preparePredicate(predicate, schema));
}

function preparePredicate(predicate: Predicate, schema: Schema): PreparedPredicate {
  const field = schema.fields[predicate.field];
  if (field === undefined) throw new LogstrataError('invalid', `there is no field number ${predicate.field}`);
  if (predicate.kind === 'set') return prepareSet(predicate, schema);
  return prepareCompare(predicate, field);
}

function prepareSet(set: Predicate & { kind: 'set' }, schema: Schema): PreparedSet {
  const members = set.members.map((member) => {
    const isEqual = member.kind !== 'set' && (member.op === 'eq' || member.op === 'exact');
    if (!isEqual || member.field !== set.field)
      throw new LogstrataError('invalid', 'a set has filters for equal values of its one field');
    return prepareCompare(member, schema.fields[set.field]!);
  });
  if (members.length === 0) throw new LogstrataError('invalid', 'a set has at least one value');
  return { kind: 'set', field: set.field, members };
}

function prepareCompare(predicate: Exclude<Predicate, { kind: 'set' }>, field: Field): PreparedCompare {
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
        ...prepareString(predicate.op, predicate.value),
      };
    default:
      return assertNever(predicate);
  }
}

const negated: Partial<Record<StringOp, NeedleOp>> = {
  ne: 'exact',
  not_like: 'like',
  not_prefix: 'prefix',
  not_suffix: 'suffix',
};

function prepareString(op: StringOp, value: string): Pick<PreparedString, 'needle' | 'outside'> {
  const opposite = negated[op];
  return { needle: prepareNeedle(opposite ?? (op as NeedleOp), value), outside: opposite !== undefined };
}

/** Needles of which every value that matches holds one; none where nothing certain can be said of what matches. */
export function needlesOf(predicate: PreparedPredicate): readonly Needle[] {
  switch (predicate.kind) {
    case 'int':
    case 'float':
      return [];
    case 'string':
      return predicate.outside || predicate.needle.folded.length === 0 ? [] : [predicate.needle];
    case 'set': {
      const needles = predicate.members.map(needlesOf);
      return needles.every(({ length }) => length > 0) ? needles.flat() : [];
    }
    default:
      return assertNever(predicate);
  }
}

function predicateKind(type: FieldType): Predicate['kind'] {
  switch (type) {
    case 'int':
    case 'time':
    case 'bool':
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
