import { typeFacts, type FieldType, type Field, type Operator } from './field.js';

export type { Operator };

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

/** The operators of a filter on `anyField`. */
export const anyFieldOperators: readonly Operator[] = ['like', 'not_like'];

/** An operator in words. */
export function operatorWords(operator: Operator): string {
  return facts[operator].words;
}

/** Whether a text is the name of an operator. */
export function isOperator(text: string): text is Operator {
  return Object.hasOwn(facts, text);
}

/** The operator that matches what this one does not. Null matches neither. */
function oppositeOf(operator: Operator, type: FieldType): Operator {
  const { opposite } = facts[operator];
  return opposite === 'eq' ? equalityOf(type) : opposite;
}

/** The operator for equality of a type. */
function equalityOf(type: FieldType): Operator {
  return typeFacts[type].operators.includes('exact') ? 'exact' : 'eq';
}

/** Whether an operator takes several values. */
export function takesMany(operator: Operator): boolean {
  return operator === 'in' || operator === 'not_in';
}

/** A condition on a field. A record must satisfy all conditions. */
export interface Filter {
  readonly field: string;
  readonly operator: Operator;
  /** The values to compare with: one, or any number for `in` and `not_in`. */
  readonly values: readonly string[];
}

type Filters = readonly Filter[];

function isPositive({ operator }: Filter): boolean {
  return operator === 'eq' || operator === 'exact' || operator === 'in';
}

function isNegative({ operator }: Filter): boolean {
  return operator === 'ne' || operator === 'not_in';
}

/** A filter for one of several values, or for a single one. */
function equalTo(field: Field, values: readonly string[]): Filter {
  return { field: field.name, operator: values.length === 1 ? equalityOf(field.type) : 'in', values };
}

function otherThan(field: Field, values: readonly string[]): Filter {
  return { field: field.name, operator: values.length === 1 ? 'ne' : 'not_in', values };
}

/** The values of which the field must have one; empty where any is accepted. */
export function wantedValues(filters: Filters, field: string): readonly string[] {
  return filters
    .filter((filter) => filter.field === field && isPositive(filter))
    .flatMap(({ values }) => values);
}

/** The values that the field must not have. */
export function unwantedValues(filters: Filters, field: string): readonly string[] {
  return filters
    .filter((filter) => filter.field === field && isNegative(filter))
    .flatMap(({ values }) => values);
}

function replaced(
  filters: Filters,
  field: Field,
  wanted: readonly string[],
  unwanted: readonly string[],
): Filters {
  const others = filters.filter(
    (filter) => filter.field !== field.name || (!isPositive(filter) && !isNegative(filter)),
  );
  return [
    ...others,
    ...(wanted.length > 0 ? [equalTo(field, wanted)] : []),
    ...(unwanted.length > 0 ? [otherThan(field, unwanted)] : []),
  ];
}

function toggled(values: readonly string[], value: string): readonly string[] {
  return values.includes(value) ? values.filter((other) => other !== value) : [...values, value];
}

/** Adds a value to the wanted values of a field, or removes it from them. */
export function toggleWanted(filters: Filters, field: Field, value: string): Filters {
  const unwanted = unwantedValues(filters, field.name).filter((other) => other !== value);
  return replaced(filters, field, toggled(wantedValues(filters, field.name), value), unwanted);
}

/** Adds a value to the unwanted values of a field, or removes it from them. */
export function toggleUnwanted(filters: Filters, field: Field, value: string): Filters {
  const wanted = wantedValues(filters, field.name).filter((other) => other !== value);
  return replaced(filters, field, wanted, toggled(unwantedValues(filters, field.name), value));
}

/** The filters without those for wanted values of a field. A facet counts with these, so that its other values stay visible. */
export function withoutWanted(filters: Filters, field: string): Filters {
  return filters.filter((filter) => filter.field !== field || !isPositive(filter));
}

/** The filter that matches what this one does not. Null matches neither. */
export function negated(filter: Filter, type: FieldType): Filter {
  return { ...filter, operator: oppositeOf(filter.operator, type) };
}

/** The filters as parameters of the query route, such as `status__gte=500`. */
export function filterParameters(filters: Filters): readonly (readonly [string, string])[] {
  return filters.flatMap(({ field, operator, values }) =>
    values.map((value) => [`${field}__${operator === 'not_in' ? 'ne' : operator}`, value] as const),
  );
}

/** Combines filters where possible: the route treats several `in` of a field as one set, so they are shown as one filter. */
export function gathered(filters: Filters): Filters {
  return gatherFilters(
    filters.flatMap(({ field, operator, values }) =>
      values.map((value) => ({ field, operator: operator === 'not_in' ? 'ne' : operator, value })),
    ),
  );
}

/** Combines parameters of the query route to filters. Several `in` of a field become one filter, and so do several `ne`. */
export function gatherFilters(
  parameters: readonly { readonly field: string; readonly operator: Operator; readonly value: string }[],
): Filters {
  const filters: Filter[] = [];
  for (const { field, operator, value } of parameters) {
    const isOfSameFilter = (other: Filter): boolean =>
      other.field === field &&
      (other.operator === operator || (operator === 'ne' && other.operator === 'not_in'));
    const found = operator === 'ne' || takesMany(operator) ? filters.findIndex(isOfSameFilter) : -1;
    if (found < 0) filters.push({ field, operator, values: [value] });
    else if (!filters[found]!.values.includes(value))
      filters[found] = {
        field,
        operator: operator === 'ne' ? 'not_in' : operator,
        values: [...filters[found]!.values, value],
      };
  }
  return filters;
}
