import { assertNever, LogstrataError } from '../core/errors.js';
import { int64Max, int64Min, predicatesMax } from '../core/limits.js';
import { typeFacts, type Field, type Schema } from '../core/schema.js';
import { hashIntegers, hashStrings } from '../kernels/value-filter.js';
import { finishXxh64, newLanes } from '../kernels/xxh64.js';
import type { Asked } from '../store/sealed/filter-question.js';
import { prepareNeedle, type Needle } from './string-search.js';
import type {
  AnywherePredicate,
  CompareOp,
  FieldPredicate,
  NeedleOp,
  Predicate,
  Query,
  StringOp,
} from './query.js';

/**
 * A predicate on one field, prepared once per query. A row matches where one of the comparisons holds. Only predicates on a set of values
 * have several.
 */
export interface PreparedPredicate {
  readonly field: number;
  readonly anyOf: readonly Comparison[];
  /** Every matching value contains one of these texts. Empty where values without any of them can match. */
  readonly needles: readonly Needle[];
  /**
   * Every matching value equals one of these values or contains its text. Empty where the filters of row groups cannot answer the
   * predicate.
   */
  readonly asked: readonly Asked[];
}

/** A text that is searched in all fields of type string, prepared once per query. */
export interface PreparedAnywhere {
  /** One predicate for each string field: it contains the text. */
  readonly members: readonly PreparedPredicate[];
  /** Inverts the predicate: rows match where no field contains the text. */
  readonly isAbsent: boolean;
}

/** The predicates of a query. A row has to match all of them. */
export interface PreparedPredicates {
  readonly onField: readonly PreparedPredicate[];
  readonly anywhere: readonly PreparedAnywhere[];
  /** The predicates as they were given. */
  readonly asked: readonly Predicate[];
}

/**
 * A comparison in the form that kernels take. With `outside`, the values match that are outside the range, or that don't match the needle.
 */
export type Comparison = IntComparison | FloatComparison | StringComparison;

/** A range that includes both ends. */
export interface Range<T> {
  readonly low: T;
  readonly high: T;
  readonly outside: boolean;
}

export type IntComparison = { readonly kind: 'int' } & Range<bigint>;
export type FloatComparison = { readonly kind: 'float' } & Range<number>;

/** Compares a string with a needle. With `outside`, the strings match that the needle does not. */
export interface StringComparison {
  readonly kind: 'string';
  readonly needle: Needle;
  readonly outside: boolean;
}

/** Whether there is any predicate. */
export function areFiltered({ onField, anywhere }: PreparedPredicates): boolean {
  return onField.length + anywhere.length > 0;
}

/** The fields that predicates are evaluated on. */
export function fieldsOf({ onField, anywhere }: PreparedPredicates): number[] {
  return [...onField, ...anywhere.flatMap(({ members }) => members)].map(({ field }) => field);
}

/** Checks a query against the schema and prepares its predicates. Throws `invalid`. */
export function preparePredicates(query: Query, schema: Schema): PreparedPredicates {
  if (!Number.isInteger(query.limit) || query.limit < 0) {
    throw new LogstrataError('invalid', `limit ${query.limit} is not a whole number of at least 0`);
  }
  const filters = query.predicates.reduce(
    (sum, predicate) => sum + (predicate.kind === 'set' ? predicate.members.length : 1),
    0,
  );
  if (filters > predicatesMax)
    throw new LogstrataError('invalid', `${filters} filters, but at most ${predicatesMax} are allowed`);
  const onField: PreparedPredicate[] = [];
  const anywhere: PreparedAnywhere[] = [];
  for (const predicate of query.predicates) {
    if (predicate.kind === 'anywhere') anywhere.push(prepareAnywhere(predicate, schema));
    else onField.push(preparePredicate(predicate, schema));
  }
  return { onField, anywhere, asked: query.predicates };
}

function prepareAnywhere({ value, isAbsent }: AnywherePredicate, schema: Schema): PreparedAnywhere {
  const members = schema.fields.flatMap(({ type }, field) =>
    type === 'string' ? [preparePredicate({ kind: 'string', field, op: 'like', value }, schema)] : [],
  );
  return { members, isAbsent };
}

