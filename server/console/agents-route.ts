import type { Caller } from '../access/caller.js';
import type { TransportRequest, TransportResponse } from '../http/transport.js';
import type { RequestTarget } from '../request/request-check.js';
import type { ConsoleAgents } from './console-agent.js';
import type { ConsoleRoute } from './console-route.js';
import { sendJson } from './json-response.js';

/**
 * `GET /api/agents`: the names of the agents that are served, in the format of the public service: `{"agents":["app","nginx"]}`. Where
 * agents are left out, `leftOut` says why, by name. A caller whose token is for some agents gets only those.
 */
export class AgentsRoute implements ConsoleRoute {
  readonly rights = 'by agent';
  readonly #agents: ConsoleAgents;

  constructor(agents: ConsoleAgents) {
    this.#agents = agents;
  }

  answer(
    _request: TransportRequest,
    response: TransportResponse,
    _target: RequestTarget,
    caller: Caller,
  ): Promise<void> {
    const agents = [...this.#agents.keys()].filter((agent) => caller.may(agent));
    const leftOut = [...(this.#agents.leftOut ?? [])].filter(([agent]) => caller.may(agent));
    const reasons = leftOut.length === 0 ? {} : { leftOut: Object.fromEntries(leftOut) };
    return sendJson(response, { agents: agents.sort(), ...reasons });
  }
}
