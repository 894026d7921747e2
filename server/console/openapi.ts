import {
  countTopMax,
  lineFormats,
  numberFunctions,
  predicatesMax,
  type LineFormat,
} from '../../engine/index.js';
import { countFormats, countParameters } from '../http/count-request.js';
import {
  anywhereOps,
  fieldTypes,
  groupNames,
  operatorsOf,
} from '../../agents/definition/filter-operators.js';
import { topDefault } from '../http/http-limits.js';
import { problemStatuses, reasonPhrase } from '../http/problem.js';
import { queryParameters } from '../http/query-request.js';

/** A part of the document: JSON. */
type Part = Readonly<Record<string, unknown>>;

/** What filters compare, by operator. */
const meanings: Readonly<Record<string, string>> = {
  eq: 'equal',
  ne: 'not equal',
  gt: 'greater than',
  gte: 'greater than or equal',
  lt: 'less than',
  lte: 'less than or equal',
  exact: 'equal byte for byte',
  like: 'contains; ignores case',
  prefix: 'begins with; ignores case',
  suffix: 'ends with; ignores case',
  not_like: 'the opposite of `like`',
  not_prefix: 'the opposite of `prefix`',
  not_suffix: 'the opposite of `suffix`',
  regex: 'has a match of a regular expression (RE2)',
  not_regex: 'the opposite of `regex`',
  since: 'at or after a date, a date and time, or a span back from now such as `2h`',
  until: 'before such a time',
  in: 'equal to one of the values: repeat the parameter',
  exists: '`true`: has a value; `false`: is null',
};

const cursor = { type: 'string', examples: ['079bd70000000019'] };
const count = { type: 'integer', minimum: 0 };
const text = { type: 'string' };
const value = { type: ['string', 'number', 'boolean', 'null'] };
const list = (items: Part): Part => ({ type: 'array', items });

/** An object with members that are always there, and others. */
function object(members: Readonly<Record<string, Part>>, others: Readonly<Record<string, Part>> = {}): Part {
  return { type: 'object', required: Object.keys(members), properties: { ...members, ...others } };
}

/** The values of the parameters of the routes, by name, and what they mean. */
export const parametersKnown: Readonly<Record<string, Part>> = {
  limit: { ...count, default: 100, description: 'The maximum number of records.' },
  after: { ...cursor, description: 'Only records after this `_cursor`.' },
  before: { ...cursor, description: 'Only records before this `_cursor`.' },
  fields: { ...list(text), description: 'Only these fields, in this order, behind `_cursor`.' },
  by: { ...list(text), maxItems: 2, description: 'A time and a step (`time:1h`), another field, or both.' },
  of: { ...list(text), description: 'Fields to tell numbers of, besides the count.' },
  fn: { ...list(text), description: 'What of them: sum, avg, min, max, p50, p90, p95, p99, distinct.' },
  top: {
    ...count,
    minimum: 1,
    maximum: countTopMax,
    default: topDefault,
    description: 'How many values.',
  },
  zone: { ...text, description: 'The time zone of the steps, such as `Europe/Oslo`.' },
};

/** Parameters of a query string. A list of fields is one value, other lists repeat the parameter. */
function inQuery(names: readonly string[], formats: readonly string[]): Part[] {
  const format = { enum: formats, default: formats[0], description: 'The form of the answer.' };
  return names.map((name) => {
    const schema = name === 'format' ? format : (parametersKnown[name] ?? text);
    return { name, in: 'query', schema, ...(name === 'fields' ? { style: 'form', explode: false } : {}) };
  });
}

/** The filters as one parameter, an object: each of its keys is a parameter of the query string. */
function filterParameters(): Part[] {
  const operators = [...new Set(fieldTypes.flatMap(operatorsOf))];
  const byType = fieldTypes.map((type) => `- \`${type}\`: ${operatorsOf(type).join(', ')}`);
  const filters = {
    name: 'filters',
    in: 'query',
    description: [
      `Filters \`<field>__<operator>=<value>\`, at most ${predicatesMax}; all must hold. Operators by the type of the field:`,
      ...byType,
      `- \`*\`, every string of the record: ${anywhereOps.join(', ')}`,
      '',
      ...operators.map((each) => `\`${each}\`: ${meanings[each] ?? each}`),
    ].join('\n'),
    style: 'form',
    explode: true,
    schema: {
      type: 'object',
      propertyNames: { pattern: `^.+__(?:${[...new Set([...operators, ...anywhereOps])].join('|')})$` },
      additionalProperties: { type: ['string', 'number', 'boolean', 'array'] },
    },
    example: { status__gte: 500, path__prefix: '/api/' },
  };
  const groups = groupNames.map((name) => ({
    name,
    in: 'query',
    description: 'Filters of a group, of which one must hold: `status__gte=500`.',
    schema: list(text),
  }));
  return [filters, ...groups];
}

