import type { PlainColumn } from '../columns/column.js';
import {
  countBucketsMax,
  countCellsMax,
  countTextBytesMax,
  countValuesMax,
  rowGroupRowsMax,
} from '../core/limits.js';
import type { GroupNumbers } from '../numbers/group-numbers.js';
import type { NumberTally } from '../numbers/number-tally.js';
import type { RowCounts } from './row-counts.js';
import { CountBoundError, type TimeBucket } from './count-query.js';
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
  /** Null where no numbers are wanted, or where those of all values were too many. */
  numbers: NumberTally | null;
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
  constructor(
    values: ValueTable | null,
    columnsMax: number,
    spanMs: number,
    numbers: NumberTally | null,
    first: Tally | null = null,
  ) {
    this.values = values;
    this.numbers = numbers;
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
    const source = values === null ? null : new ValueBytes(values);
    const ofCodes = new Int32Array(source === null ? 0 : valueCounts.length);
    for (let code = 0; code < ofCodes.length; code++) {
      const rows = valueCounts[code]!;
      ofCodes[code] =
        rows === 0 ? -1 : this.countValue(source!, firstRows === null ? code : firstRows[code]!, rows);
    }
    if (ofRanges.length > 0 && ofCodes.length > 0) this.#addPairs(ofRanges, ofCodes, pairsOf(counts));
    const codes = counts.numbers?.codesOfRange ?? 1;
    const keyOf = (group: number): number =>
      keyOfCell(ofRanges[Math.floor(group / codes)] ?? -1, ofCodes[group % codes] ?? -1);
    if (counts.numbers !== null) this.addNumbers(counts.numbers, keyOf);
  }

  /** Adds the numbers of rows. `keyOf` gives the key of the cell that a group belongs to. */
  addNumbers(numbers: GroupNumbers, keyOf: (group: number) => number): void {
    this.numbers?.add(numbers, keyOf);
    // In a second pass there are only the values of the answer.
    if (this.numbers === null || this.values === null || this.first !== null) return;
    const { size, bytes } = this.numbers;
    if (this.cells.isFull || size > rowGroupRowsMax / 8 || bytes > countTextBytesMax / 2) this.numbers = null;
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

/** The key of the numbers of a bucket and a value; -1 stands for records without either. */
export function keyOfCell(bucket: number, value: number): number {
  return (bucket + 1) * valuesOfBucket + value + 1;
}

/** The bucket and the value of a key. */
export function cellOfKey(key: number): [bucket: number, value: number] {
  return [Math.floor(key / valuesOfBucket) - 1, (key % valuesOfBucket) - 1];
}

const valuesOfBucket = 2 * countValuesMax;

const roomAtFirst = 4;

/**
 * Counts of records by bucket and value. Both are given as numbers. When there are too many counts, they are dropped and `isFull` is set;
 * then counts by bucket are only possible for a few values, in a second pass.
 */
export class Cells {
  /** The counts of each bucket, indexed by value, up to the largest value counted in it. */
  #ofBuckets: Float64Array[] = [];
  #room = 0;
  #isFull = false;

  get isFull(): boolean {
    return this.#isFull;
  }

  /** Adds `rows` to a count. Does nothing once the cells are full. */
  add(bucket: number, value: number, rows: number): void {
    if (this.#isFull) return;
    const known = this.#ofBuckets[bucket];
    const cells = known !== undefined && value < known.length ? known : this.#enlarge(bucket, value);
    if (cells !== null) cells[value]! += rows;
  }

  /** Drops all counts. */
  fill(): void {
    this.#isFull = true;
    this.#ofBuckets = [];
  }

  /** Keeps the counts of the values in `chosen`. From now on a value is given as its index in `chosen`. */
  choose(chosen: readonly number[]): void {
    this.#ofBuckets = this.#ofBuckets.map((cells) => Float64Array.from(chosen, (value) => cells[value] ?? 0));
  }

  /** The count of a bucket and a value; 0 where there is none. */
  of(bucket: number, value: number): number {
    return this.#ofBuckets[bucket]?.[value] ?? 0;
  }

  #enlarge(bucket: number, value: number): Float64Array | null {
    const known = this.#ofBuckets[bucket];
    const length = Math.max(roomAtFirst, 2 ** (32 - Math.clz32(value)));
    this.#room += length - (known?.length ?? 0);
    // The factor is 2 because arrays are allocated in powers of two.
    if (this.#room > 2 * countCellsMax) {
      this.fill();
      return null;
    }
    const cells = new Float64Array(length);
    if (known !== undefined) cells.set(known);
    // Buckets come in any order. All missing buckets share one empty array.
    while (this.#ofBuckets.length < bucket) this.#ofBuckets.push(noCells);
    this.#ofBuckets[bucket] = cells;
    return cells;
  }
}

const noCells = new Float64Array(0);
