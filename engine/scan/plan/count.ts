import { LogstrataError } from '../../terms/errors.js';
import type { Position } from '../../terms/cursor.js';
import type { Predicate, ScanStats } from './query.js';

/** The times in [from, until), in milliseconds since the epoch. */
export interface TimeBucket {
  readonly from: number;
  readonly until: number;
}

/** Cuts time into buckets, of which each begins where the one before it ends. */
export interface TimeBuckets {
  /** The bucket that a time lies in. It is asked about times within the calendar alone (`calendarFromMs`, `calendarEndMs`). */
  bucketOf(timeMs: number): TimeBucket;
}

/** Which records are counted, and by what. Fields are positions in the schema. */
export interface CountQuery {
  /** The open interval of positions. */
  readonly after?: Position | undefined;
  readonly before?: Position | undefined;
  readonly predicates: readonly Predicate[];
  /** By buckets of a field of type `time`. */
  readonly time?: { readonly field: number; readonly buckets: TimeBuckets } | undefined;
  /** By the values of a field; the `top` most frequent ones are given. */
  readonly values?: { readonly field: number; readonly top: number } | undefined;
}

/** A value as it is answered: `int` and `time` as integers. */
export type CountedValue = string | bigint | number | boolean;

export interface CountedBucket extends TimeBucket {
  /** At least one. */
  readonly count: number;
  /** How many of these have each of the most frequent values, in their order; where records are counted by both. */
  readonly values?: readonly number[];
}

/** How many records match, exactly. */
export interface Counts {
  readonly count: number;
  /** Buckets that hold records, ascending; and how many records have no time. */
  readonly time?: { readonly buckets: readonly CountedBucket[]; readonly nulls: number };
  /** The most frequent values first, and of equally frequent ones the least; how many records have another one, and how many none. */
  readonly values?: {
    readonly top: readonly { readonly value: CountedValue; readonly count: number }[];
    readonly other: number;
    readonly nulls: number;
    /** Different values, those of `top` included. */
    readonly distinct: number;
  };
  readonly stats: ScanStats;
}

/** What a count has too many of to be made exactly in bounded memory. */
export type CountBound = 'buckets' | 'values' | 'cells';

/** A count passes a bound. Somebody who asks for less can have it. */
export class CountBoundError extends LogstrataError {
  readonly bound: CountBound;
  /** How long a time the records take that were to be counted, about. */
  readonly spanMs: number;

  constructor(bound: CountBound, message: string, spanMs = 0) {
    super('invalid', message);
    this.name = 'CountBoundError';
    this.bound = bound;
    this.spanMs = spanMs;
  }
}
