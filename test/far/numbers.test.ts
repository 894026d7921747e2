import { expect, it } from 'vitest';
import { numberColumn, type Column } from '../../engine/columns/column.js';
import { addNumbers } from '../../engine/far/far-numbers.js';
import { NumberTally } from '../../engine/numbers/number-tally.js';
import { Tally } from '../../engine/scan/tally.js';

it('adds sums of more large integers than a double holds', () => {
  for (const value of [2n ** 63n - 1n, -(2n ** 63n), -1n, 12_345_678_901n]) {
    const numbers = new NumberTally(['int'], ['sum', 'avg', 'min', 'max'], () => {});
    const tally = new Tally(null, 0, 0, numbers);
    const rows = 1_000_000_007;
    const low = BigInt.asUintN(32, value);
    const words = [value, value, low * BigInt(rows), ((value - low) >> 32n) * BigInt(rows)];
    const columns: Column[] = words.map((word) =>
      numberColumn('int64', 1, BigInt64Array.of(word).buffer, 0, null),
    );
    const counted = { rows: Float64Array.of(rows), batch: { length: 1, columns }, bytes: 0 };
    const question = { field: { name: 'size', type: 'int' }, by: 'group' } as const;
    for (let shard = 0; shard < 3; shard++)
      addNumbers(tally, { place: 0, question, counted, columns }, () => 0);
    const sum = 3n * BigInt(rows) * value;
    expect(numbers.answer([0])).toEqual([[sum, Number(sum) / (3 * rows), value, value]]);
  }
});
