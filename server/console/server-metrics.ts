import { collectDefaultMetrics, Registry, Histogram } from 'prom-client';
import { type Metric, metricPrefix, metricsOf, type ServerFigures, register } from './metric.js';
import { durationBoundsMs, Durations, type QuerySums } from '../route/query-tally.js';
import { archiveMetrics } from './archive-metrics.js';
import { collectMetrics } from './collect-metrics.js';

/** Metrics of the process and its threads. */
const processMetrics: readonly Metric[] = [
  ...metricsOf(
    ['version', 'node', 'transport'],
    ({ version, transport }) => [[1, version, process.version, transport]],
    { build_info: ['What runs: always 1.', (one) => one] },
  ),
  ...metricsOf([], (figures) => [[figures]], {
    ready: ['Whether /readyz answers 200 (1).', ({ isReady }) => Number(isReady)],
  }),
  ...metricsOf(['pool'], ({ threads }) => Object.entries(threads).map(([pool, figures]) => [figures, pool]), {
    threads_busy: ['Worker threads that are running a job.', ({ busy }) => busy],
    threads_limit: ['Upper limit of the number of worker threads.', ({ threads }) => threads],
    thread_jobs_waiting: ['Jobs waiting for a worker thread.', ({ waiting }) => waiting],
  }),
];

/** Resolution of the measured delay of the event loop, in milliseconds. Shorter delays are not seen; a finer timer would cost more. */
const eventLoopPrecisionMs = 20;

/** Default metrics of prom-client that are left out: they are gauges named like counters, or of no use to an operator. */
const unwanted = /^nodejs_(?:active_|heap_space_|eventloop_lag_min_)/;

/** Registers prom-client's default metrics under their usual names: CPU time, memory, open files, event loop delay, garbage collection. */
function registerProcess(registry: Registry): void {
  collectDefaultMetrics({ register: registry, eventLoopMonitoringPrecision: eventLoopPrecisionMs });
  for (const { name } of registry.getMetricsAsArray())
    if (unwanted.test(name)) registry.removeSingleMetric(name);
}

/** The checks that rule out row groups, and their sums. */
function pruned(sums: QuerySums): Readonly<Record<string, number>> {
  return {
    time: sums.rowGroupsPrunedByTime,
    zone: sums.rowGroupsPrunedByZone,
    value: sums.rowGroupsPrunedByValue,
    gram: sums.rowGroupsPrunedByGram,
    dictionary: sums.rowGroupsPrunedByDictionary,
  };
}

function sumOf({ queries }: ServerFigures, read: (sums: QuerySums) => number): number {
  return [...queries.tally.byAgent.values()].reduce((sum, sums) => sum + read(sums), 0);
}

/** Counts by name, such as those of `tally.broken`, as what a metric is read from. */
function byName(counts: Readonly<Record<string, number>>): [count: number, name: string][] {
  return Object.entries(counts).map(([name, count]) => [count, name]);
}

