import { requestPath, type Question } from '../query/question.js';
import type { ServerDoor } from './server-door.js';

/** A value, and the number of records that have it. */
export interface ValueCount {
  readonly value: string | number | boolean;
  readonly count: number;
}

/** The most frequent values of a field. */
export interface ValueCounts {
  readonly field: string;
  readonly top: readonly ValueCount[];
  /** Number of records with another value. */
  readonly other: number;
  /** Number of records without a value. */
  readonly nulls: number;
}

/** The records of one step of time. Times are milliseconds since the epoch; `until` is exclusive. */
export interface TimeBucket {
  readonly from: number;
  readonly until: number;
  readonly count: number;
  /** The counts of the values in `values.top`, in the same order. */
  readonly values?: readonly number[];
}

/** The response of the count route. Steps without records are left out. */
export interface Counts {
  readonly count: number;
  readonly time?: { readonly nulls: number; readonly buckets: readonly TimeBucket[] };
  readonly values?: ValueCounts;
}

/** What to count by. */
export interface CountAsk {
  /** A time field and a step, such as `time:1h`. */
  readonly time?: string | undefined;
  /** A field, whose most frequent values are counted. */
  readonly field?: string | undefined;
  readonly top?: number | undefined;
  /** The time zone of the steps. */
  readonly zone?: string | undefined;
}

/** Counts the records that match a question. Throws a FailureError. */
export async function askCounts(
  door: ServerDoor,
  question: Question,
  { time, field, top, zone }: CountAsk,
  signal: AbortSignal,
): Promise<Counts> {
  const more: (readonly [string, string])[] = [];
  if (time !== undefined) more.push(['by', time]);
  if (field !== undefined) more.push(['by', field]);
  if (field !== undefined && top !== undefined) more.push(['top', String(top)]);
  if (time !== undefined && zone !== undefined) more.push(['zone', zone]);
  return (await door.getJson(requestPath('count', question, more), { signal })) as Counts;
}
