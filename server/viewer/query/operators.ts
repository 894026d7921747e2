import type { FieldType } from './field.js';

/** Operators of a filter: the route's, and `not_in`, which is asked as one `ne` for each value. */
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
  /** How a chip reads: field, words, value. */
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
  // It compares by milliseconds as well, which nobody types.
  time: ['since', 'until'],
  string: ['exact', 'ne', 'like', 'not_like', 'prefix', 'not_prefix', 'suffix', 'not_suffix', 'in', 'not_in'],
};

/** Those of a text that may stand in any field. */
export const anyFieldOperators: readonly Operator[] = ['like', 'not_like'];

/** The operators that a field of a type has, the likeliest first. */
export function operatorsOf(type: FieldType): readonly Operator[] {
  return ofType[type];
}

/** What an operator is in words. */
export function operatorWords(operator: Operator): string {
  return facts[operator].words;
}

/** Whether a text names an operator. */
export function isOperator(text: string): text is Operator {
  return Object.hasOwn(facts, text);
}

/** The operator that matches what this one does not, null aside. */
export function oppositeOf(operator: Operator, type: FieldType): Operator {
  const { opposite } = facts[operator];
  return opposite === 'eq' ? equalityOf(type) : opposite;
}

/** The operator that means "equal" on a type. */
export function equalityOf(type: FieldType): Operator {
  return type === 'string' ? 'exact' : 'eq';
}

/** Operators that take several values. */
export function takesMany(operator: Operator): boolean {
  return operator === 'in' || operator === 'not_in';
}
