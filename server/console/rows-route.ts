import {
  rowGroupRowsMax,
  schemaTag,
  type Position,
  type RowsQuestion,
  type Schema,
} from '../../engine/index.js';
import type { Caller } from '../access/caller.js';
import { badParameter, ProblemError } from '../http/problem.js';
import type { TransportRequest, TransportResponse } from '../http/transport.js';
import { type Admission, inSlot } from '../pace/admission.js';
import { parsePosition, readParameters } from '../request/parameters.js';
import type { RequestTarget } from '../request/request-check.js';
import { agentOfPath } from '../route/query-route.js';
import { noSniffHeaders } from '../route/http-answer.js';
import type { WrittenAgents } from './border-route.js';
import type { ConsoleRoute } from './console-route.js';
import type { CountOptions } from './count-route.js';

/** Response header: whether there may be more rows beyond the last one of the response. */
export const moreHeader = 'Logstrata-More';

const parameters = ['tag', 'from', 'to', 'direction', 'limit', 'fields'] as const;

/**
 * `GET /api/rows/{agent_name}`: records between two positions, for readers on other machines, in ClickHouse's format `Native`. Filters are
 * written as in queries. Fields are given by their index in the schema, so the parameter `tag` must be the schema's current tag; otherwise
 * the answer is 409. Uses the slots of the server.
 */
export class RowsRoute implements ConsoleRoute {
  readonly rights = 'by agent';
  readonly #agents: WrittenAgents;
  readonly #admission: Admission;
  readonly #options: Pick<CountOptions, 'timezone' | 'queryTimeoutMs' | 'now'>;

  constructor(
    agents: WrittenAgents,
    admission: Admission,
    options: Pick<CountOptions, 'timezone' | 'queryTimeoutMs' | 'now'>,
  ) {
    this.#agents = agents;
    this.#admission = admission;
    this.#options = options;
  }

  async answer(
    { remoteAddress: client }: TransportRequest,
    response: TransportResponse,
    { rawPath, rawQuery }: RequestTarget,
    caller: Caller,
  ): Promise<void> {
    const { store } = agentOfPath(rawPath, 'rows', caller, this.#agents).found;
    const { timezone, queryTimeoutMs: timeoutMs, now } = this.#options;
    const question = parseRows(rawQuery, store.schema, timezone, now());
    const late = `the query of a reader ran longer than ${timeoutMs / 1000} s, the time limit of the writer`;
    const answer = await inSlot(this.#admission, { client, response, timeoutMs, late }, (signal) =>
      store.rowsBetween(question, { signal }),
    );
    const headers = {
      'Content-Type': 'application/octet-stream',
      'Cache-Control': 'no-store',
      [moreHeader]: answer.isCut ? 'yes' : 'no',
      ...noSniffHeaders,
    };
    await response.send({ status: 200, headers }, answer.bytes);
  }
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
