import {
  type AnswerForm,
  type LineFormat,
  lineFormats,
  type Schema,
  type RecordStore,
  type SeveralCursors,
  type Query,
  agentsMax,
  isAgentName,
  knownQueriesMax,
} from '../../engine/index.js';
import { badParameter, ProblemError } from './problem.js';
import { didYouMean, listNames } from '../../agents/definition/suggestion.js';
import { parsePosition, readParameters, type FilterContext, percentDecode } from './parameters.js';

/**
 * Whether a client accepts gzip better than, or as well as, the plain body (RFC 9110, section 12.5.3): named, or covered by `*`,
 * with a weight above 0 that is not below that of `identity`. No header means no gzip here.
 */
export function acceptsGzip(header: string | undefined): boolean {
  if (header === undefined) return false;
  const weights = new Map<string, number>();
  for (const part of header.split(',')) {
    const [coding, ...parameters] = part.split(';').map((text) => text.trim().toLowerCase());
    if (coding === undefined || coding === '') continue;
    weights.set(coding === 'x-gzip' ? 'gzip' : coding, weightOf(parameters));
  }
  const gzip = weights.get('gzip') ?? weights.get('*') ?? 0;
  return gzip > 0 && gzip >= (weights.get('identity') ?? 0);
}

/** A weight that can't be read is 0: the plain body is right for everybody. */
function weightOf(parameters: readonly string[]): number {
  const weight = parameters.find((parameter) => parameter.startsWith('q='))?.slice(2);
  if (weight === undefined) return 1;
  return /^(?:0(?:\.\d{0,3})?|1(?:\.0{0,3})?)$/.test(weight) ? Number(weight) : 0;
}

/** The decoded values of the parameters that say what an answer looks like. */
export interface GivenForm {
  readonly fields: string | undefined;
  readonly format: string | undefined;
}

/** The form that a request asks for; undefined for JSON Lines with all fields. Throws a `ProblemError` that names the parameter. */
function parseAnswerForm(
  { fields, format }: GivenForm,
  schema: Schema,
  always: readonly string[],
): AnswerForm | undefined {
  if (fields === undefined && format === undefined) return undefined;
  return {
    format: format === undefined ? 'jsonl' : parseFormat(format),
    fields: fields === undefined ? null : parseFields(fields, schema, always),
  };
}

function parseFormat(text: string): LineFormat {
  const format = lineFormats.find((known) => known === text);
  if (format !== undefined) return format;
  throw badParameter(
    'format',
    `"format" must be one of ${lineFormats.join(', ')}, not ${JSON.stringify(text)}${didYouMean(text, lineFormats)}`,
  );
}

/** Indexes of the named fields, in the order in which they are named. An empty text names none: then records have their cursors alone. */
function parseFields(text: string, schema: Schema, always: readonly string[]): number[] {
  const names = schema.fields.map((field) => field.name);
  const fields: number[] = [];
  for (const name of text === '' ? [] : text.split(',')) {
    const field = names.indexOf(name);
    if (field < 0) throw badParameter('fields', unknownField(name, names, always));
    if (fields.includes(field)) throw badParameter('fields', `"fields" names ${JSON.stringify(name)} twice`);
    fields.push(field);
  }
  return fields;
}

function unknownField(name: string, names: readonly string[], always: readonly string[]): string {
  if (always.includes(name)) return `"fields" names "${name}", which every record has anyway: remove it`;
  return (
    `unknown field ${JSON.stringify(name)} in "fields"${didYouMean(name, names)}: ` +
    `it takes field names separated by commas. The fields are ${listNames(names)}`
  );
}

/** A request target that was parsed, and the store that it asks. */
export interface ParsedTarget {
  /** The agent's name; those of several are joined by commas. */
  readonly agent: string;
  readonly names: readonly string[];
  readonly store: RecordStore;
  /** The fields that the query was parsed against. */
  readonly schema: Schema;
  readonly query: Query;
}

/** A cache of the targets that were parsed last, because clients that poll send the same target again and again. */
export class KnownQueries {
  /** By path and query string as they were sent, the one that was parsed first coming first. */
  readonly #known = new Map<string, ParsedTarget>();

  get(target: string): ParsedTarget | undefined {
    return this.#known.get(target);
  }

