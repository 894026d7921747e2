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
