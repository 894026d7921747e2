import type { CountQuery, CountedValue, TimeBucket, TimeBuckets } from '../../engine/scan/count-query.js';
import type { FieldType } from '../../engine/core/schema.js';
import { matchesOf } from './answer.js';
import type { Dataset, Value } from './dataset.js';

/** The result of a count, without its cost. */
export interface ModelCounts {
  readonly count: number;
  readonly time?: {
    readonly buckets: readonly (TimeBucket & {
      readonly count: number;
      readonly values?: readonly number[];
    })[];
    readonly nulls: number;
  };
  readonly values?: {
    readonly top: readonly { readonly value: CountedValue; readonly count: number }[];
    readonly other: number;
    readonly nulls: number;
    readonly distinct: number;
  };
}

/** Years 1 to 9999. */
const calendar = { from: new Date('0001-01-01T00:00:00Z').getTime(), until: Date.UTC(10_000, 0, 1) };

/** The naive model of counting: record by record, without code of the engine. */
export function countsOf(dataset: Dataset, query: CountQuery): ModelCounts {
  const { after, before, predicates, time, values } = query;
  const records = matchesOf(dataset, { limit: Infinity, after, before, predicates }).map((record) => ({
    bucket: time === undefined ? null : bucketOf(time.buckets, record.values[time.field]!),
    value: values === undefined ? null : shown(record.values[values.field]!, typeOf(dataset, values.field)),
  }));
  const counted = new Map<CountedValue, number>();
  for (const { value } of records) if (value !== null) counted.set(value, (counted.get(value) ?? 0) + 1);
  const top = [...counted]
    .sort(([a, many], [b, few]) => few - many || compare(a, b))
    .slice(0, values?.top ?? 0)
    .map(([value, count]) => ({ value, count }));
  const buckets = new Map<number, TimeBucket>();
  for (const { bucket } of records) if (bucket !== null) buckets.set(bucket.from, bucket);
  const inBucket = (from: number) => records.filter(({ bucket }) => bucket?.from === from);
  const ordered = [...buckets.values()].sort((a, b) => a.from - b.from);
  return {
    count: records.length,
    ...(time !== undefined && {
      time: {
        buckets: ordered.map((bucket) => ({
          from: bucket.from,
          until: bucket.until,
          count: inBucket(bucket.from).length,
          ...(values !== undefined && {
            values: top.map(
              ({ value }) => inBucket(bucket.from).filter((record) => record.value === value).length,
            ),
          }),
        })),
        nulls: records.filter(({ bucket }) => bucket === null).length,
      },
    }),
    ...(values !== undefined && {
      values: {
        top,
        other: records.filter(({ value }) => value !== null && !top.some((one) => one.value === value))
          .length,
        nulls: records.filter(({ value }) => value === null).length,
        distinct: counted.size,
      },
    }),
  };
}

function bucketOf(buckets: TimeBuckets, value: Value): TimeBucket | null {
  if (value === null) return null;
  const timeMs = Number(value);
  if (timeMs < calendar.from) return { from: -(2 ** 63), until: calendar.from };
  if (timeMs >= calendar.until) return { from: calendar.until, until: 2 ** 63 };
  const { from, until } = buckets.bucketOf(timeMs);
  return { from: Math.max(from, calendar.from), until: Math.min(until, calendar.until) };
}

function typeOf(dataset: Dataset, field: number): FieldType {
  return dataset.schema.fields[field]!.type;
}

function shown(value: Value, type: FieldType): CountedValue | null {
  if (type === 'bool' && value !== null) return value === 1n;
  // Both zeros are one value.
  return value === 0 ? 0 : value;
}

function compare(a: CountedValue, b: CountedValue): number {
  if (typeof a === 'string' && typeof b === 'string') return Buffer.compare(Buffer.from(a), Buffer.from(b));
  return a < b ? -1 : a > b ? 1 : 0;
}
