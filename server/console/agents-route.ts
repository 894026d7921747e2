import type { TransportRequest, TransportResponse } from '../http/transport.js';
import type { ConsoleAgents } from './console-agent.js';
import type { ConsoleRoute } from './console-route.js';
import { sendJson } from './json-response.js';

/** `GET /api/agents`: the names of the agents that are served, as the public service gives them: `{"agents":["app","nginx"]}`. */
export class AgentsRoute implements ConsoleRoute {
  readonly #agents: ConsoleAgents;

  constructor(agents: ConsoleAgents) {
    this.#agents = agents;
  }

  answer(_request: TransportRequest, response: TransportResponse): Promise<void> | undefined {
    return sendJson(response, { agents: [...this.#agents.keys()].sort() });
  }
}
