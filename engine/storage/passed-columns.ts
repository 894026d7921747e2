/**
 * Columns that queries have gone through without having them kept, by their names in the pool. One that is asked for again before as
 * much else has passed as the pool holds would have stayed there: it is worth being kept. The first time, and in a scan of more than the
 * pool holds however often, none is: decoding it to memory would take longer, and drive out what others ask for.
 */
export class PassedColumns {
  readonly #bytesMax: number;
  /** Bytes in memory that each would have taken, in the order in which they passed. */
  readonly #passed = new Map<string, number>();
  #bytes = 0;

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax;
  }

  /** Says that a column is wanted; returns whether it is to be passed by once more. */
  passesBy(key: string, sizeBytes: number): boolean {
    if (this.#forget(key)) return false;
    this.#passed.set(key, sizeBytes);
    this.#bytes += sizeBytes;
    for (const oldest of this.#passed.keys()) {
      if (this.#bytes <= this.#bytesMax) break;
      this.#forget(oldest);
    }
    return true;
  }

  /** Forgets those whose name begins with `prefix`. */
  evict(prefix: string): void {
    for (const key of [...this.#passed.keys()]) if (key.startsWith(prefix)) this.#forget(key);
  }

  #forget(key: string): boolean {
    this.#bytes -= this.#passed.get(key) ?? 0;
    return this.#passed.delete(key);
  }
}
