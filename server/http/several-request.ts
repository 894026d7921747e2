import {
  lackedField,
  predicatesMax,
  type Predicate,
  type Schema,
  type SeveralQuery,
  type SeveralStore,
} from '../../engine/index.js';
import { anyField } from '../../agents/definition/filter.js';
import { groupNames } from '../../agents/definition/filter-operators.js';
import { percentDecode, readParameters, type FilterContext } from './parameters.js';
import { countLists, countParameters, countRequestOf, type CountRequest } from './count-request.js';
import { badParameter, ProblemError } from './problem.js';
import { queryParameters, queryOf, type QueryContext } from './query-request.js';

/** One parameter of a query string, as it was sent and decoded. */
interface Parameter {
  readonly raw: string;
  readonly key: string;
  readonly value: string;
}

function parametersOf(rawQuery: string): Parameter[] {
  return rawQuery
    .split('&')
    .filter((raw) => raw !== '')
    .map((raw) => {
      const equals = raw.indexOf('=');
      const key = percentDecode(equals < 0 ? raw : raw.slice(0, equals), true, 'the query string');
      const value =
        equals < 0 ? '' : percentDecode(raw.slice(equals + 1), true, `the value of "${key}"`, key);
      return { raw, key, value };
    });
}

/** What an agent makes of a filter: it reads the filter, or the filter holds for all of its records, or for none, as it lacks the field. */
type Holds = 'read' | 'always' | 'never';

/** @param key `<field>__<operator>` */
function holdsFor(key: string, value: string, { fields }: Schema): Holds {
  const separator = key.lastIndexOf('__');
  const [name, operator] = [key.slice(0, Math.max(0, separator)), key.slice(separator + 2)];
  if (name === anyField) {
    if (fields.some(({ type }) => type === 'string')) return 'read';
    return operator.startsWith('not_') ? 'always' : 'never';
  }
  if (fields.some((field) => field.name === name)) return 'read';
  return operator === 'exists' && value === 'false' ? 'always' : 'never';
}

/** The key and the value of a filter, which may be a member of a group. */
function filterOf({ key, value }: Parameter): readonly [key: string, value: string] {
  if (!groupNames.includes(key)) return [key, value];
  const equals = value.indexOf('=');
  return equals < 0 ? ['', ''] : [value.slice(0, equals), value.slice(equals + 1)];
}

/**
 * Parses the query string of a request for several agents: `parseQueryRequest` for each of them, with the filters on the fields that it has.
 * Throws a `ProblemError` (400) that names the parameter, and the agent where only one can't read a filter.
 */
export function parseSeveralRequest(
  store: SeveralStore,
  rawQuery: string,
  context: QueryContext,
): SeveralQuery {
  const { given, of } = readSeveral(store, rawQuery, queryParameters, context);
  return { ...queryOf(given, [], context, store.cursors), of };
}

/** A parsed query string for several agents: the parameters that are no filters, and the predicates of each, null where none can match. */
interface ReadSeveral {
  readonly given: ReadonlyMap<string, readonly string[]>;
  readonly of: readonly (readonly Predicate[] | null)[];
}

function readSeveral(
  { stores, schema }: SeveralStore,
  rawQuery: string,
  names: readonly string[],
  context: FilterContext,
  lists: readonly string[] = [],
): ReadSeveral {
  const all = parametersOf(rawQuery).filter(({ key }) => key !== '_');
  const isOfAnswer = ({ key }: Parameter): boolean => names.includes(key);
  const filters = all.filter((parameter) => !isOfAnswer(parameter));
  if (filters.length > predicatesMax)
    throw badParameter(filters[predicatesMax]!.key, `more than ${predicatesMax} filters in one request`);
  // What none of the agents can read is explained by the fields of all.
  for (const filter of filters) {
    const [key, value] = filterOf(filter);
    if (holdsFor(key, value, schema) === 'read' && key.includes('__')) continue;
    readParameters(filter.raw, names, context);
  }
  const raw = all.filter(isOfAnswer).map((parameter) => parameter.raw);
  const { given } = readParameters(raw.join('&'), names, context, lists);
  const { timezone } = context;
  const of = stores.map(({ name, schema: own }) => {
    // Asking for the time marks a query as one of this moment.
    const ofAgent = {
      schema: own,
      timezone,
      get now() {
        return context.now;
      },
    };
    return predicatesOf(filters, name, ofAgent);
  });
  return { given, of };
}

/** Holds for no record. */
export const never: Predicate = { kind: 'any', members: [] };

/**
 * Parses the query string of a count of several agents: `parseCountRequest` for each of them. A field that an agent lacks is null in all of its
 * records. Throws a `ProblemError` (400) that names the parameter; a field to count by, or whose numbers are asked for, must have the same type
 * in all agents that have it.
 */
export function parseSeveralCount(
  store: SeveralStore,
  rawQuery: string,
  context: FilterContext,
): CountRequest {
  const { given, of } = readSeveral(store, rawQuery, countParameters, context, countLists);
  const request = countRequestOf(given, [], context, store.cursors);
  const { time, values, numbers } = request.query;
  for (const field of [time?.field, values?.field]) assertOneType(store, field, 'by');
  for (const field of numbers?.fields ?? []) assertOneType(store, field, 'of');
  const queries = store.stores.map(({ schema: { fields } }, k) => {
    const own = (field: number): number => {
      const index = fields.findIndex(({ name }) => name === context.schema.fields[field]!.name);
      return index < 0 ? lackedField : index;
    };
    return {
      predicates: of[k] ?? [never],
      time: time && { ...time, field: own(time.field) },
      values: values && { ...values, field: own(values.field) },
      numbers: numbers && { ...numbers, fields: numbers.fields.map(own) },
    };
  });
  return { ...request, of: queries };
}

function assertOneType({ stores, schema }: SeveralStore, field: number | undefined, parameter: string): void {
  if (field === undefined) return;
  const { name } = schema.fields[field]!;
  const typed = stores.flatMap((store) => {
    const own = store.schema.fields.find((each) => each.name === name);
    return own === undefined ? [] : [{ agent: store.name, type: own.type }];
  });
  const other = typed.find(({ type }) => type !== typed[0]!.type);
  if (other !== undefined)
    throw badParameter(
      parameter,
      `field "${name}" is of type ${typed[0]!.type} in agent "${typed[0]!.agent}" and of type ${other.type} in agent ` +
        `"${other.agent}": they can't be counted together`,
    );
}

/** An agent's predicates; null where no record of it can match. */
function predicatesOf(
  filters: readonly Parameter[],
  agent: string,
  context: FilterContext,
): readonly Predicate[] | null {
  const kept: Parameter[] = [];
  const groups = new Map<string, Holds[]>();
  for (const filter of filters) {
    const isMember = groupNames.includes(filter.key);
    const [key, value] = filterOf(filter);
    const holds = holdsFor(key, value, context.schema);
    if (isMember) groups.set(filter.key, [...(groups.get(filter.key) ?? []), holds]);
    else if (holds === 'never') return null;
    if (holds === 'read') kept.push(filter);
  }
  for (const members of groups.values()) if (members.every((holds) => holds === 'never')) return null;
  const rawQuery = kept
    .filter(({ key }) => groups.get(key)?.includes('always') !== true)
    .map(({ raw }) => raw);
  try {
    return readParameters(rawQuery.join('&'), [], context).predicates;
  } catch (error) {
    if (!(error instanceof ProblemError)) throw error;
    throw badParameter(error.parameter ?? '', `agent "${agent}": ${error.detail}`);
  }
}
