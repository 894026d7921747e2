import type { FieldType } from './field.js';

/** The operators of filters: those of the query route, and `not_in`, which is sent as one `ne` per value. */
export type Operator =
  | 'eq'
  | 'ne'
  | 'gt'
  | 'gte'
  | 'lt'
  | 'lte'
  | 'exact'
  | 'like'
  | 'prefix'
  | 'suffix'
  | 'not_like'
  | 'not_prefix'
  | 'not_suffix'
  | 'in'
  | 'not_in'
  | 'since'
  | 'until';

interface OperatorFacts {
  /** How a filter reads to the user: field, words, value. */
  readonly words: string;
  readonly opposite: Operator;
}

const facts: Readonly<Record<Operator, OperatorFacts>> = {
  eq: { words: 'is', opposite: 'ne' },
  ne: { words: 'is not', opposite: 'eq' },
  gt: { words: '>', opposite: 'lte' },
  gte: { words: '≥', opposite: 'lt' },
  lt: { words: '<', opposite: 'gte' },
  lte: { words: '≤', opposite: 'gt' },
  exact: { words: 'is', opposite: 'ne' },
  like: { words: 'contains', opposite: 'not_like' },
  prefix: { words: 'begins with', opposite: 'not_prefix' },
  suffix: { words: 'ends with', opposite: 'not_suffix' },
  not_like: { words: 'does not contain', opposite: 'like' },
  not_prefix: { words: 'does not begin with', opposite: 'prefix' },
  not_suffix: { words: 'does not end with', opposite: 'suffix' },
  in: { words: 'is one of', opposite: 'not_in' },
  not_in: { words: 'is none of', opposite: 'in' },
  since: { words: 'from', opposite: 'until' },
  until: { words: 'before', opposite: 'since' },
};

const numeric: readonly Operator[] = ['eq', 'ne', 'gt', 'gte', 'lt', 'lte', 'in', 'not_in'];

const ofType: Readonly<Record<FieldType, readonly Operator[]>> = {
  int: numeric,
  float: numeric,
  bool: ['eq', 'ne'],
  // Times can also be compared by milliseconds, but nobody would type those.
  time: ['since', 'until'],
  string: ['exact', 'ne', 'like', 'not_like', 'prefix', 'not_prefix', 'suffix', 'not_suffix', 'in', 'not_in'],
};

/** The operators of a filter on `anyField`. */
export const anyFieldOperators: readonly Operator[] = ['like', 'not_like'];

/** The operators for fields of a type, the most common first. */
export function operatorsOf(type: FieldType): readonly Operator[] {
  return ofType[type];
}

/** An operator in words. */
export function operatorWords(operator: Operator): string {
  return facts[operator].words;
}

/** Whether a text is the name of an operator. */
export function isOperator(text: string): text is Operator {
  return Object.hasOwn(facts, text);
}

/** The operator that matches what this one does not. Null matches neither. */
export function oppositeOf(operator: Operator, type: FieldType): Operator {
  const { opposite } = facts[operator];
  return opposite === 'eq' ? equalityOf(type) : opposite;
}

/** The operator for equality of a type. */
export function equalityOf(type: FieldType): Operator {
  return type === 'string' ? 'exact' : 'eq';
}

/** Whether an operator takes several values. */
export function takesMany(operator: Operator): boolean {
  return operator === 'in' || operator === 'not_in';
}
