import { assertNever, LogstrataError } from '../core/errors.js';
import { int64Max, int64Min, predicatesMax } from '../core/limits.js';
import { typeFacts, type Field, type Schema } from '../core/schema.js';
import { hashIntegers, hashStrings } from '../kernels/value-filter.js';
import { finishXxh64, newLanes } from '../kernels/xxh64.js';
import { searchPattern, type SearchPattern } from '../patterns/search-pattern.js';
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
 * A predicate on one field, prepared once per query. A row matches where one of the comparisons holds. A set of values has several, and so
 * have filters of a group on the same field.
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

/**
 * A part of a query that rows have to match, prepared once: a filter on a field, a text in any field (which has a member for each field of
 * type string), or a group of filters. A row matches where one of the members holds, or none of those of one of `absent`.
 */
export interface Clause<Member> {
  readonly members: readonly Member[];
  /** Texts that no field may contain, each with a member for every field of type string. */
  readonly absent: readonly (readonly Member[])[];
}

/** The predicates of a query. A row has to match all clauses. */
export interface PreparedPredicates {
  readonly clauses: readonly Clause<PreparedPredicate>[];
  /** The predicates as they were given. */
  readonly asked: readonly Predicate[];
}

/**
 * A comparison in the form that kernels take. With `outside`, the values match that are outside the range, or that don't match the needle.
 */
export type Comparison =
  IntComparison | FloatComparison | StringComparison | PatternComparison | ExistsComparison;

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

/** Searches strings for a pattern. With `outside`, the strings match that the pattern does not. */
export interface PatternComparison {
  readonly kind: 'pattern';
  readonly pattern: SearchPattern;
  /** Every string that the pattern matches contains one of these texts. Empty where none is known. */
  readonly needles: readonly Needle[];
  readonly outside: boolean;
}

/** Every value matches; with `outside`, null does and no value. A predicate with this comparison has no other. */
export interface ExistsComparison {
  readonly kind: 'exists';
  readonly outside: boolean;
}

/** Whether values are searched for a pattern, which may take far longer than any other comparison. */
export function hasPattern({ anyOf }: PreparedPredicate): boolean {
  return anyOf.some(({ kind }) => kind === 'pattern');
}

/** All members of a clause. */
export function allMembers<Member>({ members, absent }: Clause<Member>): Member[] {
  return [...members, ...absent.flat()];
}

/** The member of a clause that has only one; undefined for others. */
export function onlyMember<Member>({ members, absent }: Clause<Member>): Member | undefined {
  return members.length === 1 && absent.length === 0 ? members[0] : undefined;
}

/** The same clause with each member converted. */
export function mapClause<A, B>({ members, absent }: Clause<A>, convert: (member: A) => B): Clause<B> {
  return { members: members.map(convert), absent: absent.map((each) => each.map(convert)) };
}

/** The fields that predicates are evaluated on. */
export function fieldsOf({ clauses }: PreparedPredicates): number[] {
  return clauses.flatMap(allMembers).map(({ field }) => field);
}

/** Checks a query against the schema and prepares its predicates. Throws `invalid`. */
export function preparePredicates(query: Query, schema: Schema): PreparedPredicates {
  if (!Number.isInteger(query.limit) || query.limit < 0) {
    throw new LogstrataError('invalid', `limit ${query.limit} is not a whole number of at least 0`);
  }
  const filters = query.predicates.reduce((sum, predicate) => sum + filtersIn(predicate), 0);
  if (filters > predicatesMax)
    throw new LogstrataError('invalid', `${filters} filters, but at most ${predicatesMax} are allowed`);
  return { clauses: query.predicates.map((each) => prepareClause(each, schema)), asked: query.predicates };
}

function filtersIn(predicate: Predicate): number {
  if (predicate.kind !== 'set' && predicate.kind !== 'any') return 1;
  return predicate.members.reduce((sum: number, member) => sum + filtersIn(member), 0);
}

