import { countCellsMax } from '../../terms/limits.js';

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
