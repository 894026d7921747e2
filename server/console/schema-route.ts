import type { Caller } from '../access/caller.js';
import { ProblemError } from '../http/problem.js';
import type { TransportRequest, TransportResponse } from '../http/transport.js';
import { parseAgentPath } from '../request/query-request.js';
import type { RequestTarget } from '../request/request-check.js';
import type { ConsoleAgents, ShownDefinition } from './console-agent.js';
import type { ConsoleRoute } from './console-route.js';
import { sendJson } from './json-response.js';

/**
 * `GET /api/schema/{agent_name}`: the fields of an agent in the order that they have in its records, in the format of the public service:
 * `{"name":"nginx","schema":[{"name":"time","type":"time"},…]}`. Unlike there, a field may have a description.
 */
export class SchemaRoute implements ConsoleRoute {
  readonly rights = 'by agent';
  readonly #agents: ConsoleAgents;

  constructor(agents: ConsoleAgents) {
    this.#agents = agents;
  }

  answer(
    _request: TransportRequest,
    response: TransportResponse,
    { rawPath }: RequestTarget,
    caller: Caller,
  ): Promise<void> | undefined {
    const name = parseAgentPath(rawPath, 'schema');
    caller.assertMay(name);
    const agent = this.#agents.get(name);
    if (agent === undefined) throw new ProblemError(404, `there is no agent "${name}"`);
    return sendJson(response, { name, schema: shownFields(agent.definition) });
  }
}

function shownFields({ fields }: ShownDefinition): object[] {
  return fields.map(({ name, type, description }) => ({ name, type, description }));
}