function prepareClause(predicate: Predicate, schema: Schema): Clause<PreparedPredicate> {
  const absent: PreparedPredicate[][] = [];
  // Filters on the same field are one member, so that they are compared together and the column is searched once.
  const members = new Map<string, FieldPredicate[]>();
  for (const each of predicate.kind === 'any' ? predicate.members : [predicate]) {
    const onFields = each.kind === 'anywhere' ? inEachField(each, schema) : [each];
    if (each.kind === 'anywhere' && each.isAbsent) {
      absent.push(onFields.map((one) => preparePredicate([one], schema)));
      continue;
    }
    for (const one of onFields) {
      const key = one.kind === 'exists' ? `${one.field} ${one.value}` : `${one.field}`;
      const same = members.get(key);
      if (same === undefined) members.set(key, [one]);
      else same.push(one);
    }
  }
  return { members: Array.from(members.values(), (same) => preparePredicate(same, schema)), absent };
}

/** A filter for each field of type string: the text or the pattern is in it. */
function inEachField({ op, value }: AnywherePredicate, { fields }: Schema): FieldPredicate[] {
  return fields.flatMap(({ type }, field): FieldPredicate[] =>
    type === 'string' ? [{ kind: 'string', field, op, value }] : [],
  );
}

/** Prepares filters on one field, of which one has to hold. */
function preparePredicate(predicates: readonly FieldPredicate[], schema: Schema): PreparedPredicate {
  const number = predicates[0]!.field;
  const field = schema.fields[number];
  if (field === undefined) throw new LogstrataError('invalid', `there is no field number ${number}`);
  const singles = predicates.flatMap((each) => (each.kind === 'set' ? membersOf(each) : [each]));
  const anyOf = singles.map((single) => comparisonOf(single, field));
  return { field: number, anyOf, needles: needlesOf(anyOf), asked: askedOf(anyOf) };
}

type SinglePredicate = Exclude<FieldPredicate, { kind: 'set' }>;

function membersOf({ field, members }: FieldPredicate & { kind: 'set' }): SinglePredicate[] {
  if (members.length === 0) throw new LogstrataError('invalid', 'a set has at least one value');
  return members.map((member) => {
    const isOnField = member.kind !== 'set' && member.kind !== 'exists' && member.field === field;
    if (isOnField && (member.op === 'eq' || member.op === 'exact')) return member;
    throw new LogstrataError('invalid', 'a set has filters for equal values of its one field');
  });
}

/** The filters of the values in each kind of column. */
const comparedAs = { int64: 'int', float64: 'float', bytes: 'string' } as const;

function comparisonOf(predicate: SinglePredicate, field: Field): Comparison {
  if (predicate.kind === 'exists') return { kind: 'exists', outside: !predicate.value };
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

function stringComparison(op: StringOp, value: string): StringComparison | PatternComparison {
  if (op === 'regex' || op === 'not_regex') {
    const pattern = searchPattern(value);
    const needles = pattern.texts.map((text) => prepareNeedle('like', text));
    return { kind: 'pattern', pattern, needles, outside: op === 'not_regex' };
  }
  const opposite = negated[op];
  const needle = prepareNeedle(opposite ?? (op as NeedleOp), value);
  return { kind: 'string', needle, outside: opposite !== undefined };
}

function needlesOf(anyOf: readonly Comparison[]): readonly Needle[] {
  const needles = anyOf.map((comparison) => {
    if (comparison.outside) return [];
    if (comparison.kind === 'pattern') return comparison.needles;
    return comparison.kind === 'string' && comparison.needle.folded.length > 0 ? [comparison.needle] : [];
  });
  return needles.every(({ length }) => length > 0) ? needles.flat() : [];
}

function askedOf(anyOf: readonly Comparison[]): Asked[] {
  const asked = anyOf.flatMap((comparison) =>
    comparison.kind === 'pattern' && !comparison.outside && comparison.needles.length > 0
      ? comparison.needles.map(askedNeedle)
      : [askedOne(comparison)],
  );
  const known = asked.filter((one) => one !== null);
  return known.length === asked.length ? known : [];
}

function askedNeedle({ op, raw, folded }: Needle): Asked | null {
  if (op !== 'exact')
    return folded.length < askedTextBytesMin ? null : { hash: null, shortHash: null, folded };
  const [low, high] = hashStrings(raw, Uint32Array.of(0, raw.length), 1);
  return { hash: { low: low!, high: high! }, shortHash: null, folded };
}

function askedOne(comparison: Comparison): Asked | null {
  if (comparison.outside) return null;
  if (comparison.kind === 'string') return askedNeedle(comparison.needle);
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
