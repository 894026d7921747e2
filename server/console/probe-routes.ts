import type { Trouble } from '../../engine/index.js';
import { ProblemError } from '../http/problem.js';
import type { TransportRequest, TransportResponse } from '../http/transport.js';
import type { ConsoleRoute } from './console-route.js';
import { sendJson } from './json-response.js';
import type { Readiness } from './readiness.js';

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

  async answer(_request: TransportRequest, response: TransportResponse): Promise<void> {
    const reasons = await this.#readiness.troubles();
    if (reasons.length > 0) throw notReady(reasons);
    await sendJson(response, { status: 'ready' });
  }
}

function notReady(reasons: readonly Trouble[]): ProblemError {
  const detail = reasons.map(({ agent, reason }) => (agent === undefined ? reason : `${agent}: ${reason}`));
  return new ProblemError(503, detail.join('; '), {
    headers: { 'Retry-After': '1' },
    members: { reasons },
  });
}