  keep(target: string, understood: ParsedTarget): void {
    this.#known.delete(target);
    this.#known.set(target, understood);
    if (this.#known.size <= knownQueriesMax) return;
    for (const oldest of this.#known.keys()) {
      this.#known.delete(oldest);
      return;
    }
  }
}

/** What a query is parsed against: the agent's fields, the time, and the limits of the server. */
export interface QueryContext extends FilterContext {
  /** Largest `limit` that a request may ask for. */
  readonly limitMax: number;
  /** `limit` of a request that gives none. */
  readonly limitDefault: number;
}

/** The parameters of a query besides its filters. */
export const queryParameters = ['limit', 'after', 'before', 'fields', 'format'] as const;

/**
 * Parses a raw query string (what follows the `?`, not decoded; may be empty) against an agent's schema.
 * Throws a `ProblemError` (400) that names the parameter at fault and what was expected.
 */
export function parseQueryRequest(rawQuery: string, context: QueryContext): Query {
  const { given, predicates } = readParameters(rawQuery, queryParameters, context);
  return queryOf(given, predicates, context);
}

/**
 * A query with the parameters that are no filters.
 *
 * @param cursors those of several agents, if these are asked
 */
export function queryOf(
  given: ReadonlyMap<string, readonly string[]>,
  predicates: Query['predicates'],
  context: QueryContext,
  cursors?: SeveralCursors,
): Query {
  const [limit, after, before, fields, format] = queryParameters.map((name) => given.get(name)?.[0]);
  const always = cursors === undefined ? ['_cursor'] : ['_cursor', '_agent'];
  const form = parseAnswerForm({ fields, format }, context.schema, always);
  return {
    limit: parseLimit(limit, context),
    after: parsePosition('after', after, cursors),
    before: parsePosition('before', before, cursors),
    predicates,
    ...(form === undefined ? {} : { form }),
  };
}

/**
 * The agent's name in a raw path (not decoded, without the query string) of the form `/api/{what}/{agent_name}`. Throws a `ProblemError`:
 * 404 for another path or a name that no agent can have, 400 for a bad percent-escape in the name.
 */
export function parseAgentPath(rawPath: string, what: string): string {
  return checkedName(nameInPath(rawPath, what));
}

/** The names of one agent or of several in such a path. Throws in addition 400 for names that can't be asked together. */
export function parseAgentsPath(rawPath: string, what: string): readonly string[] {
  const list = nameInPath(rawPath, what);
  return list.includes(',') ? agentNames(list).map(checkedName) : [checkedName(list)];
}

function checkedName(name: string): string {
  if (!isAgentName(name)) throw new ProblemError(404, `there is no agent ${JSON.stringify(name)}`);
  return name;
}

function nameInPath(rawPath: string, what: string): string {
  const segments = rawPath.split('/');
  const [root, api, word, rawName] = segments;
  if (
    segments.length !== 4 ||
    root !== '' ||
    rawName === undefined ||
    !isSegment(api, 'api') ||
    !isSegment(word, what)
  ) {
    throw new ProblemError(404, `nothing is at this path; the route is /api/${what}/{agent_name}`);
  }
  return percentDecode(rawName, false, 'the agent name');
}

/** The names in a list for several agents. Throws a `ProblemError` (400) for one that is given twice or is empty, and for too many. */
export function agentNames(list: string): readonly string[] {
  const names = list.split(',');
  if (names.includes(''))
    throw new ProblemError(400, `a name is empty among the agents ${JSON.stringify(list)}`);
  const twice = names.find((name, i) => names.indexOf(name) < i);
  if (twice !== undefined) throw new ProblemError(400, `the agent ${JSON.stringify(twice)} is named twice`);
  if (names.length > agentsMax)
    throw new ProblemError(400, `${names.length} agents, but at most ${agentsMax} can be asked together`);
  return names;
}

function isSegment(raw: string | undefined, expected: string): boolean {
  if (raw === undefined || raw === expected) return raw !== undefined;
  try {
    return percentDecode(raw, false, 'the path') === expected;
  } catch {
    // A segment that can't be decoded is not the expected one, so the answer is 404 as for any other path.
    return false;
  }
}

function parseLimit(text: string | undefined, context: QueryContext): number {
  if (text === undefined) return context.limitDefault;
  if (!/^\d+$/.test(text)) {
    throw badParameter(
      'limit',
      `"limit" must be a non-negative decimal integer, not ${JSON.stringify(text)}`,
    );
  }
  const limit = Number(text);
  if (limit > context.limitMax) {
    throw badParameter('limit', `"limit" is ${text}, more than the maximum of ${context.limitMax} records`);
  }
  return limit;
}
