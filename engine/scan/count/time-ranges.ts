import { calendarEndMs, calendarFromMs } from '../../terms/limits.js';
import type { TimeBucket, TimeBuckets } from '../plan/count.js';

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
