import { formatBytes, formatCount } from '../../server/cli/terminal.js';
import type { Unit } from '../result.js';

/** Milliseconds with three significant digits: `0.042`, `1.23`, `45.1`, `1,234`. */
function formatMs(ms: number): string {
  if (ms < 1) return ms.toFixed(3);
  if (ms < 10) return ms.toFixed(2);
  return ms < 100 ? ms.toFixed(1) : formatCount(ms);
}

/** Formats a figure. The unit is only included where it varies with the value. */
export function formatFigure(value: number, unit: Unit): string {
  switch (unit) {
    case 'ms':
      return formatMs(value);
    case 'records/s':
    case 'requests/s':
      return formatCount(value);
    case 'bytes':
      return formatBytes(value);
    case 'bytes/s':
      return `${formatBytes(value)}/s`;
  }
}

/** A factor such as `12×`, `1.3×`, `0.25×`. */
export function formatAdvantage(advantage: number): string {
  if (advantage >= 100) return `${formatCount(advantage)}×`;
  if (advantage >= 10) return `${advantage.toFixed(0)}×`;
  return `${advantage >= 1 ? advantage.toFixed(1) : advantage.toFixed(2)}×`;
}
