import { isValid, type Column } from '../columns/column.js';
import { plainColumn } from '../columns/take.js';
import { extremeRows } from '../columns/zone-map.js';
import type { CountedRows } from '../kernels/count.js';
import { assert } from '../core/errors.js';
import { calendarEndMs, calendarFromMs, countBucketsMax } from '../core/limits.js';
import type { TimeBucket, TimeBuckets } from './count-query.js';

const calendarFrom = BigInt(calendarFromMs);
const calendarEnd = BigInt(calendarEndMs);

const beforeCalendar: TimeBucket = { from: -(2 ** 63), until: calendarFromMs };
const behindCalendar: TimeBucket = { from: calendarEndMs, until: 2 ** 63 };

/** The bucket of any 64-bit time. All times before the calendar are in one bucket, and all times after it in another. */
export function bucketOfTime(buckets: TimeBuckets, time: bigint): TimeBucket {
  if (time < calendarFrom) return beforeCalendar;
  if (time >= calendarEnd) return behindCalendar;
  const { from, until } = buckets.bucketOf(Number(time));
  return { from: Math.max(from, calendarFromMs), until: Math.min(until, calendarEndMs) };
}

/** The buckets from that of `min` to that of `max`, ascending; null where there are more than `most`. */
export function bucketsBetween(
  buckets: TimeBuckets,
  min: bigint,
  max: bigint,
  most: number,
): TimeBucket[] | null {
  const found: TimeBucket[] = [];
  for (let time = min; ;) {
    if (found.length === most) return null;
    const bucket = bucketOfTime(buckets, time);
    found.push(bucket);
    time = BigInt(bucket.until);
    if (time > max) return found;
  }
}

/** The buckets that the times of counted rows may be in, ascending. */
export function bucketsOfRows(
  buckets: TimeBuckets,
  column: Column,
  { bits, from, to }: CountedRows,
): readonly TimeBucket[] {
  const plain = plainColumn(column);
  assert(plain.kind === 'int64', `a column of ${plain.kind} holds no times`);
  const { values, validity } = plain;
  const extremes = extremeRows(plain);
  if (extremes === null) return [];
  const between = bucketsBetween(
    buckets,
    values[extremes.least]!,
    values[extremes.greatest]!,
    countBucketsMax,
  );
  if (between !== null) return between;
  // Most of the buckets between are empty, or the count is going to fail.
  const found = new Map<number, TimeBucket>();
  let bucket: TimeBucket = { from: 0, until: 0 };
  for (let row = from; row < to; row++) {
    if (!isValid(bits, row) || !isValid(validity, row)) continue;
    const time = Number(values[row]!);
    // Doubles represent the ends of buckets exactly, so that rounding cannot move a time to another bucket.
    if (time >= bucket.from && time < bucket.until) continue;
    bucket = bucketOfTime(buckets, values[row]!);
    found.set(bucket.from, bucket);
  }
  return [...found.values()].sort((a, b) => a.from - b.from);
}
