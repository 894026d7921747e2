import { parseTimeValue } from '../../request/time-value.js';
import { UsageError } from '../output/failure.js';
import type { Settings } from './settings.js';

/** The flags for a range of times. */
export interface TimeRangeFlags {
  readonly since?: string;
  readonly until?: string;
}

/** Parses a range of times to milliseconds since the epoch, [since, until); null where it has no bound. Throws a `UsageError`. */
export function timeRangeOf(
  { since, until }: TimeRangeFlags,
  { config }: Settings,
): { readonly sinceMs: number | null; readonly untilMs: number | null } {
  const timeOf = (flag: string, text: string | undefined): number | null => {
    if (text === undefined) return null;
    const value = parseTimeValue(text, { now: Date.now(), timezone: config.server.timezone });
    if ('problem' in value) throw new UsageError(`${flag}: ${value.problem}`);
    return Number(value.ms);
  };
  const sinceMs = timeOf('--since', since);
  const untilMs = timeOf('--until', until);
  if (sinceMs !== null && untilMs !== null && sinceMs >= untilMs)
    throw new UsageError('--since must be before --until: since ≤ time < until');
  return { sinceMs, untilMs };
}
