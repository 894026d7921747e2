import type { Value } from '../records/record.js';

/** How bad a value says a record is; `other` where it says nothing of that. */
export type Severity = 'error' | 'warn' | 'info' | 'debug' | 'ok' | 'other';

const byName: Readonly<Record<string, Severity>> = {
  emerg: 'error',
  emergency: 'error',
  alert: 'error',
  crit: 'error',
  critical: 'error',
  fatal: 'error',
  panic: 'error',
  severe: 'error',
  error: 'error',
  err: 'error',
  e: 'error',
  f: 'error',
  warn: 'warn',
  warning: 'warn',
  w: 'warn',
  notice: 'info',
  info: 'info',
  information: 'info',
  i: 'info',
  debug: 'debug',
  d: 'debug',
  trace: 'debug',
  verbose: 'debug',
  fine: 'debug',
};

/** By the names of levels, and by the classes of HTTP's status codes. */
export function severityOf(value: Value | undefined): Severity {
  if (typeof value === 'string') {
    const found = byName[value.toLowerCase()];
    if (found !== undefined) return found;
    return /^[1-5]\d\d$/.test(value) ? severityOf(Number(value)) : 'other';
  }
  if (typeof value !== 'number' || value < 100 || value > 599) return 'other';
  if (value >= 500) return 'error';
  if (value >= 400) return 'warn';
  if (value >= 300) return 'debug';
  return value >= 200 ? 'ok' : 'info';
}

const order: readonly Severity[] = ['error', 'warn', 'info', 'ok', 'debug', 'other'];

/** The place of a severity among bars: the worst at the bottom, where their heights can be compared. */
export function severityRank(severity: Severity): number {
  return order.indexOf(severity);
}
