import { operatorFacts, presence, typeFacts, type FieldType, type Field, type Operator } from './field.js';

export type { Operator };

/** The operators of a filter on `anyField`. */
export const anyFieldOperators: readonly Operator[] = ['like', 'not_like', 'regex', 'not_regex'];

/** An operator in words. */
export function operatorWords(operator: Operator): string {
  return operatorFacts[operator].words;
}

/** Whether a text is the name of an operator. */
export function isOperator(text: string): text is Operator {
  return Object.hasOwn(operatorFacts, text);
}

/** The operator that matches what this one does not. Null matches neither. */
function oppositeOf(operator: Operator, type: FieldType): Operator {
  const { opposite } = operatorFacts[operator];
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

/** Whether an operator takes no value. */
export function takesNone(operator: Operator): boolean {
  return (presence as readonly Operator[]).includes(operator);
}

/** A condition on a field. A record must satisfy all conditions, and one of each group of conditions. */
export interface Filter {
  readonly field: string;
  readonly operator: Operator;
  /** The values to compare with: one, none for `exists` and `not_exists`, or any number for `in` and `not_in`. */
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

/** The filter that matches what this one does not. Null matches neither, except of `exists`. */
export function negated(filter: Filter, type: FieldType): Filter {
  return { ...filter, operator: oppositeOf(filter.operator, type) };
}

/** Whether a filter can be one of several of which one must match. What excludes several values is several filters, which must all match. */
export function canBeMember({ operator, values }: Filter): boolean {
  return operator !== 'not_in' || values.length === 1;
}

/** Requires that a field has a value (`exists`) or none, or no longer requires it. */
export function togglePresence(filters: Filters, field: string, operator: Operator): Filters {
  const others = filters.filter((filter) => filter.field !== field || !takesNone(filter.operator));
  const isSet = filters.some((filter) => filter.field === field && filter.operator === operator);
  return isSet ? others : [...others, { field, operator, values: [] }];
}

/** A parameter of the query route. */
export type Parameter = readonly [name: string, value: string];

/** The filters as parameters of the query route, such as `status__gte=500`. */
export function filterParameters(filters: Filters): readonly Parameter[] {
  return filters.flatMap(({ field, operator, values }): readonly Parameter[] => {
    if (takesNone(operator)) return [[`${field}__exists`, String(operator === 'exists')]];
    return values.map((value) => [`${field}__${operator === 'not_in' ? 'ne' : operator}`, value]);
  });
}

/** Maximum number of groups in a request. */
export const groupsMax = 9;

/** The parameter of the query route for the members of a group; the first group is 0. */
function groupName(group: number): string {
  return group === 0 ? 'any' : `any${group + 1}`;
}

/** Lists of parameters, of each of which one must match, as parameters of the query route. A list of one is that parameter. */
export function groupParameters(lists: readonly (readonly Parameter[])[]): readonly Parameter[] {
  const groups = lists.filter(({ length }) => length > 1);
  return lists.flatMap((members): readonly Parameter[] => {
    if (members.length === 1) return members;
    const name = groupName(groups.indexOf(members));
    return members.map(([filter, value]) => [name, `${filter}=${value}`]);
  });
}

/** Combines filters where possible: the route treats several `in` of a field as one set, so they are shown as one filter. */
export function gathered(filters: Filters): Filters {
  return gatherFilters(filterParameters(filters));
}

function readFilter([name, value]: Parameter): Filter | undefined {
  const at = name.lastIndexOf('__');
  const operator = name.slice(at + 2);
  if (at <= 0 || !isOperator(operator)) return undefined;
  const field = name.slice(0, at);
  if (!takesNone(operator))
    return { field, operator: operator === 'not_in' ? 'ne' : operator, values: [value] };
  return { field, operator: value === 'false' ? 'not_exists' : operator, values: [] };
}

/**
 * Reads parameters of the query route as filters; others are ignored. Several `in` of a field become one filter, and so do several `ne`,
 * except in a group, where one of them is enough.
 */
function gatherFilters(parameters: readonly Parameter[], isGroup = false): Filters {
  const filters: Filter[] = [];
  for (const parameter of parameters) {
    const filter = readFilter(parameter);
    if (filter === undefined) continue;
    const { field, operator, values } = filter;
    const isOfSameFilter = (other: Filter): boolean =>
      other.field === field &&
      (other.operator === operator || (operator === 'ne' && other.operator === 'not_in'));
    const isGathered = takesMany(operator) || takesNone(operator) || (operator === 'ne' && !isGroup);
    const found = isGathered ? filters.findIndex(isOfSameFilter) : -1;
    const all = [...new Set([...(filters[found]?.values ?? []), ...values])];
    if (found < 0) filters.push(filter);
    else
      filters[found] = {
        field,
        operator: operator === 'ne' && all.length > 1 ? 'not_in' : operator,
        values: all,
      };
  }
  return filters;
}

/** The filters of a view: single ones, and groups of two or more, of each of which one must match. */
export interface Conditions {
  readonly filters: Filters;
  readonly groups: readonly Filters[];
}

/** Reads the filters and the groups among the parameters of an address. */
export function readConditions(parameters: readonly Parameter[]): Conditions {
  const groups = Array.from({ length: groupsMax }, (_, group) => {
    const members = parameters.filter(([name]) => name === groupName(group)).map(([, value]) => value);
    return gatherFilters(
      members.map((member) => {
        const at = member.indexOf('=');
        return [member.slice(0, Math.max(0, at)), member.slice(at + 1)];
      }),
      true,
    );
  });
  return conditionsOf([...gatherFilters(parameters).map((filter) => [filter]), ...groups]);
}

/** The conditions as one list of groups, in which a single filter is a group of one. */
export function conditionList({ filters, groups }: Conditions): readonly Filters[] {
  return [...filters.map((filter) => [filter]), ...groups];
}

/** The conditions of a list like that of `conditionList`. */
export function conditionsOf(list: readonly Filters[]): Conditions {
  // Several sets of a field in a group are one set, which may be the only member.
  const groups = list.map((group) =>
    group.length > 1 ? gatherFilters(filterParameters(group), true) : group,
  );
  return {
    filters: gathered(groups.filter(({ length }) => length === 1).flat()),
    groups: groups.filter(({ length }) => length > 1),
  };
}
