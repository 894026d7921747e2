import { Counter, Gauge, type Registry } from 'prom-client';
import type { ServerFigures } from './server-figures.js';

/** A value, and the values of the metric's labels in the order of `labels`. */
export type Sample = readonly [value: number, ...labels: readonly string[]];

/** A metric. Its value is read from the figures only when the metrics are requested. */
export interface Metric {
  /** Without `metricPrefix`. */
  readonly name: string;
  readonly type: 'counter' | 'gauge';
  readonly help: string;
  readonly labels?: readonly string[];
  read(figures: ServerFigures): Iterable<Sample>;
}

/** The prefix of the names of all metrics. */
export const metricPrefix = 'logstrata_';

/** Registers a metric. At each request it is read from `newest()`. */
export function register(registry: Registry, metric: Metric, newest: () => ServerFigures): void {
  const { name, help, type, labels = [] } = metric;
  const options = { name: `${metricPrefix}${name}`, help, labelNames: [...labels], registers: [registry] };
  const read = (take: (labels: Record<string, string>, value: number) => void): void => {
    for (const [value, ...values] of metric.read(newest()))
      take(Object.fromEntries(labels.map((label, i) => [label, values[i]!])), value);
  };
  if (type === 'gauge') {
    new Gauge({
      ...options,
      collect() {
        this.reset();
        read((given, value) => this.set(given, value));
      },
    });
    return;
  }
  new Counter({
    ...options,
    collect() {
      this.reset();
      read((given, value) => this.inc(given, value));
    },
  });
}
