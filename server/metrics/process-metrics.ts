import { collectDefaultMetrics, type Registry } from 'prom-client';
import type { Metric } from './metric.js';

function ofThreads(name: string, help: string, figure: 'busy' | 'waiting' | 'threads'): Metric {
  return {
    name,
    type: 'gauge',
    help,
    labels: ['pool'],
    *read({ threads }) {
      for (const [pool, figures] of Object.entries(threads)) yield [figures[figure], pool];
    },
  };
}

/** Metrics of the process and its threads. */
export const processMetrics: readonly Metric[] = [
  {
    name: 'build_info',
    type: 'gauge',
    help: 'What runs: always 1.',
    labels: ['version', 'node', 'transport'],
    read: ({ version, transport }) => [[1, version, process.version, transport]],
  },
  {
    name: 'ready',
    type: 'gauge',
    help: 'Whether /readyz answers 200 (1).',
    read: ({ isReady }) => [[Number(isReady)]],
  },
  ofThreads('threads_busy', 'Worker threads that are running a job.', 'busy'),
  ofThreads('threads_limit', 'Upper limit of the number of worker threads.', 'threads'),
  ofThreads('thread_jobs_waiting', 'Jobs waiting for a worker thread.', 'waiting'),
];

/** Resolution of the measured delay of the event loop, in milliseconds. Shorter delays are not seen; a finer timer would cost more. */
const eventLoopPrecisionMs = 20;

/** Default metrics of prom-client that are left out: they are gauges named like counters, or of no use to an operator. */
const unwanted = /^nodejs_(?:active_|heap_space_|eventloop_lag_min_)/;

/** Registers prom-client's default metrics under their usual names: CPU time, memory, open files, event loop delay, garbage collection. */
export function registerProcess(registry: Registry): void {
  collectDefaultMetrics({ register: registry, eventLoopMonitoringPrecision: eventLoopPrecisionMs });
  for (const { name } of registry.getMetricsAsArray())
    if (unwanted.test(name)) registry.removeSingleMetric(name);
}
