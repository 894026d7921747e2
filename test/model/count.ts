import type { CountQuery, CountedValue, TimeBucket, TimeBuckets } from '../../engine/scan/count-query.js';
import type { FieldType } from '../../engine/core/schema.js';
import { matchesOf } from './answer.js';
import type { Dataset, Value } from './dataset.js';

type NumberAnswers = readonly (readonly (number | bigint | null)[])[];

/** The result of a count, without its cost. Its numbers are exact, sums of floats but for rounding. */
export interface ModelCounts {
  readonly count: number;
  readonly numbers?: NumberAnswers;
  readonly approximate?: readonly string[];
  readonly time?: {
    readonly buckets: readonly (TimeBucket & {
      readonly count: number;
      readonly values?: readonly number[];
      readonly numbers?: NumberAnswers;
      readonly numbersOfValues?: readonly NumberAnswers[];
    })[];
    readonly nulls: number;
  };
  readonly values?: {
    readonly top: readonly {
      readonly value: CountedValue;
      readonly count: number;
      readonly numbers?: NumberAnswers;
    }[];
    readonly other: number;
    readonly nulls: number;
    readonly distinct: number;
  };
}

/** Years 1 to 9999. */
const calendar = { from: new Date('0001-01-01T00:00:00Z').getTime(), until: Date.UTC(10_000, 0, 1) };

/** The naive model of counting: record by record, without code of the engine. */
export function countsOf(dataset: Dataset, query: CountQuery): ModelCounts {
  const { after, before, predicates, time, values, numbers } = query;
  const records = matchesOf(dataset, { limit: Infinity, after, before, predicates }).map((record) => ({
    bucket: time === undefined ? null : bucketOf(time.buckets, record.values[time.field]!),
    value: values === undefined ? null : shown(record.values[values.field]!, typeOf(dataset, values.field)),
    numbers: (numbers?.fields ?? []).map((field) => record.values[field]!),
  }));
  const numbersOf = (of: readonly { readonly numbers: readonly Value[] }[]): NumberAnswers =>
    numbers!.fields.map((_, i) => {
      const own = of.map((record) => record.numbers[i]!).filter((value) => value !== null);
      return numbers!.functions.map((fn) => numberOf(fn, own));
    });
  const counted = new Map<CountedValue, number>();
  for (const { value } of records) if (value !== null) counted.set(value, (counted.get(value) ?? 0) + 1);
  const top = [...counted]
    .sort(([a, many], [b, few]) => few - many || compare(a, b))
    .slice(0, values?.top ?? 0)
    .map(([value, count]) => ({
      value,
      count,
      ...(numbers && { numbers: numbersOf(records.filter((record) => record.value === value)) }),
    }));
  const buckets = new Map<number, TimeBucket>();
  for (const { bucket } of records) if (bucket !== null) buckets.set(bucket.from, bucket);
  const inBucket = (from: number) => records.filter(({ bucket }) => bucket?.from === from);
  const ordered = [...buckets.values()].sort((a, b) => a.from - b.from);
  return {
    count: records.length,
    ...(numbers && {
      approximate: numbers.functions.filter((fn) => fn.startsWith('p')),
      ...(time === undefined && values === undefined && { numbers: numbersOf(records) }),
    }),
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
          ...(numbers && { numbers: numbersOf(inBucket(bucket.from)) }),
          ...(numbers &&
            values !== undefined && {
              numbersOfValues: top.map(({ value }) =>
                numbersOf(inBucket(bucket.from).filter((record) => record.value === value)),
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

/** A number of values that are not null. */
function numberOf(fn: string, values: readonly (bigint | number | string)[]): number | bigint | null {
  if (values.length === 0) return null;
  if (fn === 'distinct') return new Set(values).size;
  const sorted = (values as (bigint | number)[]).toSorted((a, b) => (a < b ? -1 : a > b ? 1 : 0));
  const sum = sorted.reduce((all, value) => (all as number) + (value as number));
  if (fn === 'sum') return zeroed(sum);
  if (fn === 'avg') return zeroed(Number(sum) / sorted.length);
  if (fn === 'min') return zeroed(sorted[0]!);
  if (fn === 'max') return zeroed(sorted.at(-1)!);
  const rank = Math.ceil((Number(fn.slice(1)) * sorted.length) / 100);
  return zeroed(sorted[rank - 1]!);
}

function zeroed<T extends number | bigint>(value: T): T {
  return value === 0 ? (0 as T) : value;
}

/** An answer with the numbers of the model wherever its own are as near to them as they have to be. */
export function withNearNumbers(
  given: ModelCounts,
  wanted: ModelCounts,
  { numbers }: CountQuery,
): ModelCounts {
  if (numbers === undefined) return given;
  const near = (
    own: NumberAnswers | undefined,
    exact: NumberAnswers | undefined,
  ): NumberAnswers | undefined =>
    own?.map((ofField, i) =>
      ofField.map((value, k) => {
        const other = exact?.[i]?.[k] ?? null;
        return isNear(numbers.functions[k]!, value, other) ? other : value;
      }),
    );
  return {
    ...given,
    ...(given.numbers && { numbers: near(given.numbers, wanted.numbers)! }),
    ...(given.time && {
      time: {
        ...given.time,
        buckets: given.time.buckets.map((bucket, at) => {
          const other = wanted.time?.buckets[at];
          return {
            ...bucket,
            ...(bucket.numbers && { numbers: near(bucket.numbers, other?.numbers)! }),
            ...(bucket.numbersOfValues && {
              numbersOfValues: bucket.numbersOfValues.map((cell, i) =>
                near(cell, other?.numbersOfValues?.[i])!,
              ),
            }),
          };
        }),
      },
    }),
    ...(given.values && {
      values: {
        ...given.values,
        top: given.values.top.map((one, i) => ({
          ...one,
          ...(one.numbers && { numbers: near(one.numbers, wanted.values?.top[i]?.numbers)! }),
        })),
      },
    }),
  };
}

function isNear(fn: string, given: number | bigint | null, exact: number | bigint | null): boolean {
  if (given === null || exact === null || typeof given !== typeof exact) return false;
  const [own, other] = [Number(given), Number(exact)];
  if (fn.startsWith('p')) return Math.abs(own - other) <= 0.01 * Math.abs(other);
  // Sums of doubles depend on their order.
  return (
    (fn === 'sum' || fn === 'avg') &&
    typeof given === 'number' &&
    Math.abs(own - other) <= 1e-9 * (1 + Math.abs(other))
  );
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
