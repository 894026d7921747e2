import type { ColumnBuilder } from '../../columns/column-builder.js';
import { FormatError } from '../../parquet/format.js';
import { assert } from '../../terms/assert.js';
import { int64Max, int64Min } from '../../terms/limits.js';
import type { ForeignColumn } from '../foreign-file.js';
import { ticksToMs } from '../parquet/ticks.js';
import type { LeafValue } from './leaf-format.js';

/**
 * Returns a function that sets a value of a column that is not nested. It returns the number of invalid UTF-8 sequences that
 * were replaced, and throws `FormatError` for an integer beyond the range of `int`.
 */
export function valueSetter(
  { values }: ForeignColumn,
  textOf: (value: LeafValue) => string,
): (builder: ColumnBuilder, value: LeafValue) => number {
  return (builder, value) => {
    switch (builder.kind) {
      case 'string':
        if (values.kind === 'bytes' && value instanceof Uint8Array)
          return builder.setBytes(value, 0, value.length);
        builder.setString(textOf(value));
        return 0;
      case 'float':
        builder.setNumber(typeof value === 'number' ? value : Number(textOf(value)));
        return 0;
      case 'int': {
        const stored = BigInt(value as boolean | bigint);
        const integer = values.kind === 'ticks' ? ticksToMs(stored, values) : stored;
        if (integer < int64Min || integer > int64Max)
          throw new FormatError(`the integer ${integer} contradicts the bounds in the file`, 0);
        builder.setBigInt(integer);
        return 0;
      }
    }
  };
}

/** Sets a row of a column of JSON; null leaves it null. */
export function setJson(builder: ColumnBuilder, json: string | null): void {
  assert(builder.kind === 'string', 'JSON is text');
  if (json !== null) builder.setString(json);
}
