import type { Field, FieldType } from './field.js';
import { equalityOf, oppositeOf, takesMany, type Operator } from './operators.js';

/** One condition. All that are given must hold. */
export interface Filter {
  readonly field: string;
  readonly operator: Operator;
  /** One value, but for `in` and `not_in`. */
  readonly values: readonly string[];
}

type Filters = readonly Filter[];

function isPositive({ operator }: Filter): boolean {
  return operator === 'eq' || operator === 'exact' || operator === 'in';
}

function isNegative({ operator }: Filter): boolean {
  return operator === 'ne' || operator === 'not_in';
}

/** A filter for one of several values, or for the only one. */
function equalTo(field: Field, values: readonly string[]): Filter {
  return { field: field.name, operator: values.length === 1 ? equalityOf(field.type) : 'in', values };
}

function otherThan(field: Field, values: readonly string[]): Filter {
  return { field: field.name, operator: values.length === 1 ? 'ne' : 'not_in', values };
}

/** The values that a field must have one of; none where it may have any. */
export function wantedValues(filters: Filters, field: string): readonly string[] {
  return filters
    .filter((filter) => filter.field === field && isPositive(filter))
    .flatMap(({ values }) => values);
}

/** The values that a field must not have. */
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

/** Wants a value of a field besides those wanted already, or no longer wants it. */
export function toggleWanted(filters: Filters, field: Field, value: string): Filters {
  const unwanted = unwantedValues(filters, field.name).filter((other) => other !== value);
  return replaced(filters, field, toggled(wantedValues(filters, field.name), value), unwanted);
}

/** Leaves a value of a field out besides those left out already, or takes it in again. */
export function toggleUnwanted(filters: Filters, field: Field, value: string): Filters {
  const wanted = wantedValues(filters, field.name).filter((other) => other !== value);
  return replaced(filters, field, wanted, toggled(unwantedValues(filters, field.name), value));
}

/** The filters but for those that say which values a field has: what a facet counts, so that its other values stay in sight. */
export function withoutWanted(filters: Filters, field: string): Filters {
  return filters.filter((filter) => filter.field !== field || !isPositive(filter));
}

/** The filter that matches what this one does not, null aside. */
export function negated(filter: Filter, type: FieldType): Filter {
  return { ...filter, operator: oppositeOf(filter.operator, type) };
}

/** The parameters of the route: `status__gte=500`. */
export function filterParameters(filters: Filters): readonly (readonly [string, string])[] {
  return filters.flatMap(({ field, operator, values }) =>
    values.map((value) => [`${field}__${operator === 'not_in' ? 'ne' : operator}`, value] as const),
  );
}

/** The same filters as few as they can be: the route takes several `in` of a field as one set, so they are shown as one. */
export function gathered(filters: Filters): Filters {
  return gatherFilters(
    filters.flatMap(({ field, operator, values }) =>
      values.map((value) => ({ field, operator: operator === 'not_in' ? 'ne' : operator, value })),
    ),
  );
}

/** Reads parameters of the route as filters. Several `in` of a field are one filter, and so are several `ne`. */
export function gatherFilters(
  parameters: readonly { readonly field: string; readonly operator: Operator; readonly value: string }[],
): Filters {
  const filters: Filter[] = [];
  for (const { field, operator, value } of parameters) {
    const kin = (other: Filter): boolean =>
      other.field === field &&
      (other.operator === operator || (operator === 'ne' && other.operator === 'not_in'));
    const found = operator === 'ne' || takesMany(operator) ? filters.findIndex(kin) : -1;
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
