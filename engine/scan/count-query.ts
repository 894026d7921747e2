import { LogstrataError } from '../core/errors.js';
import type { Position } from '../core/cursor.js';
import type { NumberAnswer, NumberFunction } from '../numbers/number-functions.js';
import type { Predicate, ScanStats } from './query.js';

/** The half-open interval of times [from, until), in milliseconds since the epoch. */
export interface TimeBucket {
  readonly from: number;
  readonly until: number;
}

/** A division of time into buckets. Each bucket begins where the one before it ends. */
export interface TimeBuckets {
  /** The bucket that contains `timeMs`. Called only with times within the calendar (`calendarFromMs` to `calendarEndMs`). */
  bucketOf(timeMs: number): TimeBucket;
}

/** In place of a field that the records of one of several agents lack: it is null in all of them. */
export const lackedField = -1;

/** Which records are counted, and what they are grouped by. Fields are given as indices in the schema. */
export interface CountQuery {
  /** Bounds of the positions; both are exclusive. */
  readonly after?: Position | undefined;
  readonly before?: Position | undefined;
  readonly predicates: readonly Predicate[];
  /** Groups the records by buckets of a field of type `time`. */
  readonly time?: { readonly field: number; readonly buckets: TimeBuckets } | undefined;
  /** Groups the records by the values of a field. The answer has the `top` most frequent values. */
  readonly values?: { readonly field: number; readonly top: number } | undefined;
  /** Numbers of fields, of all records or of each group. */
  readonly numbers?:
    { readonly fields: readonly number[]; readonly functions: readonly NumberFunction[] } | undefined;
}

/** A value in an answer. Values of `int` and `time` fields are integers. */
export type CountedValue = string | bigint | number | boolean;

/** A bucket with records, and their number. */
export interface CountedBucket extends TimeBucket {
  /** At least one. */
  readonly count: number;
  /**
   * The number of this bucket's records with each value of `Counts.values.top`, in the same order. Only where records are grouped by time
   * and by value.
   */
  readonly values?: readonly number[];
  readonly numbers?: NumberAnswers;
  /** The numbers of this bucket's records with each of the values. */
  readonly numbersOfValues?: readonly NumberAnswers[];
}

/** For each field of `CountQuery.numbers` those of its functions. */
export type NumberAnswers = readonly (readonly NumberAnswer[])[];

/** The exact number of matching records. */
export interface Counts {
  readonly count: number;
  /** The numbers of all records, where these are not grouped. */
  readonly numbers?: NumberAnswers;
  /** The functions whose numbers are not exact in this answer: percentiles, and estimates of `distinct`. */
  readonly approximate?: readonly NumberFunction[];
  /** The buckets that have records, ascending, and the number of records without a time. */
  readonly time?: { readonly buckets: readonly CountedBucket[]; readonly nulls: number };
  /**
   * The most frequent values, by descending count and then ascending value; the number of records with another value, and of records with
   * none.
   */
  readonly values?: {
    readonly top: readonly {
      readonly value: CountedValue;
      readonly count: number;
      readonly numbers?: NumberAnswers;
    }[];
    readonly other: number;
    readonly nulls: number;
    /** Number of different values, those of `top` included. */
    readonly distinct: number;
  };
  readonly stats: ScanStats;
}

/** Which bound of an exact count in bounded memory was exceeded. */
export type CountBound = 'buckets' | 'values' | 'cells' | 'numbers';

/** Error `invalid`: a count would exceed a bound. The same count of a shorter time or in longer buckets may succeed. */
export class CountBoundError extends LogstrataError {
  readonly bound: CountBound;
  /** Approximate time span of the records to be counted, in milliseconds. */
  readonly spanMs: number;

  constructor(bound: CountBound, message: string, spanMs = 0) {
    super('invalid', message);
    this.name = 'CountBoundError';
    this.bound = bound;
    this.spanMs = spanMs;
  }
}
