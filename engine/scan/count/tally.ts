import { countBucketsMax, countCellsMax } from '../../terms/limits.js';
import { CountBoundError, type TimeBucket } from '../plan/count.js';
import { Cells } from './cells.js';
import type { ValueTable } from './value-table.js';

/** The counts so far: by bucket, by value, and by both. Buckets and values are named by numbers. */
export class Tally {
  readonly buckets: TimeBucket[] = [];
  /** Indexed by the number of the bucket. */
  readonly bucketCounts: number[] = [];
  readonly #bucketsByStart = new Map<number, number>();
  timeNulls = 0;
  valueNulls = 0;
  cells = new Cells();
  /** Null where nothing is counted by value. */
  readonly values: ValueTable | null;

  readonly #columnsMax: number;
  readonly #spanMs: number;

  /**
   * @param columnsMax the most values whose counts the answer has for each bucket; 0 where it has none
   * @param spanMs approximate time span of the records in milliseconds, for `CountBoundError`
   */
  constructor(values: ValueTable | null, columnsMax: number, spanMs: number) {
    this.values = values;
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

  /** The number of a bucket. Throws `CountBoundError` for more than `countBucketsMax`. */
  bucketOf(bucket: TimeBucket): number {
    let known = this.#bucketsByStart.get(bucket.from);
    if (known !== undefined) return known;
    known = this.buckets.length;
    if (known === countBucketsMax)
      throw new CountBoundError(
        'buckets',
        `the records would fill more than ${countBucketsMax} time buckets, the maximum`,
        this.#spanMs,
      );
    this.#bucketsByStart.set(bucket.from, known);
    this.buckets.push(bucket);
    this.bucketCounts.push(0);
    return known;
  }

  /** Adds `rows` to the count of a bucket. */
  countBucket(bucket: number, rows: number): void {
    this.bucketCounts[bucket]! += rows;
  }
}
