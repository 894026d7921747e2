import type { PlainColumn } from '../../columns/column.js';
import { countBucketsMax, countCellsMax } from '../../terms/limits.js';
import type { RowCounts } from '../job/row-counts.js';
import { CountBoundError, type TimeBucket } from '../plan/count.js';
import { Cells } from './cells.js';
import { ValueBytes } from './value-bytes.js';
import type { ValueTable } from './value-table.js';

/** The counts so far: by bucket, by value, and by both. Buckets and values are named by numbers. */
export class Tally {
  readonly buckets: TimeBucket[] = [];
  /** Indexed by the number of the bucket. */
  readonly bucketCounts: number[] = [];
  readonly #bucketsByStart = new Map<number, number>();
  timeNulls = 0;
  valueNulls = 0;
  readonly cells = new Cells();
  /** Null where nothing is counted by value. */
  readonly values: ValueTable | null;
  /** The counts of the first pass, where this is a second one for the values that `values` has already. Others are counted as null. */
  readonly first: Tally | null;

  readonly #columnsMax: number;
  readonly #spanMs: number;

  /**
   * @param columnsMax the most values whose counts the answer has for each bucket; 0 where it has none
   * @param spanMs approximate time span of the records in milliseconds, for `CountBoundError`
   */
  constructor(values: ValueTable | null, columnsMax: number, spanMs: number, first: Tally | null = null) {
    this.values = values;
    this.first = first;
    this.#columnsMax = columnsMax;
    this.#spanMs = spanMs;
  }

  /**
   * Throws `CountBoundError` where the answer would have more than `countCellsMax` counts by bucket and value. Neither buckets nor values
   * become fewer, so this is certain before all records are counted.
   */
  assertCellsFit(): void {
    const columns = Math.min(this.#columnsMax, this.values?.size ?? 0);
    if (this.buckets.length * columns <= countCellsMax) return;
    throw new CountBoundError(
      'cells',
      `${this.buckets.length} buckets of time or more by ${columns} values are more numbers than can be counted: at most ${countCellsMax}`,
    );
  }

  /** The part of the bound that is reached first: with 1 the count is refused. */
  get fullness(): number {
    const columns = Math.min(this.#columnsMax, this.values?.size ?? 0);
    const { length } = this.buckets;
    return Math.max(
      length / countBucketsMax,
      (length * columns) / countCellsMax,
      this.first === null ? (this.values?.fullness ?? 0) : 0,
    );
  }

  /** The number of a bucket that has rows; undefined where it has none so far. */
  bucketFrom(from: number): number | undefined {
    return this.#bucketsByStart.get(from);
  }

  /** Adds `rows` to the count of a bucket. Returns its number. Throws `CountBoundError` for more than `countBucketsMax`. */
  countBucket(bucket: TimeBucket, rows: number): number {
    const known = this.#bucketsByStart.get(bucket.from) ?? this.#addBucket(bucket);
    this.bucketCounts[known]! += rows;
    return known;
  }

  #addBucket(bucket: TimeBucket): number {
    const added = this.buckets.length;
    if (added === countBucketsMax)
      throw new CountBoundError(
        'buckets',
        `the records would fill more than ${countBucketsMax} time buckets, the maximum`,
        this.#spanMs,
      );
    this.#bucketsByStart.set(bucket.from, added);
    this.buckets.push(bucket);
    this.bucketCounts.push(0);
    return added;
  }

  /** Adds `rows` to the count of the value of a row. Returns the value's number; -1 in a second pass that does not count it. */
  countValue(source: ValueBytes, row: number, rows: number): number {
    const table = this.values!;
    const value = this.first === null ? source.add(table, row) : source.find(table, row);
    if (value >= 0) table.count(value, rows);
    return value;
  }

  /**
   * Adds the counts of a row group.
   *
   * @param buckets those of `ranges`
   * @param values the column or dictionary with the counted values; null where there are none
   */
  add(buckets: readonly TimeBucket[], values: PlainColumn | null, counts: RowCounts): void {
    const { ranges, valueCounts, firstRows } = counts;
    this.timeNulls += counts.timeNulls;
    this.valueNulls += counts.valueNulls;
    const ofRanges = buckets.map((bucket, i) =>
      ranges[i] === 0 ? -1 : this.countBucket(bucket, ranges[i]!),
    );
    if (values === null) return;
    const source = new ValueBytes(values);
    const ofCodes = new Int32Array(valueCounts.length);
    for (let code = 0; code < ofCodes.length; code++) {
      const rows = valueCounts[code]!;
      ofCodes[code] =
        rows === 0 ? -1 : this.countValue(source, firstRows === null ? code : firstRows[code]!, rows);
    }
    if (ofRanges.length > 0 && ofCodes.length > 0) this.#addPairs(ofRanges, ofCodes, pairsOf(counts));
  }

  #addPairs(buckets: readonly number[], values: Int32Array, pairs: Uint32Array | null): void {
    if (pairs === null) this.cells.fill();
    for (let range = 0, at = 0; range < buckets.length && !this.cells.isFull; range++) {
      for (let code = 0; code < values.length; code++, at++) {
        if (pairs![at] !== 0 && values[code]! >= 0)
          this.cells.add(buckets[range]!, values[code]!, pairs![at]!);
      }
    }
  }
}

/** The counts by bucket and value; null where they were too many. */
function pairsOf({ pairs, ranges, valueCounts, timeNulls, valueNulls }: RowCounts): Uint32Array | null {
  // With one bucket, the counts by value are the pairs; with one value, those by bucket are.
  if (pairs === null && ranges.length === 1 && timeNulls === 0) return valueCounts;
  return pairs === null && valueCounts.length === 1 && valueNulls === 0 ? ranges : pairs;
}
