import type { Trouble } from '../../engine/index.js';
import { ProblemError } from '../http/problem.js';
import type { TransportRequest, TransportResponse } from '../http/transport.js';
import type { Caller } from '../access/caller.js';
import type { RequestTarget } from '../request/request-check.js';
import type { ConsoleRoute } from './console-route.js';
import { sendJson } from './json-response.js';
import type { Readiness } from './readiness.js';

/** `GET /livez`: 200 while the process can answer. */
export const livenessRoute: ConsoleRoute = {
  answer: (_request, response) => sendJson(response, { status: 'live' }),
};

/**
 * `GET /readyz`: 200 where the server can do all that it should, else 503 with the reasons, each with its agent where it concerns one.
 * Reasons may name agents and files, so a caller without a token for all agents gets those of its own agents, and learns that there are
 * others; a probe only needs the status.
 */
export class ReadinessRoute implements ConsoleRoute {
  readonly #readiness: Readiness;

  constructor(readiness: Readiness) {
    this.#readiness = readiness;
  }

  async answer(
    _request: TransportRequest,
    response: TransportResponse,
    _target: RequestTarget,
    caller: Caller,
  ): Promise<void> {
    const isInTransition = this.#readiness.transition !== null;
    const reasons = await this.#readiness.troubles();
    if (reasons.length === 0) return sendJson(response, { status: 'ready' });
    throw notReady(isInTransition ? reasons : toldTo(caller, reasons));
  }
}

const kept: Trouble = { reason: 'only a token for all agents may see the reason' };

function toldTo(caller: Caller, reasons: readonly Trouble[]): readonly Trouble[] {
  if (!caller.isLimited) return reasons;
  const own = reasons.filter(({ agent }) => agent !== undefined && caller.may(agent));
  return own.length === reasons.length ? own : [...own, kept];
}

function notReady(reasons: readonly Trouble[]): ProblemError {
  const detail = reasons.map(({ agent, reason }) => (agent === undefined ? reason : `${agent}: ${reason}`));
  return new ProblemError(503, detail.join('; '), {
    headers: { 'Retry-After': '1' },
    members: { reasons },
  });
}
