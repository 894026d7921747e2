import type { TransportRequest, TransportResponse } from '../http/transport.js';
import type { SlowQueries } from '../route/query-tally.js';
import type { ConsoleRoute } from './console-route.js';
import { sendJson } from './json-response.js';

/** `GET /api/slow`: the most recent queries that took longer than `server.slow_query`, newest first. */
export class SlowRoute implements ConsoleRoute {
  readonly #slow: SlowQueries;

  constructor(slow: SlowQueries) {
    this.#slow = slow;
  }

  answer(_request: TransportRequest, response: TransportResponse): Promise<void> {
    return sendJson(response, { slow: this.#slow.list() });
  }
}
