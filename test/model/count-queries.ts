import fc from 'fast-check';
import type { CountQuery, TimeBuckets } from '../../engine/scan/count-query.js';
import { numberFunctions } from '../../engine/numbers/number-functions.js';
import { positions, predicates } from './arbitraries.js';
import type { Dataset } from './dataset.js';

/** Buckets of one length, with a boundary at `offset` and at every `step` before and after it. */
export function steps(step: number, offset = 0): TimeBuckets {
  return {
    bucketOf: (timeMs) => {
      const from = Math.floor((timeMs - offset) / step) * step + offset;
      return { from, until: from + step };
    },
  };
}

const cuts = fc
  .tuple(fc.constantFrom(1, 2, 7, 25, 1000, 86_400_000), fc.nat(100))
  .map(([step, offset]) => steps(step, offset));

/** Numbers of up to three fields. Strings and truth values only have different values. */
function numbersQueries(dataset: Dataset): fc.Arbitrary<NonNullable<CountQuery['numbers']>> {
  const { fields } = dataset.schema;
  const all = fields.map((_, field) => field);
  const numeric = all.filter((field) => ['int', 'float', 'time'].includes(fields[field]!.type));
  const some = (of: readonly number[]) =>
    fc.uniqueArray(fc.constantFrom(...of), { minLength: 1, maxLength: 3 });
  const functions = fc.uniqueArray(fc.constantFrom(...numberFunctions), { minLength: 1 });
  return fc.oneof(
    fc.record({ fields: some(numeric), functions }),
    fc.record({ fields: some(all), functions: fc.constant(['distinct'] as const) }),
  );
}

/** Counts of all kinds. */
export function countQueries(dataset: Dataset): fc.Arbitrary<CountQuery> {
  const maybe = fc.option(positions(dataset), { nil: undefined });
  return fc.record({
    after: maybe,
    before: maybe,
    predicates: fc.array(predicates(dataset), { maxLength: 2 }),
    time: fc.option(fc.record({ field: fc.constant(0), buckets: cuts }), { nil: undefined }),
    numbers: fc.option(numbersQueries(dataset), { nil: undefined }),
    values: fc.option(
      fc.record({ field: fc.nat(dataset.schema.fields.length - 1), top: fc.constantFrom(1, 2, 5, 1000) }),
      { nil: undefined },
    ),
  });
}
