import type { Caller } from '../access/caller.js';
import type { TransportRequest, TransportResponse } from '../http/transport.js';
import type { RequestTarget } from '../request/request-check.js';
import { agentOfPath } from '../route/query-route.js';
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
  ): Promise<void> {
    const { name, found: agent } = agentOfPath(rawPath, 'schema', caller, this.#agents);
    return sendJson(response, { name, schema: shownFields(agent.definition) });
  }
}

function shownFields({ fields }: ShownDefinition): object[] {
  return fields.map(({ name, type, description }) => ({ name, type, description }));
}