/** Metrics of queries: their number, their cost, and hits in the pool of decoded columns. */
const queryMetrics: readonly Metric[] = [
  ...metricsOf([], ({ queries }) => [[queries]], {
    queries_running: ['Queries being scanned.', ({ running }) => running],
    queries_waiting: ['Queries waiting for a running query to end.', ({ waiting }) => waiting],
    queries_limit: ['Upper limit of the number of queries running at once.', ({ runningMax }) => runningMax],
    answers_open: ['Answers being sent, including those to slow clients.', ({ answers }) => answers],
    slow_queries_total: ['Queries that took longer than server.slow_query.', ({ slow }) => slow],
  }),
  ...metricsOf(['reason'], ({ queries }) => byName(queries.tally.broken), {
    answers_broken_total: [
      'Answers cut off because the client disconnected or was too slow, or because the server failed.',
      (count) => count,
    ],
  }),
  ...metricsOf(['listener'], ({ wrongTokens }) => byName(wrongTokens), {
    wrong_tokens_total: ['Requests with a token that is unknown, expired or revoked.', (count) => count],
  }),
  ...metricsOf(['agent'], ({ queries }) => [...queries.tally.byAgent].map(([agent, sums]) => [sums, agent]), {
    scans_total: ['Queries and counts that were scanned.', ({ queries }) => queries],
    rows_scanned_total: ['Rows examined by queries.', ({ rowsScanned }) => rowsScanned],
    rows_returned_total: ['Records in answers.', ({ rowsReturned }) => rowsReturned],
    read_bytes_total: ['Bytes read from the disk by queries.', ({ bytesRead }) => bytesRead],
    returned_bytes_total: ['Bytes of answers, before compression.', ({ bytesReturned }) => bytesReturned],
    row_groups_scanned_total: [
      'Row groups whose rows were examined.',
      ({ rowGroupsScanned }) => rowGroupsScanned,
    ],
  }),
  ...metricsOf(
    ['agent', 'reason'],
    ({ queries }) =>
      [...queries.tally.byAgent].flatMap(([agent, sums]) =>
        byName(pruned(sums)).map(([count, reason]) => [count, agent, reason] as const),
      ),
    {
      row_groups_pruned_total: [
        'Row groups skipped, by what ruled them out: bounds of times or values (zone), value filters, n-gram filters, or dictionaries.',
        (count) => count,
      ],
    },
  ),
  ...metricsOf([], (figures) => [[figures]], {
    pool_hits_total: [
      'Columns found decoded in memory by queries.',
      (figures) => sumOf(figures, ({ columnsCached }) => columnsCached),
    ],
    pool_misses_total: [
      'Columns decoded by queries.',
      (figures) => sumOf(figures, ({ columnsDecoded }) => columnsDecoded),
    ],
  }),
];

const durationName = `${metricPrefix}query_duration_seconds`;
const durationHelp =
  'Seconds from the arrival of a request to the end of its answer, including slow clients, by status.';

/**
 * Statuses that have a series from the start. Prometheus' `increase` is 0 for a series whose first value is 1, so the first failure of a
 * server would raise no alert.
 */
const statusesShown = [200, 429, 500, 503, 504];

type DurationMetric = Awaited<ReturnType<Histogram<'le' | 'status'>['get']>>;

/** The histogram of durations by status. The tally counts durations in plain numbers; they become buckets when the metrics are requested. */
class QueryDurations extends Histogram<'le' | 'status'> {
  readonly #newest: () => ServerFigures;
  /** The same histogram without values: provides the metadata of the metric, to which the values are added. */
  readonly #described: Histogram<'le' | 'status'>;

  constructor(registry: Registry, newest: () => ServerFigures) {
    const buckets = durationBoundsMs.map((ms) => ms / 1000);
    const options = { name: durationName, help: durationHelp, labelNames: ['status'] as const, buckets };
    super({ ...options, registers: [registry] });
    this.#described = new Histogram({ ...options, registers: [] });
    this.#newest = newest;
  }

  override async get(): Promise<DurationMetric> {
    return { ...(await this.#described.get()), values: [...this.#values()] };
  }

  /** prom-client calls this for the text of all metrics. */
  getForPromString(): Promise<DurationMetric> {
    return this.get();
  }

  *#values(): Generator<DurationMetric['values'][number]> {
    const { byStatus } = this.#newest().queries.tally;
    const shown = new Map(statusesShown.map((code) => [code, new Durations()]));
    for (const [code, { counts, sumMs }] of new Map([...shown, ...byStatus])) {
      const status = String(code);
      let count = 0;
      for (const [i, inClass] of counts.entries()) {
        count += inClass;
        const bound = durationBoundsMs[i];
        const le = bound === undefined ? '+Inf' : bound / 1000;
        yield { metricName: `${durationName}_bucket`, labels: { le, status }, value: count };
      }
      yield { metricName: `${durationName}_sum`, labels: { status }, value: sumMs / 1000 };
      yield { metricName: `${durationName}_count`, labels: { status }, value: count };
    }
  }
}

/** Writes the figures of a server in the text format of Prometheus. */
export class ServerMetrics {
  readonly #registry = new Registry();
  #newest!: ServerFigures;

  /** @param read returns the current figures; called once per request */
  constructor(private readonly read: () => Promise<ServerFigures>) {
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
    this.#newest = await this.read();
    return this.#registry.metrics();
  }
}
