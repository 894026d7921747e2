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

/** The process itself. */
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
  ofThreads('threads_busy', 'Threads that work.', 'busy'),
  ofThreads('threads_limit', 'Threads that there may be.', 'threads'),
  ofThreads('thread_jobs_waiting', 'Jobs that wait for a thread.', 'waiting'),
];

/** How often the delay of the event loop is measured, in milliseconds: shorter delays than that are not seen, and cost nothing. */
const eventLoopPrecisionMs = 20;

/** Metrics of the library that are left out: they name gauges as counters, or say nothing that an operator could go by. */
const unwanted = /^nodejs_(?:active_|heap_space_|eventloop_lag_min_)/;

/** Processor time, memory, files, delays of the event loop and garbage collection, under the names that all programs use. */
export function registerProcess(registry: Registry): void {
  collectDefaultMetrics({ register: registry, eventLoopMonitoringPrecision: eventLoopPrecisionMs });
  for (const { name } of registry.getMetricsAsArray())
    if (unwanted.test(name)) registry.removeSingleMetric(name);
}
