import {
  type ConsoleAgents,
  type ConsoleRoute,
  jsonHead,
  sendJson,
  type ConsoleRoutes,
} from './console-router.js';
import {
  borderOf,
  encodeBorder,
  type AgentStore,
  rowGroupRowsMax,
  rowsBetween,
  schemaTag,
  type Position,
  type RowsQuestion,
  type Schema,
} from '../../engine/index.js';
import { percentDecode, parsePosition, readParameters } from '../http/parameters.js';
import { agentOfPath, type QueryRoute } from '../route/query-route.js';
import { uncachedHead } from '../route/http-answer.js';
import { ServerMetrics } from './server-metrics.js';
import { badParameter, ProblemError } from '../http/problem.js';
import { type Admission, inSlot } from '../pace/admission.js';
import { type CountOptions, CountRoute } from './count-route.js';
import type { ServerFigures } from './metric.js';
import { ViewerRoute } from './viewer-route.js';
import { openApi } from './openapi.js';

/**
 * `GET /api/agents`: the names of the agents that are served, in the format of the public service: `{"agents":["app","nginx"]}`. Where
 * agents are left out, `leftOut` says why, by name. A caller whose token is for some agents gets only those.
 */
export function agentsRoute(served: ConsoleAgents): ConsoleRoute {
  return {
    rights: 'by agent',
    answer(_request, response, _target, caller) {
      const agents = [...served.keys()].filter((agent) => caller.may(agent));
      const leftOut = [...(served.leftOut ?? [])].filter(([agent]) => caller.may(agent));
      const reasons = leftOut.length === 0 ? {} : { leftOut: Object.fromEntries(leftOut) };
      return sendJson(response, { agents: agents.sort(), ...reasons });
    },
  };
}

/** The agents of a writer by name, as readers on other machines query them. */
export type WrittenAgents = ReadonlyMap<string, { readonly store: AgentStore }>;

/**
 * `GET /api/border/{agent_name}?known=…`: the border of an agent, which says where each of its records is, as JSON (`encodeBorder`). Leaves
 * out the units of the far tier where `known` is their current tag, as the reader has them then.
 */
function borderRoute(agents: WrittenAgents): ConsoleRoute {
  return {
    rights: 'by agent',
    async answer(_request, response, { rawPath, rawQuery }, caller) {
      const { found: agent } = agentOfPath(rawPath, 'border', caller, agents);
      const [key, value = ''] = rawQuery.split('=');
      const known = key === 'known' ? percentDecode(value, true, 'the tag') : null;
      await response.send(jsonHead, Buffer.from(encodeBorder(await borderOf(agent.store), known)));
    },
  };
}

/** `GET /metrics`: the metrics of the server, in the text format of Prometheus. */
function metricsRoute(metrics: ServerMetrics): ConsoleRoute {
  return {
    async answer(_request, response) {
      const text = await metrics.text();
      await response.send(uncachedHead(metrics.contentType), Buffer.from(text));
    },
  };
}

/** Response header: whether there may be more rows beyond the last one of the response. */
export const moreHeader = 'Logstrata-More';

const parameters = ['tag', 'from', 'to', 'direction', 'limit', 'fields'] as const;

/**
 * `GET /api/rows/{agent_name}`: records between two positions, for readers on other machines, as columns (`rowsBetween`). Filters are
 * written as in queries. Fields are given by their index in the schema, so the parameter `tag` must be the schema's current tag; otherwise
 * the answer is 409. Uses the slots of the server.
 */
function rowsRoute(
  agents: WrittenAgents,
  admission: Admission,
  { timezone, queryTimeoutMs: timeoutMs, now }: Pick<CountOptions, 'timezone' | 'queryTimeoutMs' | 'now'>,
): ConsoleRoute {
  const late = `the query of a reader ran longer than ${timeoutMs / 1000} s, the time limit of the writer`;
  return {
    rights: 'by agent',
    async answer({ remoteAddress: client }, response, { rawPath, rawQuery }, caller) {
      const { store } = agentOfPath(rawPath, 'rows', caller, agents).found;
      const question = parseRows(rawQuery, store.schema, timezone, now());
      const answer = await inSlot(admission, { client, response, timeoutMs, late }, (signal) =>
        rowsBetween(store, question, { signal }),
      );
      const more = { [moreHeader]: answer.isCut ? 'yes' : 'no' };
      await response.send(uncachedHead('application/octet-stream', more), answer.bytes);
    },
  };
}

