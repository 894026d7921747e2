import { countCellsMax } from '../../terms/limits.js';

const roomAtFirst = 4;

/**
 * Numbers of records by bucket and value, of which each has a number. When there are too many, it is full and keeps none: then only
 * a few values can be counted by bucket.
 */
export class Cells {
  /** Those of each bucket, as far as values were counted in it. */
  #ofBuckets: Float64Array[] = [];
  #room = 0;
  #isFull = false;

  get isFull(): boolean {
    return this.#isFull;
  }

  add(bucket: number, value: number, rows: number): void {
    if (this.#isFull) return;
    const known = this.#ofBuckets[bucket];
    const cells = known !== undefined && value < known.length ? known : this.#enlarge(bucket, value);
    if (cells !== null) cells[value]! += rows;
  }

  /** Keeps none any more. */
  fill(): void {
    this.#isFull = true;
    this.#ofBuckets = [];
  }

  /** Keeps those of the values `chosen`, which are numbered by their places in it from here on. */
  choose(chosen: readonly number[]): void {
    this.#ofBuckets = this.#ofBuckets.map((cells) => Float64Array.from(chosen, (value) => cells[value] ?? 0));
  }

  of(bucket: number, value: number): number {
    return this.#ofBuckets[bucket]?.[value] ?? 0;
  }

  #enlarge(bucket: number, value: number): Float64Array | null {
    const known = this.#ofBuckets[bucket];
    const length = Math.max(roomAtFirst, 2 ** (32 - Math.clz32(value)));
    this.#room += length - (known?.length ?? 0);
    // Twice as many, because room is made in powers of two.
    if (this.#room > 2 * countCellsMax) {
      this.fill();
      return null;
    }
    const cells = new Float64Array(length);
    if (known !== undefined) cells.set(known);
    // Buckets come in any order. A hole in the list costs nothing.
    while (this.#ofBuckets.length < bucket) this.#ofBuckets.push(noCells);
    this.#ofBuckets[bucket] = cells;
    return cells;
  }
}

const noCells = new Float64Array(0);
