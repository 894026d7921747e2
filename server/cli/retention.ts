import type { Retention } from '../../agents/definition.js';
import { formatBytes, formatSpan } from './figures.js';

const hourMs = 3_600_000;

/** A period as people write it: whole days and hours where it is long. */
function formatPeriod(ms: number): string {
  const days = Math.floor(ms / (24 * hourMs));
  const rest = ms % (24 * hourMs);
  if (days === 0) return formatSpan(ms);
  return rest === 0 ? `${days} d` : `${days} d ${formatSpan(rest)}`;
}

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
