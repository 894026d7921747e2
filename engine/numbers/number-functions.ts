import { typeFacts, type FieldType } from '../core/schema.js';

/** What a count tells of the values of a field. Percentiles are `p` and a whole number of percent. */
export const numberFunctions = ['sum', 'avg', 'min', 'max', 'p50', 'p90', 'p95', 'p99', 'distinct'] as const;
export type NumberFunction = (typeof numberFunctions)[number];

/** The functions that values of a type have: strings and truth values can only be told apart. */
export function functionsOf(type: FieldType): readonly NumberFunction[] {
  const { column, isBits } = typeFacts[type];
  return column === 'bytes' || isBits === true ? ['distinct'] : numberFunctions;
}

/** The percent of a percentile; null for another function. */
export function percentOf(fn: NumberFunction): number | null {
  return fn.startsWith('p') ? Number(fn.slice(1)) : null;
}

/** What has to be found out of the values of a field. */
export interface NumbersWanted {
  /** The number of values, their sum and bounds. */
  readonly sums: boolean;
  /** The number of values of each magnitude. */
  readonly magnitudes: boolean;
  /** The hashes of the values. */
  readonly hashes: boolean;
}

/** What the functions need. Percentiles are kept within the bounds. */
export function wantedFor(functions: readonly NumberFunction[]): NumbersWanted {
  return {
    sums: functions.some((fn) => fn !== 'distinct'),
    magnitudes: functions.some((fn) => percentOf(fn) !== null),
    hashes: functions.includes('distinct'),
  };
}

/**
 * A number of some records: bigint for the sum, bounds and percentiles of an integer type; null where no record has a value. Percentiles are
 * within 1 % of a value.
 */
export type NumberAnswer = number | bigint | null;
