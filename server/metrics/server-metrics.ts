import { Registry } from 'prom-client';
import { archiveMetrics } from './archive-metrics.js';
import { collectMetrics } from './collect-metrics.js';
import { register } from './metric.js';
import { processMetrics, registerProcess } from './process-metrics.js';
import { QueryDurations, queryMetrics } from './query-metrics.js';
import type { ServerFigures } from './server-figures.js';

/** Writes the figures of a server in the text format of Prometheus. */
export class ServerMetrics {
  readonly #registry = new Registry();
  readonly #read: () => Promise<ServerFigures>;
  #newest!: ServerFigures;

  /** @param read returns the current figures; called once per request */
  constructor(read: () => Promise<ServerFigures>) {
    this.#read = read;
    const newest = (): ServerFigures => this.#newest;
    registerProcess(this.#registry);
    new QueryDurations(this.#registry, newest);
    for (const metric of [...processMetrics, ...queryMetrics, ...archiveMetrics, ...collectMetrics])
      register(this.#registry, metric, newest);
  }

  /** The media type of `text`. */
  get contentType(): string {
    return this.#registry.contentType;
  }

  /** Takes the current figures and writes them. */
  async text(): Promise<string> {
    this.#newest = await this.#read();
    return this.#registry.metrics();
  }
}