function preparePredicate(predicate: FieldPredicate, schema: Schema): PreparedPredicate {
  const field = schema.fields[predicate.field];
  if (field === undefined) throw new LogstrataError('invalid', `there is no field number ${predicate.field}`);
  const members = predicate.kind === 'set' ? membersOf(predicate) : [predicate];
  const anyOf = members.map((member) => comparisonOf(member, field));
  return { field: predicate.field, anyOf, needles: needlesOf(anyOf), asked: askedOf(anyOf) };
}

type SinglePredicate = Exclude<FieldPredicate, { kind: 'set' }>;

function membersOf({ field, members }: FieldPredicate & { kind: 'set' }): SinglePredicate[] {
  if (members.length === 0) throw new LogstrataError('invalid', 'a set has at least one value');
  return members.map((member) => {
    if (member.kind !== 'set' && member.field === field && (member.op === 'eq' || member.op === 'exact'))
      return member;
    throw new LogstrataError('invalid', 'a set has filters for equal values of its one field');
  });
}

/** The filters of the values in each kind of column. */
const comparedAs = { int64: 'int', float64: 'float', bytes: 'string' } as const;

function comparisonOf(predicate: SinglePredicate, field: Field): Comparison {
  if (predicate.kind !== comparedAs[typeFacts[field.type].column]) {
    throw new LogstrataError(
      'invalid',
      `field "${field.name}" is of type ${field.type}, which has no ${predicate.kind} filter`,
    );
  }
  switch (predicate.kind) {
    case 'int':
      return { kind: 'int', ...intRange(predicate.op, predicate.value) };
    case 'float':
      if (Number.isNaN(predicate.value)) {
        throw new LogstrataError('invalid', `field "${field.name}" can't be compared with NaN`);
      }
      return { kind: 'float', ...floatRange(predicate.op, predicate.value) };
    case 'string':
      return stringComparison(predicate.op, predicate.value);
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

function stringComparison(op: StringOp, value: string): StringComparison {
  const opposite = negated[op];
  const needle = prepareNeedle(opposite ?? (op as NeedleOp), value);
  return { kind: 'string', needle, outside: opposite !== undefined };
}

function needlesOf(anyOf: readonly Comparison[]): Needle[] {
  const needles = anyOf.flatMap((comparison) =>
    comparison.kind === 'string' && !comparison.outside && comparison.needle.folded.length > 0
      ? [comparison.needle]
      : [],
  );
  return needles.length === anyOf.length ? needles : [];
}

function askedOf(anyOf: readonly Comparison[]): Asked[] {
  const asked = anyOf.flatMap((comparison) => {
    const one = askedOne(comparison);
    return one === null ? [] : [one];
  });
  return asked.length === anyOf.length ? asked : [];
}

function askedOne(comparison: Comparison): Asked | null {
  if (comparison.outside) return null;
  if (comparison.kind === 'string') {
    const { op, raw, folded } = comparison.needle;
    if (op !== 'exact')
      return folded.length < askedTextBytesMin ? null : { hash: null, shortHash: null, folded };
    const [low, high] = hashStrings(raw, Uint32Array.of(0, raw.length), 1);
    return { hash: { low: low!, high: high! }, shortHash: null, folded };
  }
  if (comparison.kind !== 'int' || comparison.low !== comparison.high) return null;
  const [low, high] = hashIntegers(BigInt64Array.of(comparison.low), 1);
  return { hash: { low: low!, high: high! }, shortHash: shortHashOf(comparison.low), folded: noText };
}

/**
 * The XXH64 hash of the value as four bytes, as files of other programs store 32-bit integers, signed or unsigned. Null where the value
 * needs more bits.
 */
function shortHashOf(value: bigint): Asked['shortHash'] {
  if (value < -(2n ** 31n) || value >= 2n ** 32n) return null;
  const bytes = new Uint8Array(Int32Array.of(Number(BigInt.asIntN(32, value))).buffer);
  const hash = finishXxh64(newLanes(), bytes.length, bytes);
  return { low: Number(hash & 0xffffffffn), high: Number(hash >> 32n) };
}

const noText = new Uint8Array(0);

/** The n of the n-grams: filters cannot answer for shorter texts. */
const askedTextBytesMin = 3;

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

/** The least double greater than `value`; infinity stays. Uses that doubles of one sign are ordered like their bits. */
function nextUp(value: number): number {
  if (value === Infinity) return value;
  if (value === 0) return Number.MIN_VALUE;
  const double = new Float64Array([value]);
  const bits = new BigInt64Array(double.buffer);
  bits[0]! += value > 0 ? 1n : -1n;
  return double[0]!;
}
