import type { Column } from '../columns/column.js';
import { convertColumn, nullColumn } from '../columns/convert-column.js';
import type { FarAnswer } from '../far/far-cluster.js';
import { MemoryRowGroup } from '../store/reading/hot-rows.js';
import { assert } from '../core/errors.js';
import type { Schema } from '../core/schema.js';
import type { RowRange } from './plan.js';
import { storedField } from './far-condition.js';

/** Rows that a far tier has answered, as a row group in memory with the fields of `schema`. They ascend by position, with gaps. */
export class FarPage extends MemoryRowGroup {
  readonly hot = false;

  /**
   * @param asked the fields that were asked for, and that the answer has
   * @param stored the fields that the rows were shipped with
   */
  constructor(
    readonly file: string,
    private readonly schema: Schema,
    private readonly asked: Schema,
    private readonly stored: Schema,
    private readonly answer: FarAnswer,
  ) {
    super();
  }

  get rows(): number {
    return this.answer.batch.length;
  }

  get bytes(): number {
    return this.answer.bytes;
  }

  /** The partition of a row's position. */
  partition(row: number): number {
    return this.answer.partitions[row]!;
  }

  /** The ordinal of a row's position. */
  ordinal(row: number): number {
    return this.answer.ordinals[row]!;
  }

  /** The number of rows before a position; with `orAt`, a row at that position is included. */
  rowsBefore(partition: number, ordinal: number, orAt: boolean): number {
    let low = 0;
    let high = this.rows;
    while (low < high) {
      const middle = (low + high) >>> 1;
      const order = this.partition(middle) - partition || this.ordinal(middle) - ordinal;
      if (order < 0 || (orAt && order === 0)) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  /** The rows [from, to) as ranges of consecutive positions. */
  ranges(from: number, to: number): RowRange[] {
    const ranges: RowRange[] = [];
    for (let first = from; first < to;) {
      const partition = this.partition(first);
      const firstOrdinal = this.ordinal(first);
      let end = first + 1;
      while (
        end < to &&
        this.partition(end) === partition &&
        this.ordinal(end) === firstOrdinal + end - first
      )
        end++;
      ranges.push({ firstRow: first, rows: end - first, partition, firstOrdinal });
      first = end;
    }
    return ranges;
  }

  zone(): null {
    return null;
  }

  protected make(field: number): Column {
    const { name, type } = this.schema.fields[field]!;
    const kept = storedField(field, this.schema, this.stored);
    if (kept === null) return nullColumn(type, this.rows);
    const place = this.asked.fields.findIndex((other) => other.name === name);
    assert(place >= 0, `field ${name} is read, and was not asked for`);
    return convertColumn(this.answer.batch.columns[place]!, kept.conversion, type);
  }
}

/** The stored fields, with their stored types, that `fields` need. Fields without stored values are left out. */
export function askedFields(fields: readonly number[], schema: Schema, stored: Schema): Schema {
  const asked = fields.map((field) => storedField(field, schema, stored)?.field);
  return { fields: stored.fields.filter((kept) => asked.includes(kept)) };
}