function parseRows(rawQuery: string, schema: Schema, timezone: string, now: number): RowsQuestion {
  // Filters can only be parsed once it is known that reader and writer have the same fields.
  const tag = schemaTag(schema);
  if (!rawQuery.split('&').includes(`tag=${tag}`))
    throw new ProblemError(409, 'the fields of the agent differ from those that the reader knows');
  const { given, predicates } = readParameters(rawQuery, parameters, { schema, timezone, now });
  const one = (name: (typeof parameters)[number]): string => given.get(name)?.[0] ?? '';
  const direction = one('direction');
  if (direction !== 'forward' && direction !== 'backward')
    throw badParameter('direction', '"direction" must be forward or backward');
  return {
    from: positionOf('from', one('from')),
    to: positionOf('to', one('to')),
    direction,
    limit: countOf('limit', one('limit'), rowGroupRowsMax),
    predicates,
    fields:
      one('fields') === ''
        ? []
        : one('fields')
            .split(',')
            .map((text) => countOf('fields', text, schema.fields.length - 1)),
  };
}

function positionOf(name: 'from' | 'to', text: string): Position {
  const position = parsePosition(name, text);
  if (position === undefined) throw badParameter(name, `"${name}" is missing`);
  return position;
}

function countOf(name: string, text: string, max: number): number {
  if (/^\d{1,9}$/.test(text) && Number(text) <= max) return Number(text);
  throw badParameter(name, `"${name}" must be whole numbers from 0 to ${max}, not ${JSON.stringify(text)}`);
}

/**
 * `GET /api/schema/{agent_name}`: the fields of an agent in the order that they have in its records, in the format of the public service:
 * `{"name":"nginx","schema":[{"name":"time","type":"time"},…]}`. Unlike there, a field may have a description.
 */
export function schemaRoute(agents: ConsoleAgents): ConsoleRoute {
  return {
    rights: 'by agent',
    answer(_request, response, { rawPath }, caller) {
      const { name, found: agent } = agentOfPath(rawPath, 'schema', caller, agents);
      const schema = agent.definition.fields.map(({ name, type, description }) => ({
        name,
        type,
        description,
      }));
      return sendJson(response, { name, schema });
    },
  };
}

/** What the routes of the console use. */
export interface ServedThings {
  readonly version: string;
  readonly agents: ConsoleAgents;
  /** The same agents as readers on other machines query them; undefined where this server is a reader itself. */
  readonly written?: WrittenAgents | undefined;
  readonly route: QueryRoute;
  /** The slots of the query route, which counts use as well. */
  readonly admission: Admission;
  readonly counts: Omit<CountOptions, 'tally' | 'slow'>;
  /** Returns the current figures of the server. */
  readonly figures: () => Promise<ServerFigures>;
}

/** The routes of the console that need an open archive. */
export function makeRoutes({
  version,
  agents,
  written,
  route,
  admission,
  counts,
  figures,
}: ServedThings): ConsoleRoutes {
  const forReaders =
    written === undefined
      ? {}
      : {
          '/api/border/': borderRoute(written),
          '/api/rows/': rowsRoute(written, admission, counts),
        };
  return {
    ...forReaders,
    '/metrics': metricsRoute(new ServerMetrics(figures)),
    '/api/query/': route,
    '/api/count/': new CountRoute(agents, admission, { ...counts, tally: route.tally, slow: route.slow }),
    '/api/agents': agentsRoute(agents),
    '/api/schema/': schemaRoute(agents),
    // The most recent queries that took longer than `server.slow_query`, newest first.
    '/api/slow': { answer: (_request, response) => sendJson(response, { slow: route.slow.list() }) },
    // What the listeners answer, for clients that are made of it.
    '/openapi.json': {
      rights: 'by agent',
      answer: (_request, response) => sendJson(response, openApi(version, '/')),
    },
    '/': new ViewerRoute(),
  };
}
