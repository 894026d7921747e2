import { Counter, Gauge, type Registry } from 'prom-client';
import type { AttachStatus } from '../../agents/archive/archive-attaching.js';
import type { ImportStatus } from '../../agents/archive/archive-import.js';
import type { CollectStatus } from '../../agents/collect/logs/collect-counts.js';
import type { ArchiveFigures } from '../../engine/index.js';
import type { QueryTally } from '../route/query-tally.js';

/** A value, and the values of the metric's labels in the order of `labels`. */
export type Sample = readonly [value: number, ...labels: readonly string[]];

/** A metric. Its value is read from the figures only when the metrics are requested. */
export interface Metric {
  /** Without `metricPrefix`. A name that ends with `_total` is that of a counter, any other that of a gauge. */
  readonly name: string;
  readonly help: string;
  readonly labels: readonly string[];
  read(figures: ServerFigures): Iterable<Sample>;
}

/** What metrics are read from: by the name of each, its help, and how its value is read. A value that is not there is left out. */
export type MetricTable<Of> = Readonly<
  Record<string, readonly [help: string, read: (of: Of) => number | null | undefined]>
>;

/**
 * Makes the metrics of a table.
 *
 * @param each finds in the figures what the values are read from, and the values of the labels
 */
export function metricsOf<Of>(
  labels: readonly string[],
  each: (figures: ServerFigures) => Iterable<readonly [of: Of, ...labels: string[]]>,
  table: MetricTable<Of>,
): Metric[] {
  return Object.entries(table).map(([name, [help, read]]) => ({
    name,
    help,
    labels,
    *read(figures) {
      for (const [of, ...values] of each(figures)) {
        const value = read(of);
        if (value !== undefined && value !== null) yield [value, ...values];
      }
    },
  }));
}

/** The prefix of the names of all metrics. */
export const metricPrefix = 'logstrata_';

/** Registers a metric. At each request it is read from `newest()`. */
export function register(registry: Registry, metric: Metric, newest: () => ServerFigures): void {
  const { name, help, labels } = metric;
  const options = { name: `${metricPrefix}${name}`, help, labelNames: [...labels], registers: [registry] };
  const read = (take: (labels: Record<string, string>, value: number) => void): void => {
    for (const [value, ...values] of metric.read(newest()))
      take(Object.fromEntries(labels.map((label, i) => [label, values[i]!])), value);
  };
  if (name.endsWith('_total'))
    new Counter({
      ...options,
      collect() {
        this.reset();
        read((given, value) => this.inc(given, value));
      },
    });
  else
    new Gauge({
      ...options,
      collect() {
        this.reset();
        read((given, value) => this.set(given, value));
      },
    });
}

/** The figures of a server at the time of a request for them. */
export interface ServerFigures {
  readonly version: string;
  readonly transport: string;
  readonly isReady: boolean;
  readonly archive: ArchiveFigures;
  readonly queries: QueryFigures;
  /** By agent; empty where the server collects nothing. */
  readonly collecting: Readonly<Record<string, CollectStatus>>;
  readonly importing: Readonly<Record<string, ImportStatus>>;
  readonly attaching: Readonly<Record<string, AttachStatus>>;
  /** Number of requests with a wrong token, by listener. */
  readonly wrongTokens: Readonly<Record<string, number>>;
  /** By the pool of threads. */
  readonly threads: Readonly<Record<string, ThreadFigures>>;
}

/** The figures of the query route. */
export interface QueryFigures {
  readonly tally: QueryTally;
  readonly slow: number;
  readonly running: number;
  readonly waiting: number;
  /** Responses that are being sent, those included that wait for their client. */
  readonly answers: number;
  /** Number of queries that may run at the same time. */
  readonly runningMax: number;
}

/** The figures of a pool of threads. */
export interface ThreadFigures {
  readonly busy: number;
  /** Jobs that wait for a thread. */
  readonly waiting: number;
  /** Maximum number of threads. */
  readonly threads: number;
}
