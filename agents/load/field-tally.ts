import { columnValue, type RecordBatch } from '../../engine/index.js';
import type { FieldDefinition } from '../definition/definition.js';
import type { UnreadableField } from '../decode/value-counters.js';

/** Different values of a field that are counted at a time, and the most of one that is kept. */
const valuesCountedMax = 1000;
const valueLengthMax = 200;

type Value = bigint | number | string;

export interface ValueCount {
  readonly value: Value;
  readonly count: number;
}

/** What the values of one field are like. */
export interface FieldSummary {
  readonly name: string;
  readonly type: FieldDefinition['type'];
  readonly nulls: number;
  /** Nulls whose text did not read as the type, and the text of the first. */
  readonly unreadable: number;
  readonly example: string | null;
  /** The least and the greatest; null for texts, and where there is none. */
  readonly min: bigint | number | null;
  readonly max: bigint | number | null;
  /** The most frequent values, most first. */
  readonly frequent: readonly ValueCount[];
  /** Different values; null where there are more than are counted, and the counts above are the least that they can be. */
  readonly distinct: number | null;
}

/** Gathers what the values of one field are like, in bounded memory. */
export class FieldTally {
  #nulls = 0;
  #unreadable = 0;
  #example: string | null = null;
  #min: bigint | number | null = null;
  #max: bigint | number | null = null;
  #isExact = true;
  readonly #counts = new Map<Value, number>();

  constructor(private readonly definition: FieldDefinition) {}

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
   * Counts a value. Where there are more than are counted, all counts are lowered by one in its place, and those at zero leave: what comes
   * often stays (Misra and Gries, "Finding repeated elements", 1982).
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

  /** @param shownMax of the most frequent values */
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
