import { columnValue, type RecordBatch } from '../../engine/index.js';
import type { FieldDefinition } from '../definition/definition.js';
import type { UnreadableField } from '../decode/value-counters.js';

/** Limit on the distinct values of a field that are counted at a time, and on the length of a text that is kept. */
const valuesCountedMax = 1000;
const valueLengthMax = 200;

type Value = bigint | number | string;

/** A value and how often it occurs. */
export interface ValueCount {
  readonly value: Value;
  readonly count: number;
}

/** Summary of the values of one field. */
export interface FieldSummary {
  readonly name: string;
  readonly type: FieldDefinition['type'];
  readonly nulls: number;
  /** Number of nulls whose text could not be read as the type, and the first such text (`example`). */
  readonly unreadable: number;
  readonly example: string | null;
  /** The smallest and the largest value; null for texts, and where there is none. */
  readonly min: bigint | number | null;
  readonly max: bigint | number | null;
  /** The most frequent values, in descending order. */
  readonly frequent: readonly ValueCount[];
  /** Number of distinct values; null where there are more than are counted. The counts of `frequent` are then lower bounds. */
  readonly distinct: number | null;
}

/** Summarises the values of one field in bounded memory. */
export class FieldTally {
  #nulls = 0;
  #unreadable = 0;
  #example: string | null = null;
  #min: bigint | number | null = null;
  #max: bigint | number | null = null;
  #isExact = true;
  readonly #counts = new Map<Value, number>();

  constructor(private readonly definition: FieldDefinition) {}

  /** Adds unreadable values. */
  addUnreadable({ values, example }: UnreadableField): void {
    this.#unreadable += values;
    this.#example ??= example;
  }

  /** Adds the values of a column. */
  addColumn({ columns, length }: RecordBatch, field: number): void {
    const column = columns[field]!;
    for (let row = 0; row < length; row++) {
      const value = columnValue(column, row);
      if (value === null) this.#nulls++;
      else if (typeof value === 'string') this.#count(value.slice(0, valueLengthMax));
      else this.#addNumber(value);
    }
  }

  #addNumber(value: bigint | number): void {
    if (this.#min === null || value < this.#min) this.#min = value;
    if (this.#max === null || value > this.#max) this.#max = value;
    this.#count(value);
  }

  /**
   * Counts a value. If too many values are being counted, all counts are lowered by one instead, and those that reach zero
   * are dropped, so that frequent values stay (Misra and Gries, "Finding repeated elements", 1982).
   */
  #count(value: Value): void {
    const counts = this.#counts;
    const known = counts.get(value);
    if (known !== undefined) counts.set(value, known + 1);
    else if (counts.size < valuesCountedMax) counts.set(value, 1);
    else {
      this.#isExact = false;
      for (const [other, count] of counts) {
        if (count === 1) counts.delete(other);
        else counts.set(other, count - 1);
      }
    }
  }

  /** @param shownMax limit on the most frequent values to return */
  summary(shownMax: number): FieldSummary {
    const { name, type } = this.definition;
    const frequent = [...this.#counts]
      .toSorted((a, b) => b[1] - a[1])
      .slice(0, shownMax)
      .map(([value, count]) => ({ value, count }));
    return {
      name,
      type,
      nulls: this.#nulls,
      unreadable: this.#unreadable,
      example: this.#example,
      min: this.#min,
      max: this.#max,
      frequent,
      distinct: this.#isExact ? this.#counts.size : null,
    };
  }
}
