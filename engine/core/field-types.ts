import { int64Max, int64Min } from './limits.js';

/** What all of the engine knows of a type of fields. */
interface TypeFacts {
  /** The kind of column that holds the values. Filters, counts and answers read values by it. */
  readonly column: 'int64' | 'float64' | 'bytes';
  /** Set where values are 0 or 1 and stand for false and true. Files have one bit for each. */
  readonly isBits?: true;
  /** Whether row groups get filters of the values, so that one that lacks a value is not read. */
  readonly hasFilters: boolean;
  /** The physical type and the annotation of a Parquet column, and which encodings its pages may get. */
  readonly parquet: {
    readonly physical: 'int64' | 'double' | 'byteArray' | 'boolean';
    readonly annotation?: 'utf8' | 'timestampMillis';
    readonly encoding: 'ascending' | 'bits' | 'any';
  };
  /** The name of the type in apache-arrow. */
  readonly arrow: 'Int64' | 'Float64' | 'Utf8' | 'TimestampMillisecond' | 'Bool';
  /** The value that a whole text is, such as that of a folder `key=value`; null where it is none. */
  readonly parse: (text: string) => bigint | number | string | null;
}

const integerPattern = /^-?\d{1,19}$/;

function parseInteger(text: string): bigint | null {
  const value = integerPattern.test(text) ? BigInt(text) : null;
  return value === null || value > int64Max || value < int64Min ? null : value;
}

function parseFloat64(text: string): number | null {
  const value = text.trim() === '' ? NaN : Number(text);
  return Number.isFinite(value) ? value : null;
}

function parseTime(text: string): bigint | null {
  const timeMs = Date.parse(text);
  return Number.isNaN(timeMs) ? null : BigInt(timeMs);
}

/**
 * The types of fields, one a row:
 * - `int`: 64-bit signed integer, exact.
 * - `float`: IEEE 754 double; NaN and infinities are stored as null.
 * - `string`: valid UTF-8.
 * - `time`: milliseconds since the epoch, UTC, as a 64-bit integer.
 * - `bool`: true or false.
 *
 * Readers take the row of a column's type once, not for each value. What else knows the types by name: how lines are decoded
 * (`createValueWriter`), how filters are parsed (`filtersOf`), and how the viewer offers and shows them (`typeFacts` of its own).
 */
const facts = {
  int: {
    column: 'int64',
    hasFilters: true,
    parquet: { physical: 'int64', encoding: 'any' },
    arrow: 'Int64',
    parse: parseInteger,
  },
  float: {
    column: 'float64',
    hasFilters: false,
    parquet: { physical: 'double', encoding: 'any' },
    arrow: 'Float64',
    parse: parseFloat64,
  },
  string: {
    column: 'bytes',
    hasFilters: true,
    parquet: { physical: 'byteArray', annotation: 'utf8', encoding: 'any' },
    arrow: 'Utf8',
    parse: (text) => text,
  },
  time: {
    column: 'int64',
    hasFilters: false,
    parquet: { physical: 'int64', annotation: 'timestampMillis', encoding: 'ascending' },
    arrow: 'TimestampMillisecond',
    parse: parseTime,
  },
  bool: {
    column: 'int64',
    isBits: true,
    hasFilters: false,
    parquet: { physical: 'boolean', encoding: 'bits' },
    arrow: 'Bool',
    parse: (text) => (text === 'true' ? 1n : text === 'false' ? 0n : null),
  },
} as const satisfies Record<string, TypeFacts>;

/** The name of a type of fields. */
export type FieldType = keyof typeof facts;

/** What the engine knows of each type. */
export const typeFacts: Readonly<Record<FieldType, TypeFacts>> = facts;

/** The type of a column that marks rows. */
export const markType: FieldType = 'bool';

export const fieldTypes = Object.keys(facts) as readonly FieldType[];

/** A stored value as answers have it: those of `bool` are stored as integers. */
export function answeredValue<T extends bigint | number | string | boolean>(
  type: FieldType,
  value: T,
): T | boolean {
  return typeFacts[type].isBits === true && typeof value === 'bigint' ? value !== 0n : value;
}
