import { encodeBorder, type AgentStore } from '../../engine/index.js';
import type { Caller } from '../access/caller.js';
import type { ResponseHead, TransportRequest, TransportResponse } from '../http/transport.js';
import { percentDecode } from '../request/percent.js';
import type { RequestTarget } from '../request/request-check.js';
import { agentOfPath } from '../route/query-route.js';
import { noSniffHeaders } from '../route/http-answer.js';
import type { ConsoleRoute } from './console-route.js';

/** The agents of a writer by name, as readers on other machines query them. */
export type WrittenAgents = ReadonlyMap<string, { readonly store: AgentStore }>;

const head: ResponseHead = {
  status: 200,
  headers: { 'Content-Type': 'application/json', 'Cache-Control': 'no-store', ...noSniffHeaders },
};

/**
 * `GET /api/border/{agent_name}?known=…`: the border of an agent, which says where each of its records is, as JSON (`encodeBorder`). Leaves
 * out the units of the far tier where `known` is their current tag, as the reader has them then.
 */
export class BorderRoute implements ConsoleRoute {
  readonly rights = 'by agent';
  readonly #agents: WrittenAgents;

  constructor(agents: WrittenAgents) {
    this.#agents = agents;
  }

  async answer(
    _request: TransportRequest,
    response: TransportResponse,
    { rawPath, rawQuery }: RequestTarget,
    caller: Caller,
  ): Promise<void> {
    const { found: agent } = agentOfPath(rawPath, 'border', caller, this.#agents);
    const [key, value = ''] = rawQuery.split('=');
    const known = key === 'known' ? percentDecode(value, true, 'the tag') : null;
    await response.send(head, Buffer.from(encodeBorder(await agent.store.border(), known)));
  }
}
