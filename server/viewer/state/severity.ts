import type { Value } from '../records/record.js';

/** The severity that a value stands for; `other` where it stands for none. */
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

/** The severity of a value: the name of a level, or an HTTP status code. */
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

/** The order of severities in a bar. The worst is at the bottom, where heights are easiest to compare. */
export function severityRank(severity: Severity): number {
  return order.indexOf(severity);
}