/** By field and function. */
const numbers = {
  type: 'object',
  additionalProperties: { type: 'object', additionalProperties: { type: ['number', 'string', 'null'] } },
};
const bucket = object(
  { from: { type: 'integer' }, until: { type: 'integer' }, count },
  { of: numbers, values: list(count), ofValues: list(numbers) },
);
const schemas = {
  Record: { ...object({ _cursor: cursor }), additionalProperties: value },
  Problem: object({ type: text, title: text, status: count, detail: text }, { parameter: text }),
  Count: object(
    { agent: text, count },
    {
      of: numbers,
      approximate: list({ enum: numberFunctions }),
      time: object({ field: text, step: text, zone: text, nulls: count, buckets: list(bucket) }),
      values: object({
        field: text,
        top: list(object({ value, count }, { of: numbers })),
        other: count,
        nulls: count,
        distinct: count,
      }),
    },
  ),
  Agents: object({ agents: list(text) }, { leftOut: { type: 'object', additionalProperties: text } }),
  Fields: object({
    name: text,
    schema: list(object({ name: text, type: { enum: fieldTypes } }, { description: text })),
  }),
};

const ref = (name: keyof typeof schemas): Part => ({ $ref: `#/components/schemas/${name}` });
const json = (schema: Part): Part => ({ 'application/json': { schema } });
const csv = { 'text/csv': { schema: text } };

const recordForms: Readonly<Record<LineFormat, Part>> = {
  jsonl: { 'application/x-ndjson': { schema: { ...text, description: 'a `Record` on each line' } } },
  json: json(list(ref('Record'))),
  csv,
};
const events = { ...text, description: 'with `Accept: text/event-stream`: new records as they arrive' };

/** Statuses of problems that only one route has: that for readers. */
const inner = ['409'];
/** Statuses of problems of routes that run a query. */
const ofQueries = ['429', '504'];

/** A route: its name for clients, its answer by media type, its parameters, and whether it runs a query. */
function get(id: string, summary: string, content: Part, parameters: Part[] = [], runs = false): Part {
  const statuses = problemStatuses.filter(
    (status) => !inner.includes(status) && (runs || !ofQueries.includes(status)),
  );
  const problems = statuses.map((status) => [status, { $ref: `#/components/responses/${status}` }]);
  const responses = { 200: { description: 'The answer.', content }, ...Object.fromEntries(problems) };
  return { get: { operationId: id, summary, parameters, responses } };
}

function paths(): Readonly<Record<string, Part>> {
  const agent = { $ref: '#/components/parameters/agent_name' };
  const filters = filterParameters();
  const ofQuery = [agent, ...inQuery(queryParameters, lineFormats), ...filters];
  const ofCount = [agent, ...inQuery(countParameters, countFormats), ...filters];
  const records = Object.assign(
    { 'text/event-stream': { schema: events } },
    ...Object.values(recordForms),
  ) as Part;
  const counts = { ...json(ref('Count')), ...csv };
  const status = json(object({ status: text }));
  const slow = json(object({ slow: list({ type: 'object' }) }));
  return {
    [queryPath]: get('queryLogs', 'Matching records, the oldest first', records, ofQuery, true),
    '/api/count/{agent_name}': get('countLogs', 'Counts of matching records', counts, ofCount, true),
    '/api/agents': get('listAgents', 'The names of the agents', json(ref('Agents'))),
    '/api/schema/{agent_name}': get('describeAgent', 'The fields of an agent', json(ref('Fields')), [agent]),
    '/api/slow': get('slowQueries', 'The newest slow queries', slow),
    '/metrics': get('metrics', 'Metrics in the text format of Prometheus', {
      'text/plain': { schema: text },
    }),
    '/livez': get('isLive', 'Whether the process answers', status),
    '/readyz': get('isReady', 'Whether the server can do all that it should', status),
    '/openapi.json': get('openapi', 'This document', json({ type: 'object' })),
    '/': get('viewer', 'The viewer, a page for browsers', { 'text/html': { schema: text } }),
  };
}

const queryPath = '/api/query/{agent_name}';

/**
 * The OpenAPI 3.1 document of both listeners, made of the tables by which requests are checked. The console answers all paths, the query
 * listener only that of queries. The routes for readers on other machines, which are of the same version, are left out.
 *
 * @param console its address in the document
 * @param query the address of the query listener, where that is known
 */
export function openApi(version: string, console: string, query?: string): Part {
  const all = paths();
  const servers = [{ url: console, description: 'the console' }];
  const both =
    query === undefined ? {} : { servers: [{ url: query, description: 'the query listener' }, ...servers] };
  const agentName = { name: 'agent_name', in: 'path', required: true, schema: text };
  const content = { 'application/problem+json': { schema: ref('Problem') } };
  const problems = problemStatuses.map((status) => [
    status,
    { description: reasonPhrase(Number(status)), content },
  ]);
  return {
    openapi: '3.1.1',
    info: {
      title: 'Logstrata',
      version,
      description: 'The console answers all paths, the query listener only `/api/query/`.',
      license: { name: 'MIT', identifier: 'MIT' },
    },
    servers,
    security: [{}, { token: [] }],
    paths: { ...all, [queryPath]: { ...both, ...all[queryPath] } },
    components: {
      securitySchemes: { token: { type: 'http', scheme: 'bearer' } },
      parameters: {
        agent_name: {
          ...agentName,
          description: "The agent's name. Queries and counts take 2 to 16 of them, too, separated by commas.",
        },
      },
      schemas,
      responses: Object.fromEntries(problems),
    },
  };
}
