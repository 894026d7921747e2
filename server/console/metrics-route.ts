import type { TransportRequest, TransportResponse } from '../http/transport.js';
import type { ServerMetrics } from '../metrics/server-metrics.js';
import { noSniffHeaders } from '../route/http-answer.js';
import type { ConsoleRoute } from './console-route.js';

/** `GET /metrics`: the metrics of the server, in the text format of Prometheus. */
export class MetricsRoute implements ConsoleRoute {
  readonly #metrics: ServerMetrics;

  constructor(metrics: ServerMetrics) {
    this.#metrics = metrics;
  }

  async answer(_request: TransportRequest, response: TransportResponse): Promise<void> {
    const text = await this.#metrics.text();
    const headers = {
      'Content-Type': this.#metrics.contentType,
      'Cache-Control': 'no-store',
      ...noSniffHeaders,
    };
    await response.send({ status: 200, headers }, Buffer.from(text));
  }
}
