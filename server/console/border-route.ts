import { encodeBorder, type AgentStore } from '../../engine/index.js';
import type { Caller } from '../access/caller.js';
import { ProblemError } from '../http/problem.js';
import type { ResponseHead, TransportRequest, TransportResponse } from '../http/transport.js';
import { percentDecode } from '../request/percent.js';
import { parseAgentPath } from '../request/query-request.js';
import type { RequestTarget } from '../request/request-check.js';
import { noSniffHeaders } from '../route/problem-response.js';
import type { ConsoleRoute } from './console-route.js';

/** The agents of a writer, for readers on other machines. */
export type WrittenAgents = ReadonlyMap<string, { readonly store: AgentStore }>;

/** The store of one of them that a caller may ask for. */
export function writtenStore(
  agents: WrittenAgents,
  rawPath: string,
  what: string,
  caller: Caller,
): AgentStore {
  const name = parseAgentPath(rawPath, what);
  caller.assertMay(name);
  const agent = agents.get(name);
  if (agent === undefined) throw new ProblemError(404, `there is no agent "${name}"`);
  return agent.store;
}

const head: ResponseHead = {
  status: 200,
  headers: { 'Content-Type': 'application/json', 'Cache-Control': 'no-store', ...noSniffHeaders },
};

/**
 * `GET /api/border/{agent_name}?known=…`: where each record of an agent is (`encodeBorder`), without the units of the far tier where the
 * reader has those of this tag.
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
    const store = writtenStore(this.#agents, rawPath, 'border', caller);
    const [key, value = ''] = rawQuery.split('=');
    const known = key === 'known' ? percentDecode(value, true, 'the tag') : null;
    await response.send(head, Buffer.from(encodeBorder(await store.border(), known)));
  }
}
