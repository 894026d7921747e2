import type { Retention } from '../../agents/definition.js';
import { formatBytes, formatPeriod } from './figures.js';

/** What an agent's file says of how long its records are kept. */
export function describeRetention(retention: Retention | undefined): string {
  const { periodMs, bytesMax, intervalMs } = retention ?? { periodMs: null, bytesMax: null, intervalMs: 0 };
  const size = bytesMax === null ? [] : [`at most ${formatBytes(bytesMax)}`];
  if (periodMs === null && bytesMax === null) return 'every record for ever (there is no retention.period)';
  const period =
    periodMs === null
      ? 'records of any age (there is no retention.period)'
      : `records for ${formatPeriod(periodMs)}`;
  return [period, ...size, `looks every ${formatPeriod(intervalMs)}`].join(', ');
}
