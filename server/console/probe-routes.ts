import { ProblemError } from '../http/problem.js';
import type { TransportRequest, TransportResponse } from '../http/transport.js';
import type { ConsoleRoute } from './console-route.js';
import { sendJson } from './json-response.js';
import type { NotReady, Readiness } from './readiness.js';

/** `GET /livez`: the process answers. */
export const livenessRoute: ConsoleRoute = {
  answer: (_request, response) => sendJson(response, { status: 'live' }),
};

/** `GET /readyz`: whether the server can do all that it should, or a 503 that gives the reasons, by agent where they are one's. */
export class ReadinessRoute implements ConsoleRoute {
  readonly #readiness: Readiness;

  constructor(readiness: Readiness) {
    this.#readiness = readiness;
  }

  answer(_request: TransportRequest, response: TransportResponse): Promise<void> | undefined {
    const reasons = this.#readiness.reasons();
    if (reasons.length > 0) throw notReady(reasons);
    return sendJson(response, { status: 'ready' });
  }
}

function notReady(reasons: readonly NotReady[]): ProblemError {
  const detail = reasons.map(({ agent, reason }) => (agent === undefined ? reason : `${agent}: ${reason}`));
  return new ProblemError(503, detail.join('; '), {
    headers: { 'Retry-After': '1' },
    members: { reasons },
  });
}
