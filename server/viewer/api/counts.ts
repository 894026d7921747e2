import { requestPath, type Question } from '../query/question.js';
import type { ServerDoor } from './server-door.js';

/** How often a value comes. */
export interface ValueCount {
  readonly value: string | number | boolean;
  readonly count: number;
}

/** The most frequent values of a field. */
export interface ValueCounts {
  readonly field: string;
  readonly top: readonly ValueCount[];
  /** Records with any other value. */
  readonly other: number;
  /** Records without a value. */
  readonly nulls: number;
}

/** Records of one step of time. */
export interface TimeBucket {
  readonly from: number;
  readonly until: number;
  readonly count: number;
  /** Of each value in `values.top`, in its order. */
  readonly values?: readonly number[];
}

/** The answer of the count route. Steps without a record are left out. */
export interface Counts {
  readonly count: number;
  readonly time?: { readonly nulls: number; readonly buckets: readonly TimeBucket[] };
  readonly values?: ValueCounts;
}

/** By what is counted. */
export interface CountAsk {
  /** A time field and a step: `time:1h`. */
  readonly time?: string | undefined;
  readonly field?: string | undefined;
  readonly top?: number | undefined;
  readonly zone?: string | undefined;
}

/** Counts what a question matches. Throws a FailureError. */
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
